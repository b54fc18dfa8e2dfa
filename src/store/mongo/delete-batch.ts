import type { Collection, Document, Filter, WithId } from 'mongodb';
import { databaseUnavailable } from '../../domain/errors.ts';
import { exists } from './find-ids.ts';

/** Tries to delete a document that is there. */
const MOST_DELETIONS = 20;

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

/**
 * Deletes a document, and returns what it was; undefined when it does not exist. A server that is only
 * compatible with MongoDB may find none while another command changes it (DocumentDB does), so the
 * deletion is tried again while the document is there.
 */
export async function deleteOne<T extends { readonly _id: string }>(
  collection: Collection<T>,
  _id: string,
  projection: Document = { _id: 1 },
): Promise<WithId<T> | undefined> {
  const filter = { _id } as Filter<T>;
  for (let tries = 0; tries < MOST_DELETIONS; tries += 1) {
    const gone = await collection.findOneAndDelete(filter, { projection });
    if (gone !== null) return gone;
    if (!(await exists(collection, filter))) return undefined;
  }
  throw databaseUnavailable('What is to be deleted is changed all the time. Try again.');
}
