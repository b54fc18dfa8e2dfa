import {
  create,
  type DescField,
  type DescMessage,
  type MessageShape,
  ScalarType,
} from '@bufbuild/protobuf';
import { reflect } from '@bufbuild/protobuf/reflect';
import {
  type CrawlParameters,
  CrawlParametersSchema,
} from '../../gen/queuedcrawler/v1/crawl_parameters_pb.ts';
import { type PushItem, PushItemSchema } from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import { usageError } from './cli-error.ts';
import { enumWord } from './message-json.ts';

/** The names of all crawl parameters. */
export const PARAMETER_NAMES: readonly string[] = CrawlParametersSchema.fields.map(
  ({ name }) => name,
);

/** The other columns and keys that a URL to push may have. */
export const ITEM_NAMES: readonly string[] = PushItemSchema.fields
  .map(({ name }) => name)
  .filter((name) => name !== 'parameters');

/**
 * Reads crawl parameters written as `name=value`. Throws a CliError that names the one that cannot
 * be accepted.
 */
export function parseParameters(texts: readonly string[]): CrawlParameters {
  const values = texts.map((text) => {
    const at = text.indexOf('=');
    if (at <= 0) throw usageError(`--param must be name=value, not "${text}"`);
    return [text.slice(0, at), text.slice(at + 1)] as const;
  });
  return fill(CrawlParametersSchema, Object.fromEntries(values));
}

/**
 * Reads one URL to push: `url`, the fields of a push, and crawl parameters, from texts or JSON
 * values. An empty text is absent. `defaults` are the parameters that it has unless it names them.
 * Throws a CliError that names the key that cannot be accepted.
 */
export function parseItem(
  values: Readonly<Record<string, unknown>>,
  defaults: CrawlParameters,
): PushItem {
  const own: Record<string, unknown> = {};
  const parameters: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(values)) {
    if (ITEM_NAMES.includes(key)) own[key] = value;
    else if (PARAMETER_NAMES.includes(key)) parameters[key] = value;
    else throw usageError(`"${key}" is neither a field of a push nor a crawl parameter`);
  }
  if (typeof own.url !== 'string' || own.url === '') throw usageError('"url" is missing');
  const item = fill(PushItemSchema, own);
  item.parameters = { ...defaults, ...fill(CrawlParametersSchema, parameters) };
  return item;
}

function fill<Desc extends DescMessage>(
  desc: Desc,
  values: Readonly<Record<string, unknown>>,
): MessageShape<Desc> {
  const message = create(desc);
  const target = reflect(desc, message);
  for (const [name, value] of Object.entries(values)) {
    if (value === '' || value === null || value === undefined) continue;
    const field = desc.fields.find((each) => each.name === name);
    if (field === undefined) throw usageError(`there is no crawl parameter "${name}"`);
    target.set(field, parseValue(field, value));
  }
  return message;
}

function parseValue(field: DescField, value: unknown): unknown {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (field.enum !== undefined) {
    const desc = field.enum;
    const found = desc.values.find(({ number }) => enumWord(desc, number) === text);
    if (found !== undefined) return found.number;
    const words = desc.values
      .map(({ number }) => enumWord(desc, number))
      .filter((word) => word !== '');
    throw usageError(`${field.name} must be one of ${words.join(', ')}, not "${text}"`);
  }
  switch (field.scalar) {
    case ScalarType.BOOL:
      if (text === 'true' || text === 'false') return text === 'true';
      throw usageError(`${field.name} must be true or false, not "${text}"`);
    case ScalarType.INT32:
      if (/^-?\d{1,9}$/.test(text)) return Number(text);
      throw usageError(`${field.name} must be a whole number, not "${text}"`);
    case ScalarType.BYTES:
      return new TextEncoder().encode(text);
    default:
      return text;
  }
}
