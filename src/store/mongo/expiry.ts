import type { Collection, Filter } from 'mongodb';
import { chargedBytes } from '../../domain/quotas.ts';
import { isPending } from '../kept-delivery.ts';
import { expireBatches } from './batches.ts';
import type { Collections } from './collections.ts';
import { deleteBatch } from './delete-batch.ts';
import type { Lanes } from './lanes.ts';
import { scopeAccountId } from './records.ts';
import { sweepRemovedAccounts } from './stored-bytes.ts';

/** A document that counts for what its account has stored. */
interface Stored {
  readonly _id: string;
  readonly size: number;
}

/**
 * Removes documents past their retention, batch by batch while there are more and `goesOn` returns
 * true.
 */
export async function expire(
  collections: Collections,
  lanes: Lanes,
  now: Date,
  batch: number,
  goesOn: () => boolean,
): Promise<void> {
  const old = { expiresAt: { $lte: now } };

  /** Removes a batch of documents that count for what an account has stored. */
  async function expireStored<T extends Stored>(
    stored: Collection<T>,
    accountOf: (document: T) => string,
  ): Promise<number> {
    const fields = { scope: 1, accountId: 1, size: 1 };
    const { found, count } = await deleteBatch(stored, old as unknown as Filter<T>, batch, fields);
    // Otherwise another process has counted some of them, and the next measurement finds the bytes.
    if (count === found.length) {
      for (const each of found) lanes.accounts.addStored(accountOf(each), -chargedBytes(each.size));
    }
    return found.length;
  }

  const removals = [
    () => expireDeliveries(collections, lanes, now, batch),
    () => expireStored(collections.results, ({ scope }) => scopeAccountId(scope)),
    () => sweepRemovedAccounts(collections, now, batch),
    () => expireStored(collections.screenshots, ({ accountId }) => accountId),
    () => expireBatches(collections, now, batch),
  ];
  await Promise.all(
    removals.map(async (remove) => {
      while ((await remove()) >= batch && goesOn()) {
        // All work is in the condition.
      }
    }),
  );
}

async function expireDeliveries(
  { deliveries }: Collections,
  lanes: Lanes,
  now: Date,
  batch: number,
): Promise<number> {
  const old = { expiresAt: { $lte: now } };
  // By the index of the time the database might read all that are old once more.
  const hint = { _id: 1 };
  const found = await deliveries
    .find(old, { projection: { crawlerId: 1 } })
    .sort({ expiresAt: 1 })
    .limit(batch)
    .toArray();
  for (const [crawlerId, own] of Map.groupBy(found, (each) => each.crawlerId)) {
    const these = { _id: { $in: own.map((each) => each._id) }, ...old };
    const counted = await lanes.runExclusive(crawlerId, () =>
      lanes.change(crawlerId, now, async (session, changes) => {
        const gone = await deliveries
          .find(these, { projection: { state: 1, size: 1 }, session, hint })
          .toArray();
        await deliveries.deleteMany(these, { session, hint });
        changes.add('deliveriesPending', -gone.filter(isPending).length);
        changes.addStored(-gone.reduce((sum, { size }) => sum + chargedBytes(size), 0));
        return gone;
      }),
    );
    // Of a crawler that is gone nothing is counted.
    if (counted === undefined) await deliveries.deleteMany(these, { hint });
  }
  return found.length;
}
