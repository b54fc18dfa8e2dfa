import type { DescEnum, DescField, DescMessage, Message } from '@bufbuild/protobuf';
import { invalidField } from '../domain/errors.ts';
import { allowedNames, isLenient } from './message-options.ts';
import type { Call, Method } from './method.ts';

/** Throws `invalid` naming the field whose number its enum does not have. */
type EnumCheck = (message: Message, path: string) => void;

/**
 * Wraps methods so that they refuse numbers of enums that they do not know, which newer clients send:
 * without the condition that was meant, a call would select everything. The messages of pushes are
 * checked by their use case, item by item.
 */
export function withKnownEnums(methods: readonly Method[]): Method[] {
  return methods.map((method): Method => {
    if (method.kind === 'bidi_streaming') return method;
    const check = messageCheck(method.desc.input);
    if (check === undefined) return method;
    // A unary method and one that streams its replies differ in what they return, which is passed on.
    const handle = method.handle as (request: Message, call: Call) => never;
    return {
      ...method,
      handle(request: Message, call: Call) {
        check(request, '');
        return handle(request, call);
      },
    };
  });
}

function messageCheck(desc: DescMessage): EnumCheck | undefined {
  if (isLenient(desc)) return undefined;
  const checks = desc.fields.flatMap((field) => {
    const check = field.enum === undefined ? nestedCheck(field) : enumCheck(field.enum);
    return check === undefined ? [] : [{ key: field.localName, name: field.name, check }];
  });
  if (checks.length === 0) return undefined;
  return (message, path) => {
    const fields = message as unknown as Readonly<Record<string, unknown>>;
    for (const { key, name, check } of checks) {
      const value = fields[key];
      if (value === undefined) continue;
      const inner = path === '' ? name : `${path}.${name}`;
      if (!Array.isArray(value)) check(value, inner);
      else for (const [at, each] of value.entries()) check(each, `${inner}[${at}]`);
    }
  };
}

function nestedCheck({ message, fieldKind }: DescField) {
  if (message === undefined || fieldKind === 'map') return undefined;
  return messageCheck(message) as ((value: unknown, path: string) => void) | undefined;
}

function enumCheck(desc: DescEnum): (value: unknown, path: string) => void {
  const known = new Set<unknown>(desc.values.map(({ number }) => number));
  const expected = `one of ${allowedNames(desc)}`;
  return (value, path) => {
    if (!known.has(value)) throw invalidField(path, `${path} must be ${expected}.`);
  };
}
