import { type DescEnum, type DescField, ScalarType } from '@bufbuild/protobuf';
import { enumNames } from './enum-names.ts';
import { badValue } from './gateway-error.ts';
import { isNumberTrue, TIMESTAMP } from './rest-fields.ts';
import { parseTimestamp } from './timestamp.ts';

/** Parses a value from text. Throws a 422 GatewayError that names `path`. */
export type TextParser = (text: string, path: string) => unknown;

const booleans: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['True', true],
  ['TRUE', true],
  ['1', true],
  ['false', false],
  ['False', false],
  ['FALSE', false],
  ['0', false],
]);

const MAX_UINT32 = 0xffff_ffff;
const MAX_INT32 = 0x7fff_ffff;

/**
 * Compiles the parser of one value of a scalar, enum or Timestamp field; undefined for other
 * messages.
 */
export function compileTextParser(field: DescField): TextParser | undefined {
  if (field.enum !== undefined) return enumParser(field.enum);
  if (field.message !== undefined) {
    return field.message.typeName === TIMESTAMP ? timestampParser : undefined;
  }
  if (field.scalar === undefined) return undefined;
  const parse = scalarTextParser(field.scalar);
  if (!isNumberTrue(field)) return parse;
  return (text, path) => (/^[1-9]\d{0,8}$/.test(text) ? true : parse(text, path));
}

/** Compiles the parser of one scalar value. */
export function scalarTextParser(scalar: ScalarType): TextParser {
  switch (scalar) {
    case ScalarType.STRING:
      return (text) => text;
    case ScalarType.BOOL:
      return (text, path) => {
        const value = booleans.get(text);
        if (value === undefined)
          throw badValue(path, 'true or false', { allowed: ['true', 'false'] });
        return value;
      };
    case ScalarType.BYTES:
      return parseBase64;
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return (text, path) => {
        const value = /^-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(text)
          ? Number(text)
          : Number.NaN;
        if (!Number.isFinite(value)) throw badValue(path, 'a number');
        return value;
      };
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return integerParser(0, MAX_UINT32);
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return integerParser(-MAX_INT32 - 1, MAX_INT32);
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return longParser(0n, 2n ** 64n - 1n);
    default:
      return longParser(-(2n ** 63n), 2n ** 63n - 1n);
  }
}

function integerParser(min: number, max: number): TextParser {
  return (text, path) => {
    const value = /^-?\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) throw badValue(path, 'a whole number');
    // Zero has no sign here, although JSON and protobuf distinguish -0.
    return value === 0 ? 0 : value;
  };
}

function longParser(min: bigint, max: bigint): TextParser {
  return (text, path) => {
    const value = /^-?\d{1,20}$/.test(text) ? BigInt(text) : undefined;
    if (value === undefined || value < min || value > max) throw badValue(path, 'a whole number');
    return value;
  };
}

function enumParser(desc: DescEnum): TextParser {
  const names = enumNames(desc);
  const expected = `one of ${names.requestWords.join(', ')}`;
  return (text, path) => {
    const value = names.valueOf(text);
    if (value === undefined) throw badValue(path, expected, { allowed: names.requestWords });
    return value;
  };
}

function timestampParser(text: string, path: string): unknown {
  const parts = parseTimestamp(text);
  if (parts === undefined) throw badValue(path, 'an RFC 3339 time, such as 2026-01-31T12:00:00Z');
  return { $typeName: TIMESTAMP, ...parts };
}

function parseBase64(text: string, path: string): Uint8Array {
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(text)) throw badValue(path, 'base64');
  return new Uint8Array(Buffer.from(text, 'base64'));
}
