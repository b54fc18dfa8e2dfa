import {
  create,
  type DescField,
  type DescMessage,
  type MessageShape,
  ScalarType,
} from '@bufbuild/protobuf';
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import { TimestampSchema, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { enumWord } from '../client/message-json.ts';
import { FieldError, usageError } from './cli-error.ts';

/** What the fields of a message are to the user. */
const WHAT: Readonly<Record<string, string>> = {
  CrawlParameters: 'crawl parameter',
  AccountLimits: 'limit',
};

/** Reads values written as `name=value`; `option` is the one that they were given by. */
export function parsePairs(option: string, texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf('=');
      if (at <= 0) throw usageError(`${option} must be name=value, not "${text}"`);
      return [text.slice(0, at), text.slice(at + 1)];
    }),
  );
}

/**
 * Makes a message from values by the names of its fields: texts, or JSON values. Empty and absent
 * ones are left out. Throws a FieldError for a value that cannot be accepted, and a CliError for a name
 * that no field has.
 */
export function fillMessage<Desc extends DescMessage>(
  desc: Desc,
  values: Readonly<Record<string, unknown>>,
): MessageShape<Desc> {
  const message = create(desc);
  const target = reflect(desc, message);
  for (const [name, value] of Object.entries(values)) {
    if (value === '' || value === null || value === undefined) continue;
    const field = desc.fields.find((each) => each.name === name);
    if (field === undefined)
      throw usageError(`there is no ${WHAT[desc.name] ?? 'field'} "${name}"`);
    target.set(field, parseValue(field, value));
  }
  return message;
}

function parseMoment({ name }: DescField, text: string): ReflectMessage {
  const moment = /^\d{4}-\d{2}-\d{2}T/.test(text) ? new Date(text) : undefined;
  if (moment !== undefined && !Number.isNaN(moment.getTime()))
    return reflect(TimestampSchema, timestampFromDate(moment));
  throw new FieldError(name, `${name} must be a time such as 2030-01-31T08:00:00Z, not "${text}"`);
}

function parseValue(field: DescField, value: unknown): unknown {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (field.message?.typeName === TimestampSchema.typeName) return parseMoment(field, text);
  if (field.enum !== undefined) {
    const desc = field.enum;
    const found = desc.values.find(({ number }) => enumWord(desc, number) === text);
    if (found !== undefined) return found.number;
    const words = desc.values
      .map(({ number }) => enumWord(desc, number))
      .filter((word) => word !== '');
    throw new FieldError(
      field.name,
      `${field.name} must be one of ${words.join(', ')}, not "${text}"`,
    );
  }
  switch (field.scalar) {
    case ScalarType.BOOL:
      if (text === 'true' || text === 'false') return text === 'true';
      throw new FieldError(field.name, `${field.name} must be true or false, not "${text}"`);
    case ScalarType.INT32:
      if (/^-?\d{1,9}$/.test(text)) return Number(text);
      throw new FieldError(field.name, `${field.name} must be a whole number, not "${text}"`);
    case ScalarType.INT64:
      if (/^-?\d{1,18}$/.test(text)) return BigInt(text);
      throw new FieldError(field.name, `${field.name} must be a whole number, not "${text}"`);
    case ScalarType.BYTES:
      return new TextEncoder().encode(text);
    default:
      return text;
  }
}
