import type { Collection, Filter, FindOptions } from 'mongodb';

type Options = Pick<FindOptions, 'sort' | 'skip' | 'limit' | 'session'>;

/** The identifiers of the documents that match. */
export function findIds<T extends { readonly _id: string }>(
  collection: Collection<T>,
  filter: Filter<T>,
  options: Options = {},
): Promise<string[]> {
  const cursor = collection.find<T>(filter, { ...options, projection: { _id: 1 } });
  return cursor.map(({ _id }) => _id).toArray();
}

/** Whether a document matches. */
export async function exists<T extends { readonly _id: string }>(
  collection: Collection<T>,
  filter: Filter<T>,
  options: Options = {},
): Promise<boolean> {
  return (await collection.findOne<T>(filter, { ...options, projection: { _id: 1 } })) !== null;
}
