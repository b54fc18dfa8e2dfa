import { Ajv2020 } from 'ajv/dist/2020.js';
import type { RestReply } from './app.ts';

interface ReplyObject {
  readonly content?: Readonly<Record<string, { readonly schema?: object }>>;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly $ref?: string;
}

interface OperationObject {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string }[];
  readonly responses: Readonly<Record<string, ReplyObject>>;
}

/** An OpenAPI document, as far as replies are concerned. */
export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, object>>;
    readonly responses: Readonly<Record<string, ReplyObject>>;
  };
}

/** An operation with its place. */
export interface FoundOperation {
  readonly verb: string;
  readonly path: string;
  readonly operation: OperationObject;
}

/** Checks replies against a document. */
export interface OpenApiCheck {
  /** By operationId. */
  readonly operations: ReadonlyMap<string, FoundOperation>;
  /**
   * What of a reply, or of the first line of a stream, the document does not say: its status, its
   * media type, members that the schema lacks or forbids. Empty when it conforms.
   */
  faults(operationId: string, reply: RestReply): string[];
}

/** Makes the check. Objects may have no members but those that the document lists. */
export function createOpenApiCheck(document: ApiDocument): OpenApiCheck {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
  const operations = new Map<string, FoundOperation>();
  for (const [path, item] of Object.entries(document.paths)) {
    for (const [verb, operation] of Object.entries(item)) {
      operations.set(operation.operationId, { verb: verb.toUpperCase(), path, operation });
    }
  }
  const components = { schemas: closed(document.components.schemas) };

  return {
    operations,
    faults(operationId, reply) {
      const declared = operations.get(operationId)?.operation.responses[String(reply.status)];
      if (declared === undefined) return [`status ${reply.status} is not documented`];
      const name = declared.$ref?.split('/').at(-1) ?? '';
      const { content = {} } = document.components.responses[name] ?? declared;
      const whole = reply.headers.get('content-type') ?? '';
      const type = whole.replace(/;.*/, '');
      const described = content[type] ?? content['*/*'];
      if (described === undefined) return [`${type} is not documented for ${reply.status}`];
      // Without a charset it is a page of the target's.
      if (!/^application\/(json|x-ndjson); charset=utf-8$/.test(whole)) return [];
      const schema = { ...(closed(described.schema ?? {}) as object), components };
      const validate = ajv.compile(schema);
      if (validate(reply.json)) return [];
      return (validate.errors ?? []).map(
        ({ instancePath, message, params }) =>
          `${instancePath} ${message} ${JSON.stringify(params)}`,
      );
    },
  };
}

/** The schema, with objects that have no other members than those it lists. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([name, of]) => [name, closed(of)]));
  const isOpen = !('properties' in copy) || copy['type'] !== 'object';
  return isOpen || 'additionalProperties' in copy ? copy : { ...copy, additionalProperties: false };
}
