import { chargedBytes } from '../../domain/quotas.ts';
import type { Collections } from './collections.ts';
import type { Ledger } from './ledger.ts';
import { expireScreenshots } from './screenshots.ts';
import { expireResults, sweepRemovedAccounts } from './stored-bytes.ts';

/**
 * Removes documents past their retention, batch by batch while there are more and `goesOn` returns
 * true. Returns their number.
 */
export async function expire(
  collections: Collections,
  ledger: Ledger,
  now: Date,
  batch: number,
  goesOn: () => boolean,
): Promise<number> {
  const removals = [
    () => expireDeliveries(collections, ledger, now, batch),
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

function expireDeliveries(
  collections: Collections,
  { transactions }: Ledger,
  now: Date,
  batch: number,
): Promise<Removed> {
  return transactions.run(async (session) => {
    const old = await collections.deliveries
      .find(
        { expiresAt: { $lte: now } },
        { projection: { crawlerId: 1, state: 1, size: 1 }, session },
      )
      .sort({ expiresAt: 1 })
      .limit(batch)
      .toArray();
    if (old.length === 0) return { found: 0, count: 0 };
    await collections.deliveries.deleteMany({ _id: { $in: old.map((d) => d._id) } }, { session });
    for (const [crawlerId, own] of Map.groupBy(old, (each) => each.crawlerId)) {
      const pending = own.filter(({ state }) => state === 'due' || state === 'sending').length;
      const crawler = await collections.crawlers.findOneAndUpdate(
        { _id: crawlerId },
        { $inc: { deliveriesPending: -pending, moves: 1 } },
        { session, projection: { accountId: 1 } },
      );
      if (crawler === null) continue;
      const storedBytes = -own.reduce((sum, { size }) => sum + chargedBytes(size), 0);
      await collections.accounts.updateOne(
        { _id: crawler.accountId },
        { $inc: { storedBytes } },
        { session },
      );
    }
    return { found: old.length, count: old.length };
  });
}
