import type { Db } from 'mongodb';
import { copyUnfinished } from '../../domain/errors.ts';

/** The progress of a copy of the embedded database, kept in `meta` of the target. */
export interface CopyDocument {
  readonly _id: 'copy';
  /** Per step: the key of the last row that was copied. */
  readonly positions: Readonly<Record<string, string>>;
  readonly done: boolean;
  /**
   * The service time that the source had saved, which changes with its writes. Absent in copies of
   * version 0.2.0 and before.
   */
  readonly savedMs?: number;
}

/** Throws for a database with a part of a copy. A service on it would make what the copy brings. */
export async function refuseUnfinishedCopy(db: Db): Promise<void> {
  const copies = db.collection<CopyDocument>('meta');
  // Nobody says that a copy of an older version is unfinished: a service may use it.
  const unfinished = { _id: 'copy', done: false, savedMs: { $exists: true } } as const;
  if ((await copies.findOne(unfinished)) !== null) throw copyUnfinished();
}
