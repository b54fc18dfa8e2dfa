import {
  create,
  type DescField,
  type DescMessage,
  getOption,
  ScalarType,
} from '@bufbuild/protobuf';
import { query_inline } from '../../gen/queuedcrawler/v1/options_pb.ts';
import { unknownMember } from './gateway-error.ts';
import { compileTextParser } from './parse-scalar.ts';
import { type Fields, fieldNamed, restFields, restName, TIMESTAMP } from './rest-fields.ts';

/**
 * Sets one parameter of the request from its text. Throws a 422 GatewayError that names the
 * parameter.
 */
export type ParameterSetter = (request: Fields, text: string) => void;

/** A query parameter. */
export interface QueryParameter {
  readonly set: ParameterSetter;
  /** Whether a parameter that is given several times has several values. */
  readonly isList: boolean;
}

/** How deep `a.b.c` names reach; recursive messages end here. */
const MAX_DEPTH = 4;

/** Returns the message of a request that holds a field, and creates it if it is absent. */
type Opener = (request: Fields) => Fields;

/**
 * Compiles the query parameters of a request message: its fields by name, those of nested messages
 * joined by dots, those of `query_inline` messages under their own names. Maps and lists of
 * messages have none. Throws when two parameters have the same name.
 */
export function compileQueryParameters(
  desc: DescMessage,
  exclude: ReadonlySet<string> = new Set(),
): ReadonlyMap<string, QueryParameter> {
  const parameters = new Map<string, QueryParameter>();
  forEachQueryField(desc, exclude, (name, field, open) => {
    const set = fieldSetter(field, name, open);
    if (set === undefined) return;
    if (parameters.has(name)) throw new Error(`${desc.typeName}: parameter "${name}" is ambiguous`);
    parameters.set(name, { set, isList: field.fieldKind === 'list' });
  });
  return parameters;
}

/**
 * Compiles the check of other parameters. They are ignored, as clients of the reference expect, except
 * those that name a nested message, which get a 422 GatewayError as in JSON. Without the condition that
 * `filter.hosst` or `filter[host]` meant, a filter would select everything.
 */
export function compileUnknownParameter(
  desc: DescMessage,
  exclude: ReadonlySet<string>,
): (parameter: string) => void {
  const members = new Map<string, readonly string[]>();
  forEachQueryField(
    desc,
    exclude,
    () => undefined,
    (name, message) => members.set(name, restFields(message).map(restName)),
  );
  return (parameter) => {
    const [, name = '', member = ''] = /^(\w+)(?:[.[]([^\]]*))?/.exec(parameter) ?? [];
    const known = members.get(name);
    if (known !== undefined) throw unknownMember(name, member, known);
  };
}

/**
 * Visits the fields that {@link compileQueryParameters} binds, each with the function that opens
 * its message.
 */
export function forEachQueryField(
  desc: DescMessage,
  exclude: ReadonlySet<string>,
  visit: (name: string, field: DescField, open: Opener) => void,
  visitNested: (name: string, message: DescMessage) => void = () => undefined,
): void {
  function walk(message: DescMessage, prefix: string, open: Opener, depth: number): void {
    for (const field of restFields(message)) {
      const name = prefix + restName(field);
      if (exclude.has(name) || field.fieldKind === 'map') continue;
      const nested = field.fieldKind === 'message' ? field.message : undefined;
      if (nested !== undefined && nested.typeName !== TIMESTAMP) {
        const inline = getOption(field, query_inline);
        const inner = inline ? prefix : `${name}.`;
        if (!inline) visitNested(name, nested);
        if (depth < MAX_DEPTH) walk(nested, inner, opener(open, field, nested), depth + 1);
      } else if (compileTextParser(field) !== undefined) visit(name, field, open);
    }
  }
  walk(desc, '', (request) => request, 0);
}

/**
 * Compiles the setter of a path variable; `path` consists of proto names joined by dots. Throws
 * when it names no plain field.
 */
export function compilePathParameter(
  desc: DescMessage,
  path: string,
  where: string,
): ParameterSetter {
  let message = desc;
  let open: Opener = (request) => request;
  const names = path.split('.');
  const last = names.pop() ?? '';
  for (const name of names) {
    const field = fieldNamed(message, name, where);
    if (field.fieldKind !== 'message') throw new Error(`${where}: "${name}" is no message`);
    open = opener(open, field, field.message);
    message = field.message;
  }
  const field = fieldNamed(message, last, where);
  const setter = field.fieldKind === 'list' ? undefined : fieldSetter(field, path, open);
  if (setter === undefined) throw new Error(`${where}: "${path}" cannot stand in a path`);
  return setter;
}

function opener(open: Opener, field: DescField, nested: DescMessage): Opener {
  const key = field.localName;
  return (request) => {
    const parent = open(request);
    const found = parent[key] as Fields | undefined;
    if (found !== undefined) return found;
    const made = create(nested) as Fields;
    parent[key] = made;
    return made;
  };
}

function fieldSetter(field: DescField, name: string, open: Opener): ParameterSetter | undefined {
  const parse = compileTextParser(field);
  if (parse === undefined || field.fieldKind === 'map') return undefined;
  const key = field.localName;
  if (field.fieldKind === 'list') {
    return (request, text) => {
      (open(request)[key] as unknown[]).push(parse(text, name));
    };
  }
  const isText = field.scalar === ScalarType.STRING;
  return (request, text) => {
    // Clients send `?width=` for a parameter without a value.
    if (text === '' && !isText) return;
    open(request)[key] = parse(text, name);
  };
}
