import { create, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { parseJson } from '../api/parse-json.ts';
import { MessageFault } from '../api/scan-message.ts';
import { isJsonObject } from '../domain/is-json-object.ts';
import { compileQueryParameters, compileUnknownParameter } from './bind-parameters.ts';
import type { Exchange } from './exchange.ts';
import { badValue, GatewayError } from './gateway-error.ts';
import { compileMessageReader, compileValueReader } from './read-json.ts';
import { type Fields, fieldNamed } from './rest-fields.ts';

/** Makes the request message from the query and body of an exchange. Throws a GatewayError. */
export type RequestBinder = (exchange: BindableExchange) => Promise<Fields> | Fields;

/** The part of an exchange that binding reads. */
export type BindableExchange = Pick<Exchange, 'parameters' | 'body' | 'maxFields'>;

type BodyBinder = (request: Fields, body: Uint8Array, maxFields: number) => void;

/**
 * Compiles the binder of a request message. `body` is a rule's: empty, `*`, or a field's name; a
 * bytes field gets the raw body. A value in the body wins over the query. Throws when `body` names
 * no field.
 */
export function compileRequestBinder(
  desc: DescMessage,
  body: string,
  where: string,
): RequestBinder {
  const exclude = new Set(body === '' || body === '*' ? [] : [body]);
  const parameters = compileQueryParameters(desc, exclude);
  const onUnknown = compileUnknownParameter(desc, exclude);
  const bindBody = compileBodyBinder(desc, body, where);

  const fromQuery = (exchange: BindableExchange): Fields => {
    const request = create(desc) as Fields;
    const given = exchange.parameters;
    const earlier = new Map<string, string>();
    for (let at = 0; at + 1 < given.length; at += 2) {
      const name = given[at] ?? '';
      const text = given[at + 1] ?? '';
      const parameter = parameters.get(name);
      if (parameter === undefined) {
        onUnknown(name);
        continue;
      }
      // Of two values it cannot be told which one is meant. One that is repeated says nothing new.
      if (!parameter.isList && (earlier.get(name) ?? text) !== text) {
        throw badValue(name, 'given once');
      }
      earlier.set(name, text);
      parameter.set(request, text);
    }
    return request;
  };
  if (bindBody === undefined) return fromQuery;
  return async (exchange) => {
    // The body is read before a wrong parameter is reported: otherwise the unread body would stay
    // in the connection.
    const bytes = await exchange.body();
    const request = fromQuery(exchange);
    if (bytes.byteLength > 0) bindBody(request, bytes, exchange.maxFields);
    return request;
  };
}

function compileBodyBinder(desc: DescMessage, body: string, where: string): BodyBinder | undefined {
  if (body === '') return undefined;
  if (body === '*') {
    const read = compileMessageReader(desc);
    return (request, bytes, maxFields) => {
      const json = parsedJson(bytes, maxFields);
      if (!isJsonObject(json)) throw invalidJson('The body must be a JSON object.');
      read(request, json, '');
    };
  }
  const field = fieldNamed(desc, body, where);
  const key = field.localName;
  if (field.fieldKind === 'scalar' && field.scalar === ScalarType.BYTES) {
    return (request, bytes) => {
      request[key] = bytes;
    };
  }
  const read = compileValueReader(field);
  return (request, bytes, maxFields) => {
    request[key] = read(parsedJson(bytes, maxFields), field.name);
  };
}

function parsedJson(bytes: Uint8Array, maxFields: number): unknown {
  try {
    return parseJson(bytes, maxFields);
  } catch (error) {
    if (error instanceof MessageFault) throw new GatewayError(400, error.reason, error.message);
    // The parser's message quotes the body, which may hold a token.
    throw invalidJson('The body is not JSON.');
  }
}

function invalidJson(message: string): GatewayError {
  return new GatewayError(400, 'invalid_json', message);
}
