import type { Call } from '../api/method.ts';
import { createTransfer } from '../api/transfer.ts';
import { defined } from '../domain/defined.ts';
import { parseBearer } from '../domain/header-rules.ts';
import { type AnyRequest, type AnyResponse, isGone } from '../http/node-http.ts';
import { hasBody } from '../http/receive-body.ts';
import type { RoomPools } from '../http/room.ts';
import { parseQuery } from './query-string.ts';
import { readRequestBody } from './request-body.ts';

/** One request in the gateway. */
export interface Exchange {
  /** As sent: `GET`, `HEAD`, ... */
  readonly method: string;
  /** Names and values of the query in turn, decoded. */
  readonly parameters: readonly string[];
  /** The call as handlers see it. */
  readonly call: Call;
  /** The value of a request header, undefined when absent. `name` in lower case. */
  header(name: string): string | undefined;
  /** The last value of a query parameter, undefined when absent. */
  parameter(name: string): string | undefined;
  /** Whether the request may have a body. */
  readonly hasBody: boolean;
  /**
   * Reads the request's body, once and at most as long as the route allows. Throws as {@link
   * readRequestBody} does.
   */
  body(): Promise<Uint8Array>;
  /** Sets the longest body of the route, and its most fields; called before the body is read. */
  limitBody(maxBytes: number, maxFields: number): void;
  /** Most fields of a JSON body. */
  readonly maxFields: number;
}

/** Makes the {@link Exchange} of a request. */
export function createExchange(
  request: AnyRequest,
  response: AnyResponse,
  query: string,
  pools: RoomPools,
): Exchange {
  const parameters = parseQuery(query);
  let bytes: Promise<Uint8Array> | undefined;
  let maxBytes = 0;
  let maxFields = 0;
  let signal: AbortSignal | undefined;
  const header = (name: string): string | undefined => {
    const value = request.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  };
  const requestId = header('x-request-id');
  const transfer = createTransfer(request, response, pools, () => call.caller);

  // Created on first use: most calls need neither, and each costs about a microsecond.
  const call: Call = {
    protocol: 'rest',
    bearer: parseBearer(header('authorization')),
    get signal() {
      return (signal ??= disconnectSignal(response));
    },
    remote: transfer.remote,
    get room() {
      return transfer.room;
    },
    get sent() {
      return transfer.sent;
    },
    ...defined({ requestId, traceparent: header('traceparent') }),
  };

  return {
    method: request.method ?? 'GET',
    parameters,
    call,
    header,
    parameter(name) {
      for (let at = parameters.length - 2; at >= 0; at -= 2) {
        if (parameters[at] === name) return parameters[at + 1];
      }
      return undefined;
    },
    get hasBody() {
      return hasBody(request);
    },
    get maxFields() {
      return maxFields;
    },
    limitBody(bytesLimit, fieldsLimit) {
      maxBytes = bytesLimit;
      maxFields = fieldsLimit;
    },
    body: () => (bytes ??= readRequestBody(request, maxBytes, transfer.room)),
  };
}

function disconnectSignal(response: AnyResponse): AbortSignal {
  const controller = new AbortController();
  const stop = () => {
    if (!response.writableEnded) controller.abort();
  };
  if (isGone(response)) stop();
  else response.once('close', stop);
  return controller.signal;
}
