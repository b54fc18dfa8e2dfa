import { invalidPageToken } from '../domain/errors.ts';
import {
  LISTING_CHARACTERS,
  LISTING_SCAN,
  type Listing,
  type ListingPart,
} from './listing-store.ts';

/** How much one part takes. */
export interface PartLimits {
  readonly limit: number;
  /** Default {@link LISTING_SCAN}. */
  readonly scan?: number;
  /** Default no limit. */
  readonly maxMs?: number;
}

/** A row's position in a listing: by a moment, then by `rid`. */
export interface ListingPlace {
  readonly at: Date;
  readonly rid: string;
}

/** The position behind which a part begins; undefined for the first. Throws as {@link ListingPart} says. */
export function partStart({ cursor }: ListingPart): ListingPlace | undefined {
  if (cursor === undefined) return undefined;
  const [, ms, rid] = /^(\d{1,15})\.([0-9a-f]{24})$/.exec(cursor) ?? [];
  if (ms === undefined || rid === undefined) throw invalidPageToken();
  return { at: new Date(Number(ms)), rid };
}

/**
 * The same in a listing that begins at `from`. As the only lower bound it lets a database seek to it: with
 * two of them SQLite takes that of the range, and reads all rows of the earlier parts.
 */
export function partStartFrom(part: ListingPart, from: Date): ListingPlace {
  const start = partStart(part);
  return start === undefined || start.at < from ? { at: from, rid: '' } : start;
}

/** The length of a row's texts together. */
export function characters(row: object): number {
  return Object.values(row).reduce<number>(
    (sum, value) => (typeof value === 'string' ? sum + value.length : sum),
    0,
  );
}

/**
 * Takes those of the scanned rows that are wanted, as long as all have few enough characters.
 * `scanned` is at most `scan` rows from the start of the part on, in order; fewer mean that there are
 * no more. After `maxMs` no further row is taken. `last` is the row behind which the next part begins.
 */
export function takeRows<Row extends object>(
  scanned: Iterable<Row>,
  { limit, scan = LISTING_SCAN, maxMs = Number.POSITIVE_INFINITY }: PartLimits,
  isWanted: (row: Row) => boolean,
): { readonly rows: Row[]; readonly last: Row | undefined } {
  const rows: Row[] = [];
  const until = performance.now() + maxMs;
  let seen = 0;
  let room = LISTING_CHARACTERS;
  let last: Row | undefined;
  let isFull = false;
  for (const row of scanned) {
    seen += 1;
    room -= characters(row);
    last = row;
    if (isWanted(row)) rows.push(row);
    isFull = rows.length === limit || room < 0 || performance.now() > until;
    if (isFull) break;
  }
  const isEnd = !isFull && seen < scan;
  return { rows, last: isEnd ? undefined : last };
}

/** The same as a part of a listing that is ordered by `place`. */
export function takePart<Row extends object>(
  scanned: Iterable<Row>,
  limits: PartLimits,
  isWanted: (row: Row) => boolean,
  place: (row: Row) => ListingPlace,
): Listing<Row> {
  const { rows, last } = takeRows(scanned, limits, isWanted);
  if (last === undefined) return { rows, cursor: undefined };
  const { at, rid } = place(last);
  return { rows, cursor: `${at.getTime()}.${rid}` };
}

/** The same part with other rows. */
export function mapListing<From, To>(
  { rows, cursor }: Listing<From>,
  convert: (row: From) => To,
): Listing<To> {
  return { rows: rows.map(convert), cursor };
}
