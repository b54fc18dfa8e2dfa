import { expect, test } from 'vitest';
import { type ListingPlace, partStart, takePart } from '../../../src/store/listing-cursor.ts';

interface Row {
  readonly n: number;
}

const rows = Array.from({ length: 20 }, (_, n): Row => ({ n }));
const place = ({ n }: Row): ListingPlace => ({
  at: new Date(n),
  rid: n.toString(16).padStart(24, '0'),
});

/** Reads part by part what a query of at most `scan` rows would return; the number of calls, too. */
function readAll(limit: number, scan: number, isWanted: (row: Row) => boolean) {
  const found: number[] = [];
  let calls = 0;
  let cursor: string | undefined;
  do {
    const start = partStart({ limit, ...(cursor === undefined ? {} : { cursor }) });
    const first = start === undefined ? 0 : start.at.getTime() + 1;
    const scanned = rows.slice(first, first + scan);
    const part = takePart(scanned, { limit, scan }, isWanted, place);
    expect(part.rows.length).toBeLessThanOrEqual(limit);
    found.push(...part.rows.map(({ n }) => n));
    ({ cursor } = part);
    calls += 1;
  } while (cursor !== undefined);
  return { found, calls };
}

test.each([
  // Everything is wanted: full pages.
  [6, 20, (): boolean => true, 20, 4],
  // A page that is full at the very end is followed by an empty one.
  [5, 20, (): boolean => true, 20, 5],
  // Nothing is wanted: each call looks through as much as it may, and the next one continues behind
  // it.
  [5, 6, (): boolean => false, 0, 4],
  // One in seven is wanted: short pages, none is lost.
  [2, 5, ({ n }: Row): boolean => n % 7 === 0, 3, 5],
  // One query sees all of it.
  [9, 100, ({ n }: Row): boolean => n % 7 === 0, 3, 1],
])('pages of %i out of scans of %i rows', (limit, scan, isWanted, count, calls) => {
  const read = readAll(limit, scan, isWanted);
  expect(read.found).toEqual(rows.filter(isWanted).map(({ n }) => n));
  expect(read.found).toHaveLength(count);
  expect(read.calls).toBe(calls);
});
