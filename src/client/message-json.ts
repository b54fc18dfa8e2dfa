import { type DescField, type DescMessage, getOption, hasOption } from '@bufbuild/protobuf';
import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import { rest_name } from '../../gen/queuedcrawler/v1/options_pb.ts';

/**
 * A message as plain JSON in the words of the REST API: fields by their names in the proto, enums by
 * their words, moments in ISO 8601, bytes in base64. Absent fields are left out.
 */
export function toPlain(desc: DescMessage, message: object): Record<string, unknown> {
  const record = message as Record<string, unknown>;
  return Object.fromEntries(
    desc.fields.flatMap((field) => {
      const value = record[field.localName];
      return value === undefined ? [] : [[field.name, plainField(field, value)]];
    }),
  );
}

/** A value of a message or of `toPlain` as a text for people; empty when it is absent. */
export function plainText(value: unknown): string {
  if (value === undefined) return '';
  if (typeof value === 'bigint') return String(value);
  return typeof value === 'string' ? value : jsonText(value);
}

/** The value as JSON. An int64 field of a message is a number, as `toPlain` has it. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, (_key, each: unknown) =>
    typeof each === 'bigint' ? Number(each) : each,
  );
}

/** The word of an enum's value, as REST has it. */
export function enumWord(desc: NonNullable<DescField['enum']>, value: number): string {
  const found = desc.values.find((each) => each.number === value);
  return found !== undefined && hasOption(found, rest_name)
    ? getOption(found, rest_name)
    : String(value);
}

function plainField(field: DescField, value: unknown): unknown {
  if (field.fieldKind === 'list') {
    return (value as unknown[]).map((each) => plainValue(field, each));
  }
  if (field.fieldKind === 'map') {
    return Object.fromEntries(
      Object.entries(value as object).map(([key, each]) => [key, plainValue(field, each)]),
    );
  }
  return plainValue(field, value);
}

function plainValue(field: DescField, value: unknown): unknown {
  if (field.message?.typeName === 'google.protobuf.Timestamp') {
    return timestampDate(value as Timestamp).toISOString();
  }
  if (field.message !== undefined) return toPlain(field.message, value as object);
  if (field.enum !== undefined) return enumWord(field.enum, value as number);
  if (typeof value === 'bigint') return Number(value);
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value;
}
