import { toDay } from '../../domain/stats.ts';
import { EPISODE_END } from '../rules.ts';
import type { AccountChange } from './account-increments.ts';
import { quickly } from './client-options.ts';
import type { Collections, CrawlerDocument, PendingPush } from './collections.ts';
import { wakeExpression } from './lease.ts';

/**
 * Takes room for up to `n` URLs in the account, and counts their bytes if there is room for all of
 * them, after the changes that this process has gathered. `granted` is the number taken. Null when
 * there is no such account.
 */
export async function reserveInAccount(
  collections: Collections,
  accountId: string,
  { n, bytes }: { readonly n: number; readonly bytes: number },
  limit: number,
  gathered: Required<AccountChange>,
) {
  const grantedBytes = { $cond: [{ $eq: ['$granted', n] }, bytes, 0] };
  const room = { $max: [0, { $min: [n, { $subtract: [limit + 1, '$queued'] }] }] };
  const staysOver = { $and: ['$over', { $gt: ['$queued', limit * EPISODE_END] }] };
  return collections.accounts.findOneAndUpdate(
    { _id: accountId },
    [
      ...(gathered.queued === 0 && gathered.queuedBytes === 0 && gathered.storedBytes === 0
        ? []
        : [{ $set: added(gathered) }]),
      { $set: { granted: room, over: staysOver } },
      {
        $set: {
          queued: { $add: ['$queued', '$granted'] },
          queuedBytes: { $add: [{ $ifNull: ['$queuedBytes', 0] }, grantedBytes] },
        },
      },
    ],
    { ...quickly, returnDocument: 'after', projection: { queued: 1, granted: 1 } },
  );
}

function added(change: Required<AccountChange>) {
  const sums = Object.entries(change).map(([field, by]) => [
    field,
    { $add: [{ $ifNull: [`$${field}`, 0] }, by] },
  ]);
  return Object.fromEntries(sums) as Record<keyof AccountChange, object>;
}

/**
 * Takes room for up to `n` URLs in the crawler, and notes the push as pending. Null when there is
 * no such crawler, or when it has other settings.
 */
export async function reserveInCrawler(
  collections: Collections,
  crawlerId: string,
  {
    entry,
    settings,
    n,
    limit,
  }: {
    readonly entry: Omit<PendingPush, 'n'>;
    readonly settings: number | undefined;
    readonly n: number;
    readonly limit: number;
  },
) {
  const held = { $add: [{ $subtract: ['$live', '$running'] }, { $sum: '$pending.n' }] };
  const room = { $max: [0, { $min: [n, { $subtract: [limit, held] }] }] };
  const pending = { $concatArrays: ['$pending', [{ ...entry, n: '$granted', gen: '$purges' }]] };
  return collections.crawlers.findOneAndUpdate(
    { _id: crawlerId, ...(settings === undefined ? {} : { updatedAt: new Date(settings) }) },
    [{ $set: { granted: room } }, { $set: { pending } }],
    { ...quickly, returnDocument: 'after', projection: { granted: 1, purges: 1 } },
  );
}

/**
 * Counts a pending push, wakes its crawler, and returns the crawler as it was before. Null when the
 * push is not pending. If the crawler was purged since the room was reserved, the jobs count as
 * purged.
 */
export async function confirm(
  collections: Collections,
  crawlerId: string,
  { id, gen = 0 }: Pick<PendingPush, 'id' | 'gen'>,
  { n, bytes }: { readonly n: number; readonly bytes: number },
  now: Date,
) {
  const day = toDay(now);
  const ifCurrent = (amount: number) => ({ $cond: [{ $eq: ['$purges', gen] }, amount, 0] });
  const purged = { $subtract: [n, ifCurrent(n)] };
  const dayField = (field: string, more: object | number) => ({
    [`days.${day}.${field}`]: { $add: [{ $ifNull: [`$days.${day}.${field}`, 0] }, more] },
  });
  const counts = {
    live: { $add: ['$live', ifCurrent(n)] },
    liveBytes: { $add: [{ $ifNull: ['$liveBytes', 0] }, ifCurrent(bytes)] },
    'last.push': { $max: ['$last.push', now] },
    purged: { $add: ['$purged', purged] },
    ...dayField('pushed', n),
    ...dayField('purged', purged),
    firstDay: { $min: ['$firstDay', day] },
    wakes: { $add: ['$wakes', 1] },
    wakeAt: wakeExpression(now, 'job'),
  };
  const pending = { $filter: { input: '$pending', cond: { $ne: ['$$this.id', id] } } };
  const before = await collections.crawlers.findOneAndUpdate(
    { _id: crawlerId, 'pending.id': id },
    [{ $set: { pending, ...(n > 0 ? counts : {}) } }],
    { returnDocument: 'before', projection: { leaseUntil: 1, purges: 1, accountId: 1 } },
  );
  if (before !== null && n > 0 && before.purges !== gen) {
    await collections.accounts.updateOne(
      { _id: before.accountId },
      { $inc: { queued: -n, queuedBytes: -bytes } },
    );
  }
  return before;
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

/**
 * Confirms the pushes that are pending since before `before`, with the jobs that they really
 * inserted: their process has died. Returns how many it confirmed.
 */
export async function resolvePending(
  collections: Collections,
  before: Date,
  now: Date,
): Promise<number> {
  const crawlers: Pick<CrawlerDocument, '_id' | 'pending'>[] = await collections.crawlers
    .find({ 'pending.at': { $lte: before } }, { projection: { pending: 1 } })
    .toArray();
  let resolved = 0;
  for (const crawler of crawlers) {
    for (const entry of crawler.pending) {
      if (entry.at > before) continue;
      if (await resolve(collections, crawler._id, entry, now)) resolved += 1;
    }
  }
  return resolved;
}

/** Confirms one pending push with the jobs that it inserted; false when it is not pending. */
export async function resolve(
  collections: Collections,
  crawlerId: string,
  entry: PendingPush,
  now: Date,
): Promise<boolean> {
  const { id, first, last, request } = entry;
  const there = await collections.jobs
    .find(
      { _id: { $gte: first, $lte: last }, push: id, state: { $ne: 'ended' } },
      { projection: { size: 1 } },
    )
    .toArray();
  // Before the jobs can be crawled and vanish, so that the request does not push them again.
  if (request !== undefined && there.length > 0) {
    await collections.pushRequests.updateOne(
      { _id: request },
      { $addToSet: { taken: { $each: there.map((each) => each._id) } } },
    );
  }
  const found = {
    n: there.length,
    bytes: there.reduce((sum, { size = 0 }) => sum + size, 0),
  };
  return (await confirm(collections, crawlerId, entry, found, now)) !== null;
}
