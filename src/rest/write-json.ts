import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { FeatureSet_FieldPresence, type Timestamp } from '@bufbuild/protobuf/wkt';
import { enumNames } from './enum-names.ts';
import { restFields, restName, TIMESTAMP } from './rest-fields.ts';
import { formatTimestamp } from './timestamp.ts';

/** Writes one value as JSON text. */
export type ValueWriter = (value: unknown) => string;

const writers = new WeakMap<DescMessage, ValueWriter>();

/**
 * Compiles the writer of a message: fields by REST name in the order of the proto, enums by name,
 * 64-bit integers as numbers. Fields without presence, lists and maps are always written; absent
 * optional and message fields are omitted. It accepts an initializer as well as a message. Each
 * message type is compiled once.
 */
export function compileMessageWriter(desc: DescMessage): ValueWriter {
  const known = writers.get(desc);
  if (known !== undefined) return known;
  const members: ((message: Record<string, unknown>) => string)[] = [];
  const writer: ValueWriter = (value) => {
    const message = value as Record<string, unknown>;
    let text = '';
    for (const member of members) text += member(message);
    return text === '' ? '{}' : `{${text.slice(1)}}`;
  };
  // Set before the fields are compiled, so that a recursive message finds itself.
  writers.set(desc, writer);
  for (const field of restFields(desc)) {
    const key = field.localName;
    const name = `,${JSON.stringify(restName(field))}:`;
    const write = compileValueWriter(field);
    // Lists and maps count as implicit.
    const absent =
      field.presence === FeatureSet_FieldPresence.IMPLICIT ? name + write(zeroValue(field)) : '';
    members.push((message) => {
      const value = message[key];
      return value === undefined ? absent : name + write(value);
    });
  }
  return writer;
}

/** Compiles the writer of a field's whole value. */
export function compileValueWriter(field: DescField): ValueWriter {
  const write = singleWriter(field);
  if (field.fieldKind === 'list') {
    return (value) => `[${(value as unknown[]).map(write).join(',')}]`;
  }
  if (field.fieldKind === 'map') {
    return (value) => {
      const entries = Object.entries(value as object);
      return `{${entries.map(([key, each]) => `${JSON.stringify(key)}:${write(each)}`).join(',')}}`;
    };
  }
  return write;
}

function singleWriter(field: DescField): ValueWriter {
  if (field.message !== undefined) {
    if (field.message.typeName === TIMESTAMP) {
      return (value) => `"${formatTimestamp(value as Partial<Timestamp>)}"`;
    }
    return compileMessageWriter(field.message);
  }
  if (field.enum !== undefined) {
    const names = enumNames(field.enum);
    return (value) => JSON.stringify(names.toName(value as number));
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      return JSON.stringify;
    case ScalarType.BYTES:
      return (value) => `"${base64(value as Uint8Array)}"`;
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return (value) =>
        Number.isFinite(value) ? withFraction(value as number) : `"${String(value)}"`;
    default:
      // Booleans, and integers of any width: a bigint prints all its digits.
      return String;
  }
}

function zeroValue(field: DescField): unknown {
  if (field.fieldKind === 'list') return [];
  if (field.fieldKind === 'map') return {};
  if (field.enum !== undefined) return field.enum.values[0]?.number ?? 0;
  if (field.scalar === ScalarType.STRING) return '';
  if (field.scalar === ScalarType.BYTES) return new Uint8Array(0);
  return field.scalar === ScalarType.BOOL ? false : 0;
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

/** A number with a fraction, also where it is zero: strict readers tell it from an integer. */
function withFraction(value: number): string {
  const text = String(value);
  return Number.isInteger(value) && !text.includes('e') ? `${text}.0` : text;
}
