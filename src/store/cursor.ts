import { invalidField } from '../domain/errors.ts';
import type { ListingPlace } from './listing-cursor.ts';
import type { ResultPlace, RidsPage } from './store.ts';

/** Where a page of a listing begins: behind `after`, or at the beginning of the order. */
export interface PageStart {
  readonly order: RidsPage['order'];
  readonly after: ListingPlace | undefined;
}

/**
 * Where a page begins. A page with a cursor keeps the order of the first. Throws `invalid` for a
 * cursor that no page has returned.
 */
export function parsePageStart({ order, cursor }: RidsPage): PageStart {
  if (cursor === undefined) return { order, after: undefined };
  const [, direction, ms, rid] = /^(asc|desc)\.(\d{1,15})\.([0-9a-f]{24})$/.exec(cursor) ?? [];
  if (rid === undefined) {
    throw invalidField('scroll_id', 'scroll_id must be the one of the page before.');
  }
  const after = { at: new Date(Number(ms)), rid };
  return { order: direction === 'asc' ? 'asc' : 'desc', after };
}

/**
 * A page of `rid`s, with the cursor of the next one unless this one has none. So a client that reads until
 * a page is empty comes to an end: without a cursor it would get the first page again.
 */
export function ridsPage(
  order: RidsPage['order'],
  found: readonly ListingPlace[],
): { readonly rids: string[]; readonly cursor: string | undefined } {
  const last = found.at(-1);
  return {
    rids: found.map((each) => each.rid),
    cursor: last === undefined ? undefined : `${order}.${last.at.getTime()}.${last.rid}`,
  };
}

/**
 * The number behind which reading the order begins. A place of another series, or ahead of `end`,
 * is from another database or from before a restored backup: reading begins anew.
 */
export function startOf(after: ResultPlace | undefined, end: ResultPlace): number {
  return after === undefined || after.series !== end.series || after.seq > end.seq ? 0 : after.seq;
}
