import { chargedBytes } from '../../domain/quotas.ts';
import { expireBatches } from './batches.ts';
import type { Collections } from './collections.ts';
import { addPending } from './deliveries.ts';
import type { Lanes } from './lanes.ts';
import { expireScreenshots } from './screenshots.ts';
import { expireResults, sweepRemovedAccounts } from './stored-bytes.ts';

/**
 * Removes documents past their retention, batch by batch while there are more and `goesOn` returns
 * true. Returns their number.
 */
export async function expire(
  collections: Collections,
  lanes: Lanes,
  now: Date,
  batch: number,
  goesOn: () => boolean,
): Promise<number> {
  const removals = [
    () => expireDeliveries(collections, lanes, now, batch),
    () => expireResults(collections, now, batch),
    () => sweepRemovedAccounts(collections, now, batch),
    () => expireScreenshots(collections, now, batch),
    // The server expires requests by itself, with a delay that this avoids.
    () => expireRequests(collections, now, batch),
    () => expireBatches(collections, now, batch),
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
  { crawlers, accounts, deliveries, ...others }: Collections,
  lanes: Lanes,
  now: Date,
  batch: number,
): Promise<Removed> {
  const old = { expiresAt: { $lte: now } };
  const found = await deliveries
    .find(old, { projection: { crawlerId: 1 } })
    .sort({ expiresAt: 1 })
    .limit(batch)
    .toArray();
  let count = 0;
  for (const [crawlerId, own] of Map.groupBy(found, (each) => each.crawlerId)) {
    count += await lanes.transact(crawlerId, async (session) => {
      const _id = { $in: own.map((each) => each._id) };
      const gone = await deliveries
        .find({ _id, ...old }, { projection: { state: 1, size: 1 }, session })
        .toArray();
      await deliveries.deleteMany({ _id, ...old }, { session });
      const crawler = await crawlers.findOne(
        { _id: crawlerId },
        { session, projection: { accountId: 1 } },
      );
      if (crawler === null) return gone.length;
      const pending = gone.filter(({ state }) => state === 'due' || state === 'sending').length;
      if (pending > 0) await addPending(others, crawlerId, -pending, session);
      const storedBytes = -gone.reduce((sum, { size }) => sum + chargedBytes(size), 0);
      await accounts.updateOne({ _id: crawler.accountId }, { $inc: { storedBytes } }, { session });
      return gone.length;
    });
  }
  return { found: found.length, count };
}
