import { isDeepStrictEqual } from 'node:util';
import { create, type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { isEachApart, isLenient, isMistaken } from '../api/message-options.ts';
import { noteUnreadable } from '../api/unreadable.ts';
import { invalidField } from '../domain/errors.ts';
import { lastName } from '../domain/field-name.ts';
import { isJsonObject } from '../domain/is-json-object.ts';
import { badValue, GatewayError, unknownMember } from './gateway-error.ts';
import { compileTextParser, scalarTextParser } from './parse-scalar.ts';
import { type Fields, isNumberTrue, restFields, restName, TIMESTAMP } from './rest-fields.ts';

/** Converts a parsed JSON value to a field's value. Throws a 422 GatewayError that names `path`. */
export type ValueReader = (value: unknown, path: string) => unknown;

/** Sets fields of a message from the members of a JSON object; other fields stay. */
export type MessageReader = (target: Fields, json: object, path: string) => void;

const readers = new WeakMap<DescMessage, MessageReader>();

/**
 * Compiles the reader of a message: fields by REST name or lowerCamelCase, null the same as absent.
 * Unknown members of the body itself, of items and of crawl parameters are ignored, as clients of the
 * reference expect, unless {@link isMistaken} finds what they are meant for. Those of other objects are
 * refused: without the condition that a wrong name meant, a filter would select everything. Each message
 * type is compiled once.
 */
export function compileMessageReader(desc: DescMessage): MessageReader {
  const known = readers.get(desc);
  if (known !== undefined) return known;
  const members = new Map<string, { key: string; name: string; read: ValueReader }>();
  const ignoresUnknown = isLenient(desc);
  const fields = restFields(desc);
  const names = fields.map(restName);
  const reader: MessageReader = (target, json, path) => {
    const entries = Object.entries(json);
    for (const [name, value] of entries) {
      const member = members.get(name);
      if (member === undefined) {
        const isIgnored = path === '' || ignoresUnknown;
        if (isIgnored && !isMistaken(desc, name, names, entries.length)) continue;
        throw unknownMember(path, name, names, desc);
      }
      if (value === null) continue;
      if (name !== member.name && hasOther(json, member.name, value)) {
        throw badValue(prefix(path) + member.name, `given once, not as ${name} too`);
      }
      target[member.key] = member.read(value, prefix(path) + name);
    }
  };
  // Set before the fields are compiled, so that a recursive message finds itself.
  readers.set(desc, reader);
  for (const field of fields) {
    const name = restName(field);
    const member = { key: field.localName, name, read: compileValueReader(field) };
    members.set(field.jsonName, member);
    members.set(name, member);
  }
  return reader;
}

function prefix(path: string): string {
  return path === '' ? '' : `${path}.`;
}

/** Whether an object has another value than `value` under the other name of a field. */
function hasOther(json: object, name: string, value: unknown): boolean {
  const other = (json as Readonly<Record<string, unknown>>)[name];
  return Object.hasOwn(json, name) && other !== null && !isDeepStrictEqual(other, value);
}

/** Compiles the reader of a field's whole value. */
export function compileValueReader(field: DescField): ValueReader {
  if (field.fieldKind === 'list') return listReader(elementReader(field));
  if (field.fieldKind === 'map') return mapReader(field, singleReader(field));
  return singleReader(field);
}

function listReader(read: ValueReader): ValueReader {
  return (value, path) => {
    if (!Array.isArray(value)) throw badValue(path, 'an array');
    return value.map((each, index) => read(each, `${path}[${index}]`));
  };
}

/** Reads an element; where each is read apart, one that is wrong becomes an empty message with its refusal. */
function elementReader(field: DescField): ValueReader {
  const read = singleReader(field);
  const { message } = field;
  if (message === undefined || !isEachApart(field)) return read;
  return (value, path) => {
    try {
      return read(value, path);
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      const made = create(message);
      noteUnreadable(
        made,
        invalidField(lastName(error.field ?? path), error.message, error.reason),
      );
      return made;
    }
  };
}

function mapReader(field: DescField & { fieldKind: 'map' }, read: ValueReader): ValueReader {
  const parseKey = scalarTextParser(field.mapKey);
  return (value, path) => {
    if (!isJsonObject(value)) throw badValue(path, 'an object');
    const entries = Object.entries(value).map(([key, each]) => [
      String(parseKey(key, path)),
      read(each, `${path}.${key}`),
    ]);
    return Object.fromEntries(entries);
  };
}

function singleReader(field: DescField): ValueReader {
  if (field.message !== undefined && field.message.typeName !== TIMESTAMP) {
    const { message } = field;
    const read = compileMessageReader(message);
    return (value, path) => {
      if (!isJsonObject(value)) throw badValue(path, 'an object');
      const made = create(message) as Fields;
      read(made, value, path);
      return made;
    };
  }
  const parse = compileTextParser(field);
  if (parse === undefined) throw new Error(`${String(field)} has no REST form`);
  if (field.scalar === undefined) return textReader(parse);
  switch (field.scalar) {
    case ScalarType.STRING:
      return textReader(wellFormed);
    case ScalarType.BYTES:
      return textReader(parse);
    case ScalarType.BOOL:
      return (value, path) => {
        if (typeof value === 'boolean') return value;
        if (typeof value === 'number' && isNumberTrue(field)) return parse(String(value), path);
        throw badValue(path, 'true or false');
      };
    default:
      return numberReader(parse);
  }
}

/** A lone surrogate would become another character, so another URL would be crawled. */
function wellFormed(text: string, path: string): string {
  if (!text.isWellFormed()) throw badValue(path, 'a string of Unicode characters');
  return text;
}

function textReader(parse: (text: string, path: string) => unknown): ValueReader {
  return (value, path) => {
    if (typeof value !== 'string') throw badValue(path, 'a string');
    return parse(value, path);
  };
}

function numberReader(parse: (text: string, path: string) => unknown): ValueReader {
  return (value, path) => {
    // Protobuf's JSON mapping accepts numbers as strings too, and 64-bit numbers need it.
    if (typeof value !== 'number' && typeof value !== 'string') throw badValue(path, 'a number');
    return parse(String(value), path);
  };
}
