import type { Filter } from 'mongodb';
import type { Collections, JobDocument } from './collections.ts';
import { exists } from './find-ids.ts';
import type { Lanes } from './lanes.ts';
import { setWake } from './lease.ts';
import { noteRemoval, sweepUp } from './removal.ts';
import { freeKeys } from './unique-keys.ts';

/** How long a purge sweeps up before it returns; `maintain` does the rest. */
const SWEEP_MS = 1_000;

/** Jobs of one crawler that are to be removed. */
interface Removal {
  readonly crawlerId: string;
  /** Matches them, by the number of the crawler's purges. */
  readonly which: (purges: number) => Filter<JobDocument>;
  /** The most of them; all if absent. */
  readonly limit?: number;
  /** What they count as. */
  readonly end: 'deleted' | 'purged';
  readonly now: Date;
}

/** Removes jobs in one transaction, and returns their `rid`s. */
export function removeJobs(
  collections: Collections,
  lanes: Lanes,
  { crawlerId, which, limit = 0, end, now }: Removal,
): Promise<string[]> {
  const { jobs } = collections;
  return lanes.runExclusive(crawlerId, async () => {
    const removed = await lanes.change(crawlerId, now, async (session, changes, purges) => {
      const found = await jobs
        .find(
          { crawlerId, ...which(purges) },
          { projection: { state: 1, size: 1, uniqueKey: 1 }, session },
        )
        .limit(limit)
        .toArray();
      const rids = found.map(({ _id }) => _id);
      // What another write has changed since the snapshot is a conflict.
      await jobs.deleteMany({ _id: { $in: rids } }, { session });
      const gone = found.map(({ _id: rid, uniqueKey }) => ({ rid, uniqueKey }));
      await freeKeys(collections, crawlerId, gone, 'removed', session);
      for (const each of found) changes.remove(each, end);
      return rids;
    });
    return removed ?? [];
  });
}

/** See `QueueStore.deleteJobs`. */
export async function deleteJobs(
  collections: Collections,
  lanes: Lanes,
  {
    crawlerId,
    rids,
    now,
  }: Pick<Removal, 'crawlerId' | 'now'> & { readonly rids: readonly string[] },
): Promise<string[]> {
  const _id = { $in: [...rids] };
  if (!(await exists(collections.jobs, { _id, crawlerId }))) return [];
  const which = (gen: number) => ({ _id, $or: [{ state: 'running' as const }, { gen }] });
  return removeJobs(collections, lanes, { crawlerId, which, end: 'deleted', now });
}

/**
 * One update of the crawler, whatever the length of its queue: jobs that were pushed before it are
 * gone, and their documents are swept up later. Then each part of the counters moves what it counts
 * as queued to what was purged.
 */
export async function purge(
  collections: Collections,
  lanes: Lanes,
  crawlerId: string,
  now: Date,
): Promise<number> {
  await noteRemoval(collections, crawlerId);
  const after = await collections.crawlers.findOneAndUpdate(
    { _id: crawlerId },
    { $inc: { purges: 1, wakes: 1 } },
    { returnDocument: 'after', projection: { purges: 1 } },
  );
  if (after === null) return 0;
  const purged = await lanes.raise(crawlerId, after.purges, now);
  const until = performance.now() + SWEEP_MS;
  // What is left undone here is done by `maintain`.
  await setWake(collections, crawlerId).catch(() => undefined);
  await sweepUp(collections, crawlerId, () => performance.now() < until).catch(() => undefined);
  return Math.max(0, purged);
}
