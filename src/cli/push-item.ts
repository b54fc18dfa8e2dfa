import {
  type CrawlParameters,
  CrawlParametersSchema,
} from '../../gen/queuedcrawler/v1/crawl_parameters_pb.ts';
import { type PushItem, PushItemSchema } from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import { FieldError } from './cli-error.ts';
import { fillMessage, parsePairs } from './fill-message.ts';

/** The names of all crawl parameters. */
const PARAMETER_NAMES: readonly string[] = CrawlParametersSchema.fields.map(({ name }) => name);

/** The other columns and keys that a URL to push may have. */
const ITEM_NAMES: readonly string[] = PushItemSchema.fields
  .map(({ name }) => name)
  .filter((name) => name !== 'parameters');

/** Says which of the names is that of no field and no parameter of a push; undefined when each is. */
export function unknownName(names: readonly string[]): string | undefined {
  const unknown = names.find(
    (name) => !ITEM_NAMES.includes(name) && !PARAMETER_NAMES.includes(name),
  );
  if (unknown === undefined) return undefined;
  return `"${unknown}" is neither a field of a push nor a crawl parameter`;
}

/**
 * Reads crawl parameters written as `name=value`. Throws a CliError that names the one that cannot
 * be accepted.
 */
export function parseParameters(texts: readonly string[]): CrawlParameters {
  return fillMessage(CrawlParametersSchema, parsePairs('--param', texts));
}

/**
 * Reads one URL to push: `url`, the fields of a push, and crawl parameters, from texts or JSON
 * values. An empty text is absent. `defaults` are the parameters that it has unless it names them.
 * Throws a FieldError for a value that cannot be accepted, and for a key that no push has.
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
    else throw new FieldError(key, unknownName([key]) ?? '');
  }
  if (typeof own.url !== 'string' || own.url === '')
    throw new FieldError('url', '"url" is missing');
  const item = fillMessage(PushItemSchema, own);
  item.parameters = { ...defaults, ...fillMessage(CrawlParametersSchema, parameters) };
  return item;
}
