import type { FindCursor } from 'mongodb';
import { characters, type ListingPlace } from '../listing-cursor.ts';
import { LISTING_CHARACTERS } from '../listing-store.ts';

/** The condition of documents behind a position, in the order of `field` and then of their `_id`. */
export function behind(
  field: 'at' | 'due' | 'createdAt' | 'storedAt',
  start: ListingPlace | undefined,
  direction: 1 | -1 = 1,
): object {
  if (start === undefined) return {};
  const { at, rid } = start;
  const [beyond, within] =
    direction === 1 ? (['$gt', '$gte'] as const) : (['$lt', '$lte'] as const);
  return {
    [field]: { [within]: at },
    $or: [{ [field]: { [beyond]: at } }, { [field]: at, _id: { [beyond]: rid } }],
  };
}

/** Reads rows as long as they have few enough characters; the row that passes the limit is the last. */
export async function readLight<Row extends object>(cursor: FindCursor<Row>): Promise<Row[]> {
  const rows: Row[] = [];
  let room = LISTING_CHARACTERS;
  // Leaving the loop closes the cursor.
  for await (const row of cursor) {
    rows.push(row);
    room -= characters(row);
    if (room < 0) break;
  }
  return rows;
}
