import { invalidPageToken } from '../domain/errors.ts';
import { integerInRange } from '../domain/limits.ts';

const DEFAULT_PAGE = 100;
/** Rows of a page, unless they may be large. */
export const MAX_PAGE = 1_000;

/** Rows of a page of jobs, results or deliveries, each of which may be tens of kilobytes. */
const MAX_PART = 200;

interface PageRequest {
  readonly pageSize: number;
  readonly pageToken: string;
}

/**
 * The page that a list request asks for (AIP-158): the number of rows, and the name after which
 * they start. Throws `invalid` naming the field.
 */
export function toPage(
  request: PageRequest,
  maxSize = MAX_PAGE,
): {
  readonly limit: number;
  readonly after: string;
} {
  const { pageSize, pageToken } = request;
  const limit = pageSize === 0 ? DEFAULT_PAGE : integerInRange('page_size', pageSize, 1, maxSize);
  return { limit, after: fromPageToken(pageToken) };
}

/** What {@link toPageToken} made a token of; empty for the first page. Throws `invalid`. */
export function fromPageToken(pageToken: string): string {
  const cursor = Buffer.from(pageToken, 'base64url').toString();
  if (toPageToken(cursor) !== pageToken) throw invalidPageToken();
  return cursor;
}

/**
 * The token of the page after these rows; empty when this page is not full, because then no row
 * follows.
 */
export function nextPageToken(rows: readonly { readonly name: string }[], limit: number): string {
  return rows.length < limit ? '' : toPageToken(rows.at(-1)?.name);
}

/** The part of a listing that a list request asks for. Throws as {@link toPage} does. */
export function toListingPart(
  request: PageRequest,
  maxSize = MAX_PART,
): { limit: number; cursor?: string } {
  const { limit, after } = toPage(request, maxSize);
  return { limit, ...(after === '' ? {} : { cursor: after }) };
}

/** The token of the next part; empty after the last one. */
export function toPageToken(cursor: string | undefined): string {
  return Buffer.from(cursor ?? '').toString('base64url');
}
