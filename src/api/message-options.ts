import {
  type DescEnum,
  type DescEnumValue,
  type DescField,
  type DescMessage,
  getOption,
} from '@bufbuild/protobuf';
import { CrawlParametersSchema } from '../../gen/queuedcrawler/v1/crawl_parameters_pb.ts';
import { each_apart, reply_only } from '../../gen/queuedcrawler/v1/options_pb.ts';
import { PushItemSchema } from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import { meantName } from '../domain/misspelt-name.ts';

const LENIENT: ReadonlySet<string> = new Set(
  [PushItemSchema, CrawlParametersSchema].map(({ typeName }) => typeName),
);

/**
 * Whether unknown members of the message are ignored in JSON. Clients of the reference send
 * parameters that this service does not have, and programs add data of their own to an item.
 */
export function isLenient(desc: Pick<DescMessage, 'typeName'>): boolean {
  return LENIENT.has(desc.typeName);
}

/** An object with more members was not written by hand, and comparing each of them takes long. */
const MAX_COMPARED = 40;

/** What belongs next to the crawl parameters of an item. */
const OF_ITEMS: ReadonlySet<string> = new Set(
  PushItemSchema.fields
    .filter(({ name }) => name !== 'url')
    .flatMap(({ name, jsonName }) => [name, jsonName]),
);

/** The members of objects within a message, each with where it belongs. */
const innerPlaces = new WeakMap<DescMessage, ReadonlyMap<string, string>>();

function innerOf(desc: DescMessage): ReadonlyMap<string, string> {
  const known = innerPlaces.get(desc);
  if (known !== undefined) return known;
  const places = new Map<string, string>();
  // Set before, so that a recursive message finds itself.
  innerPlaces.set(desc, places);
  for (const field of desc.fields) {
    const { message, name: place } = field;
    if (message === undefined || message.typeName.startsWith('google.')) continue;
    // What belongs to one of several is no member that was only misplaced, but for items.
    if (field.fieldKind === 'list' && !isEachApart(field)) continue;
    for (const [name, inner] of innerOf(message)) places.set(name, `${place}.${inner}`);
    for (const { name, jsonName } of message.fields) places.set(name, place).set(jsonName, place);
  }
  return places;
}

/**
 * Where a member belongs that the message does not have: in crawl parameters next to them, in the body
 * into one of its objects. Undefined for others, and for items, which may have data of their own.
 */
function placeOf(desc: DescMessage, name: string): string | undefined {
  if (desc.typeName === CrawlParametersSchema.typeName) {
    return OF_ITEMS.has(name) ? 'the item' : undefined;
  }
  return isLenient(desc) ? undefined : innerOf(desc).get(name);
}

/**
 * Whether a member that the message does not have, in an object of `count` members, was meant for one
 * that exists. It is a misspelt one of `known`, or it belongs elsewhere. It is refused
 * also where others are ignored: a crawler with `callback_ur` would keep its results in storage. Other
 * services have crawl parameters with similar names, so these may be misspelt.
 */
export function isMistaken(
  desc: DescMessage,
  name: string,
  known: readonly string[],
  count: number,
): boolean {
  if (placeOf(desc, name) !== undefined) return true;
  if (desc.typeName === CrawlParametersSchema.typeName) return false;
  return count <= MAX_COMPARED && meantName(name, known) !== undefined;
}

/** Whether elements of this list that cannot be read from JSON are refused by themselves. */
export function isEachApart(field: DescField): boolean {
  return getOption(field, each_apart);
}

/** Whether only replies have the value. */
export function isReplyOnly(value: DescEnumValue): boolean {
  return getOption(value, reply_only);
}

/** The names that a request may have for an enum, for an error; the first stands for none. */
export function allowedNames({ values }: DescEnum): string {
  return values
    .filter((value) => value.number !== 0 && !isReplyOnly(value))
    .map(({ name }) => name)
    .join(', ');
}

/** Of a name that a client has sent, this much is told in an error. */
export const NAMED_CHARACTERS = 100;

/**
 * The text of the refusal of a member that the object at `path` does not have; `known` are those it has. With the
 * type of the object it says where the member belongs.
 */
export function unknownMemberText(
  path: string,
  name: string,
  known: readonly string[],
  desc?: DescMessage,
): string {
  const holder = path === '' ? 'The message' : path;
  const told = JSON.stringify(name.slice(0, NAMED_CHARACTERS));
  const place = desc && placeOf(desc, name);
  const meant = meantName(name, known);
  const question = meant === undefined ? '' : ` Did you mean ${meant}?`;
  const hint = place === undefined ? question : ` It belongs into ${place}.`;
  return `${holder} has no member ${told}; it has ${known.join(', ')}.${hint}`;
}
