import type { Collections } from './collections.ts';
import type { Lanes } from './lanes.ts';
import { setWake } from './lease.ts';
import { noteRemoval, sweepUp } from './removal.ts';
import { freeKeys } from './unique-keys.ts';

/** How long a purge sweeps up before it returns; `maintain` does the rest. */
const SWEEP_MS = 1_000;

/** See `QueueStore.deleteJob`. */
export function deleteJob(
  collections: Collections,
  lanes: Lanes,
  { crawlerId, rid, now }: { readonly crawlerId: string; readonly rid: string; readonly now: Date },
): Promise<boolean> {
  const { jobs } = collections;
  return lanes.runExclusive(crawlerId, async () => {
    const job = await jobs.findOne({ _id: rid, crawlerId }, { projection: { _id: 1 } });
    if (job === null) return false;
    const deleted = await lanes.change(crawlerId, now, async (session, delta, gen) => {
      const gone = await jobs.findOneAndDelete(
        { _id: rid, $or: [{ state: 'running' }, { gen }] },
        { projection: { state: 1, size: 1, uniqueKey: 1 }, session },
      );
      if (gone === null) return false;
      await freeKeys(collections, crawlerId, [{ ...gone, rid }], session);
      delta.move(gone.size ?? 0, gone.state);
      delta.addTally({ counter: 'deleted', day: ['deleted'] });
      return true;
    });
    return deleted === true;
  });
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
