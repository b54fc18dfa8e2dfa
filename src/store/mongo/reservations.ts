import { dayOf } from '../../domain/stats.ts';
import { EPISODE_END } from '../rules.ts';
import type { Collections, CrawlerDocument, PendingPush } from './collections.ts';
import { wakeExpression } from './lease.ts';

/**
 * Takes room for up to `n` URLs in the account, and counts their bytes if there is room for all of them; `granted` says how many.
 * Null when there is no such account.
 */
export async function reserveInAccount(
  collections: Collections,
  accountId: string,
  n: number,
  bytes: number,
  limit: number,
) {
  const whole = { $cond: [{ $eq: ['$granted', n] }, bytes, 0] };
  const room = { $max: [0, { $min: [n, { $subtract: [limit + 1, '$queued'] }] }] };
  const goesOn = { $and: ['$over', { $gt: ['$queued', limit * EPISODE_END] }] };
  return collections.accounts.findOneAndUpdate(
    { _id: accountId },
    [
      { $set: { granted: room, over: goesOn } },
      {
        $set: {
          queued: { $add: ['$queued', '$granted'] },
          queuedBytes: { $add: [{ $ifNull: ['$queuedBytes', 0] }, whole] },
        },
      },
    ],
    { returnDocument: 'after', projection: { queued: 1, granted: 1 } },
  );
}

/** Takes room for up to `n` URLs in the crawler, and notes the push as pending; null when there is no such crawler. */
export async function reserveInCrawler(
  collections: Collections,
  crawlerId: string,
  entry: Omit<PendingPush, 'n'>,
  n: number,
  limit: number,
) {
  const held = { $add: [{ $subtract: ['$live', '$running'] }, { $sum: '$pending.n' }] };
  const room = { $max: [0, { $min: [n, { $subtract: [limit, held] }] }] };
  return collections.crawlers.findOneAndUpdate(
    { _id: crawlerId },
    [
      { $set: { granted: room } },
      {
        $set: {
          pending: { $concatArrays: ['$pending', [{ ...entry, n: '$granted', gen: '$purges' }]] },
        },
      },
    ],
    { returnDocument: 'after', projection: { granted: 1, purges: 1 } },
  );
}

/** Counts a pending push, and wakes its crawler; null when it is not pending. What was purged before it was counted is gone. */
export async function confirm(
  collections: Collections,
  crawlerId: string,
  { id, gen = 0 }: Pick<PendingPush, 'id' | 'gen'>,
  { n, bytes }: { readonly n: number; readonly bytes: number },
  now: Date,
) {
  const day = dayOf(now);
  const kept = { $cond: [{ $eq: ['$purges', gen] }, n, 0] };
  const purged = { $subtract: [n, kept] };
  const dayField = (field: string, by: object | number) => ({
    [`days.${day}.${field}`]: { $add: [{ $ifNull: [`$days.${day}.${field}`, 0] }, by] },
  });
  const keptBytes = { $cond: [{ $eq: ['$purges', gen] }, bytes, 0] };
  const counted = {
    live: { $add: ['$live', kept] },
    liveBytes: { $add: [{ $ifNull: ['$liveBytes', 0] }, keptBytes] },
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
    [{ $set: { pending, ...(n > 0 ? counted : {}) } }],
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

/** Counts what is there of pushes whose process has not come back since `before`; how many. */
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

/** Counts what is there of one push; false when it is not pending any more. */
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
  // First this, so that the request is not done again when these have been crawled.
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
