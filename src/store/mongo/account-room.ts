import type { AccountChange } from '../count-changes.ts';
import { EPISODE_END } from '../rules.ts';
import type { AccountIncrements } from './account-increments.ts';
import { quickly } from './client-options.ts';
import type { Collections } from './collections.ts';

/** A number of jobs and the bytes that they count for. */
export interface Amount {
  readonly n: number;
  readonly bytes: number;
}

/** Room that was taken in an account before its jobs were inserted. */
export interface AccountRoom {
  readonly n: number;
  /** The queued URLs of the account with these. */
  readonly queued: number;
  /** Gives all of it back: what is inserted is counted by its own transaction. */
  giveBack(): void;
}

/** Takes room for up to `all.n` URLs in the account, and for their bytes if there is room for all. */
export async function takeAccountRoom(
  collections: Collections,
  accounts: AccountIncrements,
  accountId: string,
  all: Amount,
  limit: number,
): Promise<AccountRoom> {
  const known = accounts.tryReserve(accountId, all, limit);
  const account =
    known === undefined
      ? await reserve(collections, accounts, accountId, all, limit)
      : { granted: all.n, queued: known };
  const { granted: n = 0, queued = 0 } = account ?? {};
  const bytes = n === all.n ? all.bytes : 0;
  return {
    n,
    queued,
    giveBack: () => accounts.add(accountId, { queued: -n, queuedBytes: -bytes }),
  };
}

async function reserve(
  collections: Collections,
  accounts: AccountIncrements,
  accountId: string,
  { n, bytes }: Amount,
  limit: number,
) {
  await accounts.written();
  const grantedBytes = { $cond: [{ $eq: ['$granted', n] }, bytes, 0] };
  const room = { $max: [0, { $min: [n, { $subtract: [limit + 1, '$queued'] }] }] };
  const staysOver = { $and: ['$over', { $gt: ['$queued', limit * EPISODE_END] }] };
  return await collections.accounts.findOneAndUpdate(
    { _id: accountId },
    [
      { $set: added(accounts.take(accountId)) },
      { $set: { granted: room, over: staysOver } },
      {
        $set: {
          queued: { $add: ['$queued', '$granted'] },
          queuedBytes: { $add: ['$queuedBytes', grantedBytes] },
        },
      },
    ],
    { ...quickly, returnDocument: 'after', projection: { queued: 1, granted: 1 } },
  );
}

function added(change: AccountChange) {
  const sums = Object.entries(change).map(([field, by]) => [field, { $add: [`$${field}`, by] }]);
  return Object.fromEntries(sums) as Record<keyof AccountChange, object>;
}

/** Whether this is the one push that took the account over its limit. */
export async function wentOver(
  collections: Collections,
  accountId: string,
  limit: number,
): Promise<boolean> {
  const { modifiedCount } = await collections.accounts.updateOne(
    { _id: accountId, over: false, queued: { $gt: limit } },
    { $set: { over: true } },
  );
  return modifiedCount > 0;
}
