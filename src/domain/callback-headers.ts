import { type DomainError, invalidField } from './errors.ts';
import { CONNECTION_HEADERS, HEADER_NAME } from './header-rules.ts';
import type { HeaderPair } from './job.ts';
import { RESULT_FIELDS, type ResultField } from './result-fields.ts';

/** Most headers of one push. */
const MAX_HEADERS = 32;
/**
 * Most characters of all names and values together. With the URL and the headers of the delivery
 * itself, they stay within the 16 KiB that Node's HTTP server accepts.
 */
const MAX_CHARACTERS = 4_096;

/** Stricter than HTTP: the control characters in the upper half of Latin-1 are refused, too. */
const VALUE = /^[\t\x20-\x7e\xa0-\xff]*$/;

/** The headers that a delivery sets itself, in addition to the fields of its result. */
const MESSAGE_HEADERS = [
  'User-Agent',
  'Content-Type',
  'Content-Encoding',
  'webhook-again-of',
  'webhook-batch',
  'webhook-climbed',
  'webhook-crawled-at',
  'webhook-event',
  'webhook-id',
  'webhook-results',
  'webhook-rung',
  'webhook-timestamp',
  'webhook-signature',
] as const;

/**
 * A header that a delivery sets itself. Its name is listed here or is a field of the result, so a
 * header that clients could set as well does not compile.
 */
export type DeliveryHeader = readonly [
  name: (typeof MESSAGE_HEADERS)[number] | ResultField | StatusSpelling,
  value: string,
];

/** The second spelling of a status: some proxies drop names with underscores. */
export type StatusSpelling = 'CB-Status' | 'PC-Status' | 'Original-Status';

const RESERVED: ReadonlySet<string> = new Set(
  // The last one is a field of stored results.
  [...MESSAGE_HEADERS, ...RESULT_FIELDS, 'stored_at'].map(folded),
);
const RESERVED_PREFIXES = ['content-', 'original-', 'webhook-'];

/**
 * Whether a delivery sets the header itself or must not carry it. `-` and `_` count as equal, as
 * they do for receivers behind CGI-like gateways: otherwise `Cb_Status` could pass as the
 * delivery's own header.
 */
export function isReservedHeader(name: string): boolean {
  const header = folded(name);
  return (
    CONNECTION_HEADERS.has(header) ||
    RESERVED.has(header) ||
    RESERVED_PREFIXES.some((prefix) => header.startsWith(prefix))
  );
}

function folded(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}

/**
 * Parses `callback_headers` in either of its two formats. The text is split at `|`; when every part
 * has the form `header-name:rest`, each is a header (`name:value|name2:value2`), else names and
 * values alternate (`name|value|name2|value2`). One empty part at the end is ignored; an empty text
 * means no headers. Names keep their spelling; white space around names and values is removed.
 *
 * Throws `invalid` naming `callback_headers` for a text in neither format, an illegal name or
 * value, or a reserved header ({@link isReservedHeader}). Also for more than 32 headers, or more
 * than 4,096 characters of names and values.
 */
export function parseCallbackHeaders(text: string): HeaderPair[] {
  if (text.trim() === '') return [];
  const pairs = splitPairs(text);
  if (pairs.length > MAX_HEADERS) throw refuse(`at most ${MAX_HEADERS} headers are allowed`);
  let characters = 0;
  for (const [name, value] of pairs) {
    assertHeader(name, value);
    characters += name.length + value.length;
  }
  if (characters > MAX_CHARACTERS) {
    throw refuse(`names and values together may have at most ${MAX_CHARACTERS} characters`);
  }
  return pairs;
}

/** Headers as a push names them. */
export function callbackHeadersText(headers: readonly HeaderPair[]): string {
  return headers.map(([name, value]) => `${name}:${value}`).join('|');
}

function splitPairs(text: string): HeaderPair[] {
  const parts = text.split('|').map(trimOptionalSpace);
  const withoutLast = parts.at(-1) === '' ? parts.slice(0, -1) : parts;
  if (withoutLast.every((part) => HEADER_NAME.test(splitAtColon(part)[0]))) {
    return withoutLast.map(splitAtColon);
  }
  const alternating = parts.length % 2 === 0 ? parts : withoutLast;
  if (alternating.length % 2 !== 0) {
    throw refuse('write name|value|name|value or name:value|name:value');
  }
  const pairs: HeaderPair[] = [];
  for (let at = 0; at < alternating.length; at += 2) {
    pairs.push([alternating[at] ?? '', alternating[at + 1] ?? '']);
  }
  return pairs;
}

/** The name and value in `name:value`; an empty name where there is no colon. */
function splitAtColon(part: string): HeaderPair {
  const colon = part.indexOf(':');
  return [
    trimOptionalSpace(part.slice(0, Math.max(colon, 0))),
    trimOptionalSpace(part.slice(colon + 1)),
  ];
}

// Not `String.trim`, which also removes line breaks, which must be refused; not a regular
// expression, which needs quadratic time for a long run of spaces.
function trimOptionalSpace(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isOptionalSpace(text[start])) start += 1;
  while (end > start && isOptionalSpace(text[end - 1])) end -= 1;
  return text.slice(start, end);
}

function isOptionalSpace(character: string | undefined): boolean {
  return character === ' ' || character === '\t';
}

function assertHeader(name: string, value: string): void {
  if (!HEADER_NAME.test(name)) throw refuse(`${quoted(name)} is not a header name`);
  if (!VALUE.test(value)) {
    throw refuse(`the value of ${quoted(name)} holds characters that a header cannot carry`);
  }
  if (isReservedHeader(name)) {
    throw refuse(`${quoted(name)} is set by the delivery or by HTTP itself`);
  }
}

function quoted(name: string): string {
  return JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}...` : name);
}

function refuse(problem: string): DomainError {
  return invalidField('callback_headers', `callback_headers: ${problem}.`);
}
