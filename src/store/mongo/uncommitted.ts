import type { ClientSession } from 'mongodb';
import type { Collections } from './collections.ts';

/**
 * Which of these results and deliveries belong to jobs that have not ended. They were written before
 * the end, and are not there yet for anybody who reads.
 */
export async function findUncommitted(
  collections: Pick<Collections, 'jobs'>,
  rids: readonly string[],
): Promise<Set<string>> {
  if (rids.length === 0) return new Set();
  const alive = await collections.jobs
    .find({ _id: { $in: [...rids] }, state: { $ne: 'ended' } }, { projection: { _id: 1 } })
    .toArray();
  return new Set(alive.map((each) => each._id));
}

/**
 * Removes the records of jobs that leave the queue without a result. Those that there are belong to
 * crawls whose end was never written: the process died, or lost its database, between the two.
 */
export async function removeRecords(
  collections: Collections,
  rids: readonly string[],
  session?: ClientSession,
): Promise<void> {
  const ofThese = { _id: { $in: [...rids] } };
  const inSession = session === undefined ? {} : { session };
  await collections.results.deleteMany(ofThese, inSession);
  await collections.deliveries.deleteMany(ofThese, inSession);
}

/** Removes records of crawls that were not finished. A record of a later attempt is kept. */
export async function removeUnfinished(
  collections: Collections,
  jobs: readonly { readonly _id: string; readonly attempt: number }[],
): Promise<void> {
  if (jobs.length === 0) return;
  const removals = jobs.map(({ _id, attempt }) => ({
    deleteOne: { filter: { _id, claim: { $lte: attempt } } },
  }));
  await Promise.all([
    collections.results.bulkWrite(removals, { ordered: false }),
    collections.deliveries.bulkWrite(removals, { ordered: false }),
  ]);
}
