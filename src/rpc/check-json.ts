import {
  type DescEnum,
  type DescField,
  type DescMessage,
  fromJson,
  type JsonValue,
  ScalarType,
} from '@bufbuild/protobuf';
import {
  allowedNames,
  isEachApart,
  isMistaken,
  NAMED_CHARACTERS,
  unknownMemberText,
} from '../api/message-options.ts';
import { malformed } from '../api/scan-message.ts';
import { DomainError, invalidField } from '../domain/errors.ts';
import { lastName } from '../domain/field-name.ts';
import { isJsonObject } from '../domain/is-json-object.ts';

/** An element of a list that is refused by itself. The message has an empty one in its place. */
export interface RefusedElement {
  /** The local name of the list. */
  readonly list: string;
  readonly at: number;
  readonly refusal: DomainError;
}

/**
 * Checks a parsed JSON message as the decoder does, whose errors have neither reason nor field.
 * Replaces elements that are refused by themselves with empty ones, and returns their refusals.
 * Throws DomainError, or MessageFault for what is no object.
 */
export type JsonCheck = (json: unknown) => readonly RefusedElement[];

/** Checks one value; `path` consists of the proto names of fields. */
type ValueCheck = (value: JsonValue, path: string, refused: RefusedElement[]) => void;

/** Compiles the check of a message, which ignores unknown members as the decoder does, but for misspelt ones. */
export function compileJsonCheck(
  desc: DescMessage,
  { ignoreUnknownFields }: { readonly ignoreUnknownFields: boolean },
): JsonCheck {
  const check = messageCheck(desc, ignoreUnknownFields, new Map());
  return (json) => {
    if (!isJsonObject(json)) throw malformed('it is not a JSON object');
    const refused: RefusedElement[] = [];
    check(json as JsonValue, '', refused);
    return refused;
  };
}

function messageCheck(
  desc: DescMessage,
  ignoresUnknown: boolean,
  known: Map<DescMessage, ValueCheck>,
): ValueCheck {
  const found = known.get(desc);
  if (found !== undefined) return found;
  const members = new Map<string, { readonly field: DescField; readonly check: ValueCheck }>();
  const names = desc.fields.map(({ name }) => name);
  const check: ValueCheck = (value, path, refused) => {
    if (!isJsonObject(value)) throw wrongValue(path, 'an object');
    const entries = Object.entries(value);
    for (const [name, each] of entries) {
      const member = members.get(name);
      if (member === undefined) {
        if (ignoresUnknown && !isMistaken(desc, name, names, entries.length)) continue;
        const text = unknownMemberText(path, name, names, desc);
        throw invalidField(
          path === '' ? name.slice(0, NAMED_CHARACTERS) : path,
          text,
          'unknown_member',
        );
      }
      const { field } = member;
      const inner = path === '' ? field.name : `${path}.${field.name}`;
      if (name !== field.name && Object.hasOwn(value, field.name)) {
        throw wrongValue(inner, `given once, not as ${name} too`);
      }
      if (each !== null) member.check(each, inner, refused);
    }
  };
  // Set before the fields are compiled, so that a recursive message finds itself.
  known.set(desc, check);
  for (const field of desc.fields) {
    const member = { field, check: fieldCheck(field, ignoresUnknown, known) };
    members.set(field.jsonName, member);
    members.set(field.name, member);
  }
  return check;
}

function fieldCheck(
  field: DescField,
  ignoresUnknown: boolean,
  known: Map<DescMessage, ValueCheck>,
): ValueCheck {
  const isPlain = field.message === undefined || hasOwnJson(field.message);
  if (field.fieldKind === 'map') return decodedCheck(field, 'an object');
  const check = isPlain ? plainCheck(field) : messageCheck(field.message, ignoresUnknown, known);
  return field.fieldKind === 'list' ? listCheck(field, check) : check;
}

/** Whether JSON has a form of its own for the message, such as a text for a time. */
function hasOwnJson({ typeName }: DescMessage): boolean {
  return typeName.startsWith('google.protobuf.');
}

function listCheck(field: DescField, check: ValueCheck): ValueCheck {
  const isApart = isEachApart(field);
  return (value, path, refused) => {
    if (!Array.isArray(value)) throw wrongValue(path, 'an array');
    for (const [at, each] of value.entries()) {
      try {
        check(each, `${path}[${at}]`, refused);
      } catch (error) {
        if (!isApart || !(error instanceof DomainError)) throw error;
        value[at] = {};
        const refusal = invalidField(lastName(error.field ?? path), error.message, error.reason);
        refused.push({ list: field.localName, at, refusal });
      }
    }
  };
}

function plainCheck(field: DescField): ValueCheck {
  if (field.enum !== undefined) return enumCheck(field.enum);
  switch (field.scalar) {
    case undefined:
      return decodedCheck(field, 'an RFC 3339 time, such as 2026-01-31T12:00:00Z');
    case ScalarType.STRING:
      return (value, path) => {
        if (typeof value !== 'string') throw wrongValue(path, 'a string');
        if (!value.isWellFormed()) throw wrongValue(path, 'a string of Unicode characters');
      };
    case ScalarType.BOOL:
      return (value, path) => {
        if (typeof value !== 'boolean') throw wrongValue(path, 'true or false');
      };
    case ScalarType.BYTES:
      return decodedCheck(field, 'base64');
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return decodedCheck(field, 'a number');
    default:
      return wholeNumberCheck(field);
  }
}

const MAX_INT32 = 0x7fff_ffff;
const DECIMAL = /^-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?$/;

function wholeNumberCheck(field: DescField): ValueCheck {
  const check = decodedCheck(field, 'a whole number');
  return (value, path, refused) => {
    // Nearly every number; the decoder takes much longer.
    if (Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_INT32) return;
    // The decoder takes what JavaScript does, such as 0x10.
    if (typeof value === 'string' && !DECIMAL.test(value)) throw wrongValue(path, 'a whole number');
    check(value, path, refused);
  };
}

function enumCheck(desc: DescEnum): ValueCheck {
  const known = new Set<unknown>(
    desc.values.flatMap(({ name, jsonName, number }) => [name, jsonName, number]),
  );
  const expected = `one of ${allowedNames(desc)}`;
  return (value, path) => {
    if (!known.has(value)) throw wrongValue(path, expected);
  };
}

/** Asks the decoder itself, by a message that has nothing but the value. */
function decodedCheck(field: DescField, expected: string): ValueCheck {
  return (value, path) => {
    try {
      fromJson(field.parent, { [field.name]: field.fieldKind === 'list' ? [value] : value });
    } catch {
      // The decoder's text quotes the value, and names Protobuf's types.
      throw wrongValue(path, expected);
    }
  };
}

function wrongValue(path: string, expected: string): DomainError {
  return invalidField(path, `${path} must be ${expected}.`);
}
