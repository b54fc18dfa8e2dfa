import type { HeaderPair } from './job.ts';

/** The name of a header (RFC 9110, 5.1). */
export const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** The value of a header in Latin-1: tab, printable ASCII, and everything above (RFC 9110, 5.5). */
export const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Headers, in lower case, that belong to one connection (RFC 9110, 7.6.1), to the framing of a
 * message, or change how the exchange proceeds. Only the code that owns the connection sets them.
 */
export const CONNECTION_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Splits `name:value|name2:value2`. White space around names and values is removed, empty parts are
 * skipped, and a part without a colon has an empty name.
 */
export function splitHeaderList(text: string): [name: string, value: string][] {
  const parts = text.split('|').filter((part) => part.trim() !== '');
  return parts.map((part) => {
    const colon = part.indexOf(':');
    return [part.slice(0, Math.max(colon, 0)).trim(), part.slice(colon + 1).trim()];
  });
}

/**
 * `text` in a form that a header can carry: everything but printable ASCII is percent-encoded as
 * UTF-8. A lone surrogate, which has no UTF-8 form, becomes that of the replacement character.
 */
export function toHeaderText(text: string): string {
  return text.replace(/[^\x20-\x7e]+/g, (run) => encodeURIComponent(run.toWellFormed()));
}

/** A URL in a form that a header can carry: as {@link toHeaderText}, and without spaces. */
export function toHeaderUrl(url: string): string {
  return toHeaderText(url.trim()).replaceAll(' ', '%20');
}

/**
 * The token of an `Authorization: Bearer` header (RFC 6750, 2.1); undefined for any other value.
 */
export function parseBearer(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : /^bearer +(\S+) *$/i.exec(authorization)?.[1];
}

/**
 * Characters of the headers that report a result. With the other headers, and a request line of the
 * longest callback URL, the whole head is then within the 16 KiB that Node takes by default.
 */
const MAX_REPORT_CHARACTERS = 13_000;

/** The first headers, and of the others, in their order, those for which there is room. */
export function withinRoom(
  first: readonly HeaderPair[],
  others: readonly HeaderPair[],
): HeaderPair[] {
  const headers = [...first];
  let room = MAX_REPORT_CHARACTERS - first.reduce((sum, header) => sum + headerLength(header), 0);
  for (const header of others) {
    const length = headerLength(header);
    if (length > room) continue;
    room -= length;
    headers.push(header);
  }
  return headers;
}

/** Colon, space and line break included. */
function headerLength([name, value]: HeaderPair): number {
  return name.length + value.length + 4;
}
