import type { QueuedJob } from '../../domain/job.ts';
import { toDay } from '../../domain/stats.ts';
import type { Collections, Tombstone } from './collections.ts';
import { setWake } from './lease.ts';
import { type Ledger, readGenerations } from './ledger.ts';
import { noteRemoval, removeRecordsOf, sweepUp } from './removal.ts';
import { batchFields, tombstoneUpdate } from './tombstones.ts';

/** How long a purge sweeps up before it returns; `maintain` does the rest. */
const SWEEP_MS = 1_000;

/** See `QueueStore.deleteJob`. */
export function deleteJob(
  collections: Collections,
  ledger: Ledger,
  { crawlerId, rid, now }: { readonly crawlerId: string; readonly rid: string; readonly now: Date },
): Promise<boolean> {
  return ledger.runExclusive(crawlerId, async () => {
    const crawler = await readGenerations(collections, crawlerId);
    if (crawler === null) return false;
    const batch = ledger.newBatch();
    const before = await collections.jobs.findOneAndUpdate(
      {
        _id: rid,
        crawlerId,
        $or: [{ state: 'running' }, { queued: true, gen: crawler.purges }],
      },
      tombstoneUpdate('deleted', now, batch),
      { returnDocument: 'before', projection: { state: 1, gen: 1, size: 1 } },
    );
    if (before === null) return false;
    // If this fails, whoever recovers the tombstone does it.
    await removeRecordsOf(collections, crawlerId, [rid], now);
    const from = before.state as QueuedJob['state'];
    const { size = 0 } = before;
    const named = batchFields(batch);
    const tombstone: Tombstone = { from, end: 'deleted', size, endedAt: now, ...named };
    const ended = [{ rid, gen: before.gen, tombstone }];
    return (await ledger.settle({ crawlerId, ...batch, ended }, now, crawler)).exists;
  });
}

/**
 * One update of the crawler, whatever the length of its queue: jobs that were pushed before it
 * are gone, and their documents are swept up later.
 */
export async function purge(
  collections: Collections,
  ledger: Ledger,
  crawlerId: string,
  now: Date,
): Promise<number> {
  const held = { $max: [0, { $subtract: ['$live', '$running'] }] };
  const heldBytes = {
    $subtract: [{ $ifNull: ['$liveBytes', 0] }, { $ifNull: ['$runningBytes', 0] }],
  };
  const day = toDay(now);
  await noteRemoval(collections, crawlerId);
  const before = await collections.crawlers.findOneAndUpdate(
    { _id: crawlerId },
    [
      { $set: { granted: held, grantedBytes: heldBytes } },
      {
        $set: {
          live: { $subtract: ['$live', '$granted'] },
          liveBytes: { $ifNull: ['$runningBytes', 0] },
          retrying: 0,
          purged: { $add: ['$purged', '$granted'] },
          [`days.${day}.purged`]: {
            $add: [{ $ifNull: [`$days.${day}.purged`, 0] }, '$granted'],
          },
          firstDay: { $min: ['$firstDay', day] },
          purges: { $add: ['$purges', 1] },
          moves: { $add: ['$moves', 1] },
          wakes: { $add: ['$wakes', 1] },
        },
      },
    ],
    { returnDocument: 'after', projection: { granted: 1, grantedBytes: 1, accountId: 1 } },
  );
  if (before === null) return 0;
  const purged = before.granted ?? 0;
  const queuedBytes = -(before.grantedBytes ?? 0);
  ledger.accounts.add(before.accountId, { queued: -purged, queuedBytes });
  await ledger.tidy(crawlerId, () => setWake(collections, crawlerId));
  const until = performance.now() + SWEEP_MS;
  await ledger.tidy(crawlerId, () =>
    sweepUp(collections, ledger.transactions, crawlerId, now, () => performance.now() < until),
  );
  return purged;
}
