import type { Collection, Document, Filter, FindCursor } from 'mongodb';
import {
  characters,
  type ListingPlace,
  mapListing,
  partStart,
  takePart,
} from '../listing-cursor.ts';
import { LISTING_CHARACTERS, type Listing, type ListingPart } from '../listing-store.ts';

/** The moment by which a listing is ordered. */
type OrderField = 'at' | 'due' | 'createdAt' | 'storedAt';

/** How a part of a listing is read from a collection. */
interface PartRead<Row, To> {
  readonly field: OrderField;
  readonly direction?: 1 | -1;
  readonly projection?: Document;
  /** The most documents to look through; the limit of the part if absent. */
  readonly scan?: number;
  readonly toRow: (document: Row) => To;
  /** Whether a row that the filter finds is listed; all are if absent. */
  readonly isWanted?: (row: To) => boolean;
}

/** Reads a part of a listing, in the order of `field` and then of the `_id`s. */
export async function readPart<
  Stored extends { readonly _id: string },
  Row extends { readonly _id: string } & { readonly [field in OrderField]?: Date },
  To,
>(
  collection: Collection<Stored>,
  filter: object,
  part: ListingPart,
  read: PartRead<Row, To>,
): Promise<Listing<To>> {
  const { field, direction = 1, projection = {}, scan = part.limit, toRow } = read;
  const { isWanted = () => true } = read;
  const conditions = { $and: [filter, behind(field, partStart(part), direction)] };
  const cursor = collection
    .find<Row>(conditions as Filter<Stored>, { projection })
    .sort({ [field]: direction, _id: direction })
    .limit(scan);
  const listing = takePart(
    await readLight(cursor),
    { limit: part.limit, scan },
    (row) => isWanted(toRow(row)),
    (row) => ({ at: row[field] ?? new Date(0), rid: row._id }),
  );
  return mapListing(listing, toRow);
}

/** The condition of documents behind a position, in the order of `field` and then of their `_id`. */
export function behind(
  field: OrderField,
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
