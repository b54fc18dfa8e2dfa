import type { Collections } from './collections.ts';
import type { Lanes } from './lanes.ts';
import { setWake } from './lease.ts';
import { noteRemoval, sweepUp } from './removal.ts';
import { freeKeys } from './unique-keys.ts';

/** How long a purge sweeps up before it returns; `maintain` does the rest. */
const SWEEP_MS = 1_000;

/** See `QueueStore.deleteJobs`. */
export function deleteJobs(
  collections: Collections,
  lanes: Lanes,
  deletion: { readonly crawlerId: string; readonly rids: readonly string[]; readonly now: Date },
): Promise<string[]> {
  const { jobs } = collections;
  const { crawlerId, now } = deletion;
  const named = { _id: { $in: [...deletion.rids] }, crawlerId };
  return lanes.runExclusive(crawlerId, async () => {
    if ((await jobs.findOne(named, { projection: { _id: 1 } })) === null) return [];
    const deleted = await lanes.change(crawlerId, now, async (session, delta, gen) => {
      const found = await jobs
        .find(
          { ...named, $or: [{ state: 'running' }, { gen }] },
          { projection: { state: 1, size: 1, uniqueKey: 1 }, session },
        )
        .toArray();
      const rids = found.map(({ _id }) => _id);
      // What another write has changed since the snapshot is a conflict.
      await jobs.deleteMany({ _id: { $in: rids } }, { session });
      const gone = found.map(({ _id: rid, uniqueKey }) => ({ rid, uniqueKey }));
      await freeKeys(collections, crawlerId, gone, session);
      for (const { state, size = 0 } of found) {
        delta.move(size, state);
        delta.addTally({ counter: 'deleted', day: ['deleted'] });
      }
      return rids;
    });
    return deleted ?? [];
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
