import { createHash } from 'node:crypto';
import { invalidField } from './errors.ts';
import type { CrawlRequest } from './job.ts';

/** The key that no other job of its crawler has while it holds. */
export interface UniqueKey {
  /** A hash of what the client gave, or of the request. */
  readonly key: string;
  /** Until when it holds, by the service time; while the job waits or is crawled if undefined. */
  readonly until?: Date | undefined;
}

const MAX_KEY_CHARACTERS = 256;

/** Throws `invalid` for a given key that is too long. */
export function assertKeyLength(given: string): void {
  if (given.length <= MAX_KEY_CHARACTERS) return;
  throw invalidField('unique_key', `unique_key must be at most ${MAX_KEY_CHARACTERS} characters.`);
}

/**
 * The key that a client gave. If it is empty, that of the request: its URL in a normal form, for other
 * methods than GET with the method and the body.
 */
export function uniqueKey(given: string, { url, method, body }: CrawlRequest): string {
  const hash = createHash('sha256');
  if (given !== '') return hash.update(given).digest('base64url');
  hash.update(normalUrl(url));
  if (method !== 'GET') hash.update(`\n${method}\n`).update(body ?? '');
  return hash.digest('base64url');
}

/**
 * A URL in the form by which URLs are compared: host in lower case, no default port, no fragment, and
 * the query sorted by name. Parameters of the same name keep their order. Escapes such as `%e9` are in upper case
 * and not decoded: bytes that are not UTF-8 would all become the same.
 */
export function normalUrl(given: string): string {
  const url = new URL(given);
  url.hash = '';
  const parameters = url.search.slice(1).split('&');
  const named = parameters.map((text) => ({ name: text.split('=', 1)[0] ?? '', text }));
  named.sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
  url.search = named.map((each) => each.text).join('&');
  return url.href.replace(/%[0-9a-f]{2}/gi, (escape) => escape.toUpperCase());
}
