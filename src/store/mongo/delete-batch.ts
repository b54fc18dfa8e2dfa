import type { Collection, Document, Filter } from 'mongodb';

/** What one batch found and removed. */
interface Removed<T> {
  readonly found: readonly T[];
  /** Fewer than were found if another process has removed some of them. */
  readonly count: number;
}

/**
 * Removes up to `limit` documents that match. One that has been changed since it was found goes only
 * if it still matches.
 */
export async function deleteBatch<T extends { readonly _id: string }>(
  collection: Collection<T>,
  filter: Filter<T>,
  limit: number,
  projection: Document = { _id: 1 },
): Promise<Removed<T>> {
  const found = (await collection.find(filter, { projection }).limit(limit).toArray()) as T[];
  if (found.length === 0) return { found, count: 0 };
  const _id = { $in: found.map((each) => each._id) };
  // By another index the database might read all that match once more.
  const { deletedCount: count } = await collection.deleteMany(
    { ...filter, _id },
    { hint: { _id: 1 } },
  );
  return { found, count };
}
