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
 * the query sorted by name. Parameters of the same name keep their order.
 */
export function normalUrl(text: string): string {
  const url = new URL(text);
  url.hash = '';
  url.searchParams.sort();
  if (url.search === '') url.search = '';
  return url.href;
}
