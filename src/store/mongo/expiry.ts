import { chargedBytes } from '../../domain/quotas.ts';
import type { Collections } from './collections.ts';
import { createDelta } from './counts.ts';
import { countDeliveries, readRecounts } from './delivery-counts.ts';
import { expireScreenshots } from './screenshots.ts';
import { expireResults, sweepRemovedAccounts } from './stored-bytes.ts';

/**
 * Removes documents past their retention, batch by batch while there are more and `goesOn` returns
 * true. Returns their number.
 */
export async function expire(
  collections: Collections,
  now: Date,
  batch: number,
  goesOn: () => boolean,
): Promise<number> {
  const removals = [
    () => expireDeliveries(collections, now, batch),
    () => expireResults(collections, now, batch),
    () => sweepRemovedAccounts(collections, now, batch),
    () => expireScreenshots(collections, now, batch),
    // The server expires requests by itself, with a delay that this avoids.
    () => expireRequests(collections, now, batch),
  ];
  const removed = await Promise.all(
    removals.map(async (remove) => {
      let total = 0;
      for (;;) {
        const { found, count } = await remove();
        total += count;
        if (found < batch || !goesOn()) return total;
      }
    }),
  );
  return removed.reduce((sum, each) => sum + each, 0);
}

/** What one batch found and removed. */
export interface Removed {
  readonly found: number;
  readonly count: number;
}

async function expireRequests(
  { pushRequests }: Collections,
  now: Date,
  batch: number,
): Promise<Removed> {
  const old = await pushRequests
    .find({ expiresAt: { $lte: now } }, { projection: { _id: 1 } })
    .limit(batch)
    .toArray();
  if (old.length === 0) return { found: 0, count: 0 };
  const { deletedCount } = await pushRequests.deleteMany({
    _id: { $in: old.map((each) => each._id) },
    expiresAt: { $lte: now },
  });
  return { found: old.length, count: deletedCount };
}

async function expireDeliveries(
  collections: Collections,
  now: Date,
  batch: number,
): Promise<Removed> {
  const old = await collections.deliveries
    .find({ expiresAt: { $lte: now } }, { projection: { crawlerId: 1, state: 1, size: 1 } })
    .sort({ expiresAt: 1 })
    .limit(batch)
    .toArray();
  if (old.length === 0) return { found: 0, count: 0 };
  const isPending = ({ state }: { state: string }) => state === 'due' || state === 'sending';
  const done = old.filter((each) => !isPending(each)).map((each) => each._id);
  const expired = { expiresAt: { $lte: now } };
  let count = 0;
  if (done.length > 0) {
    const states = { $nin: ['due', 'sending'] } as const;
    count += (
      await collections.deliveries.deleteMany({ _id: { $in: done }, state: states, ...expired })
    ).deletedCount;
  }
  const pending = old.filter(isPending);
  for (const [crawlerId, own] of Map.groupBy(pending, (each) => each.crawlerId)) {
    const read = await readRecounts(collections, crawlerId);
    const { deletedCount } = await collections.deliveries.deleteMany({
      _id: { $in: own.map((each) => each._id) },
      state: { $in: ['due', 'sending'] },
      ...expired,
    });
    count += deletedCount;
    const delta = createDelta(now);
    delta.add('deliveriesPending', -deletedCount);
    await countDeliveries(collections, crawlerId, { delta, read, now });
  }
  // See `expireResults`.
  if (count === old.length) {
    for (const [crawlerId, gone] of Map.groupBy(old, (each) => each.crawlerId)) {
      const crawler = await collections.crawlers.findOne(
        { _id: crawlerId },
        { projection: { accountId: 1 } },
      );
      if (crawler === null) continue;
      const storedBytes = -gone.reduce((sum, { size }) => sum + chargedBytes(size), 0);
      await collections.accounts.updateOne({ _id: crawler.accountId }, { $inc: { storedBytes } });
    }
  }
  return { found: old.length, count };
}
