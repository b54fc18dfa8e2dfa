import type { DescField, DescMessage, DescMethod } from '@bufbuild/protobuf';
import { forEachQueryField } from '../../src/rest/bind-parameters.ts';
import { type HttpRule, httpRules } from '../../src/rest/http-rule.ts';
import { restName } from '../../src/rest/rest-fields.ts';
import type { DescribedApi } from './descriptors.ts';
import { errorResponses } from './replies.ts';
import { described, type Schema, type Schemas } from './schemas.ts';

/** An operation object of OpenAPI. */
export interface Operation {
  readonly operationId: string;
  readonly [member: string]: unknown;
}

/** An operation with its path and verb. */
export interface PlacedOperation {
  readonly path: string;
  readonly verb: string;
  readonly operation: Operation;
}

/** The operations of a method: one for each of its rules. */
export function methodOperations(
  method: DescMethod,
  api: DescribedApi,
  schemas: Schemas,
): PlacedOperation[] {
  return httpRules(method).map((rule, index) => {
    const path = rule.template.source;
    const bound = new Set(rule.template.variables.map(({ field }) => field));
    const hasBody = rule.body !== '';
    const operation = {
      operationId: index === 0 ? method.name : `${method.name}By${capitalized(rule.verb)}`,
      tags: [method.parent.name],
      ...summaryAndDescription(api.comment(method)),
      security: securitySchemes(method, bound),
      parameters: [
        ...[...bound].map((name) => pathParameter(findField(method.input, name), schemas)),
        ...(hasBody ? [] : queryParameters(method.input, bound, schemas)),
      ],
      ...(hasBody ? { requestBody: requestBody(rule, bound, schemas) } : {}),
      responses: { 200: okReply(rule, schemas), ...errorResponses(rule.verb, rule.body === '*') },
    };
    return { path, verb: rule.verb, operation };
  });
}

/** Parameters for the fields of a request that are in neither the path nor the security scheme. */
export function queryParameters(
  input: DescMessage,
  without: ReadonlySet<string>,
  schemas: Schemas,
): Schema[] {
  const parameters: Schema[] = [];
  forEachQueryField(input, new Set([...without, 'token']), (name, field) => {
    const { description, ...schema } = schemas.ofField(field, 'request');
    parameters.push({
      name,
      in: 'query',
      ...(description === undefined ? {} : { description }),
      schema,
    });
  });
  return parameters;
}

/** The first sentence of a comment as summary, all of it as description. */
export function summaryAndDescription(comment: string): Schema {
  const [, summary = comment] = /^(.+?[.:])(?:\s|$)/s.exec(comment) ?? [];
  return { summary: summary.replace(/[.:]$/, ''), ...described(comment) };
}

function securitySchemes(method: DescMethod, bound: ReadonlySet<string>): object[] {
  if (bound.has('token')) return [];
  const hasToken = method.input.fields.some((field) => field.name === 'token');
  return hasToken ? [{ token: [] }, { bearer: [] }] : [{ bearer: [] }];
}

function pathParameter(field: DescField, schemas: Schemas): Schema {
  const { description, ...schema } = schemas.ofField(field, 'request');
  const text =
    field.name === 'token' ? 'A token of the account, of the type of the crawler.' : description;
  return { name: field.name, in: 'path', required: true, description: text, schema };
}

function requestBody(rule: HttpRule, bound: ReadonlySet<string>, schemas: Schemas): Schema {
  if (rule.body === '*') {
    const schema = schemas.ofMessage(rule.desc.input, 'request', new Set([...bound, 'token']));
    return { content: { 'application/json': { schema } } };
  }
  const field = findField(rule.desc.input, rule.body);
  return { content: { 'application/json': { schema: schemas.ofField(field, 'request') } } };
}

function okReply({ desc, responseBody }: HttpRule, schemas: Schemas): Schema {
  const schema =
    responseBody === ''
      ? schemas.refTo(desc.output, 'reply')
      : schemas.ofField(findField(desc.output, responseBody), 'reply');
  if (desc.methodKind === 'server_streaming') {
    const description = 'A line of JSON for each message, until either side ends the stream.';
    return { description, content: { 'application/x-ndjson': { schema } } };
  }
  return { description: 'Done.', content: { 'application/json': { schema } } };
}

function findField(desc: DescMessage, name: string): DescField {
  const field = desc.fields.find((each) => each.name === name || restName(each) === name);
  if (field === undefined) throw new Error(`${desc.typeName} has no field ${name}`);
  return field;
}

function capitalized(verb: string): string {
  return verb.slice(0, 1) + verb.slice(1).toLowerCase();
}
