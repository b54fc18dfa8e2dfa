import type { Document } from 'mongodb';
import { refillWaitMs } from '../../domain/allowance.ts';
import { toWall } from '../../domain/clock.ts';
import type { RateStore } from '../store.ts';
import { quickly } from './client-options.ts';
import type { Collections } from './collections.ts';
import { createGroupedCalls } from './grouped-calls.ts';
import { isDuplicate } from './mongo-errors.ts';

type Take = Awaited<ReturnType<RateStore['take']>>;

/** The clocks of processes agree within a second; this is far beyond. */
const MAX_AHEAD_MS = 60_000;

interface Waiting {
  readonly count: number;
  readonly perSecond: number;
  readonly now: Date;
}

/**
 * The push rate of each token, one bucket for all processes. Calls that arrive while a bucket is
 * written share the next write.
 */
export function createRates(collections: Collections): RateStore {
  const take = createGroupedCalls<Waiting, Take>(
    async (key, group) => {
      const { perSecond } = group[0] as Waiting;
      const latest = new Date(Math.max(...group.map((each) => each.now.getTime())));
      const now = toWall(collections.time, latest);
      const wanted = group.reduce((sum, each) => sum + each.count, 0);
      const bucket = await takeTokens(collections, key, { perSecond, wanted, now });
      let granted = bucket?.granted ?? 0;
      const missing = 1 - (bucket?.left ?? 0);
      const wait = Math.max(Math.ceil((missing * 1_000) / perSecond), 1);
      return group.map(({ count }) => {
        const own = Math.min(count, granted);
        granted -= own;
        return { granted: own, retryAfterMs: own === count ? 0 : wait };
      });
    },
    (calls) => calls.findIndex(({ perSecond }) => perSecond !== calls[0]?.perSecond),
  );

  return {
    async takeWhole(key, count, allowance, now) {
      const { capacity, refillMs } = allowance;
      const at = toWall(collections.time, now);
      const before = lastTaken(at);
      const passedMs = { $max: [0, { $subtract: [at, before] }] };
      const refill = { $divide: [{ $multiply: [passedMs, capacity] }, refillMs] };
      const full = { $min: [capacity, { $add: [{ $ifNull: ['$left', capacity] }, refill] }] };
      const bucket = await upserted(collections, `whole:${key}`, [
        { $set: { left: full, at: { $max: [before, at] } } },
        { $set: { granted: { $cond: [{ $lte: [count, '$left'] }, 1, 0] } } },
        { $set: { left: { $subtract: ['$left', { $multiply: ['$granted', count] }] } } },
      ]);
      const left = bucket?.left ?? 0;
      return {
        granted: bucket?.granted === 1,
        left: Math.floor(left),
        retryAfterMs: refillWaitMs(allowance, left, count),
      };
    },

    take: (key, count, perSecond, now) => take(key, { count, perSecond, now }),
  };
}

/**
 * When the bucket was last used. A time far in the future was written by a machine whose clock was
 * wrong, and is ignored.
 */
function lastTaken(now: Date) {
  const soon = new Date(now.getTime() + MAX_AHEAD_MS);
  return { $cond: [{ $lte: [{ $ifNull: ['$at', now] }, soon] }, { $ifNull: ['$at', now] }, now] };
}

async function takeTokens(
  collections: Collections,
  key: string,
  {
    perSecond,
    wanted,
    now,
  }: { readonly perSecond: number; readonly wanted: number; readonly now: Date },
) {
  const before = lastTaken(now);
  const passedMs = { $max: [0, { $subtract: [now, before] }] };
  const refill = { $divide: [{ $multiply: [passedMs, perSecond] }, 1_000] };
  const full = { $min: [perSecond, { $add: [{ $ifNull: ['$left', perSecond] }, refill] }] };
  const update = [
    { $set: { left: full, at: { $max: [before, now] } } },
    { $set: { granted: { $min: [wanted, { $floor: '$left' }] } } },
    { $set: { left: { $subtract: ['$left', '$granted'] } } },
  ];
  return upserted(collections, key, update);
}

async function upserted(collections: Collections, key: string, update: Document[]) {
  const options = { upsert: true, returnDocument: 'after', ...quickly } as const;
  try {
    return await collections.rates.findOneAndUpdate({ _id: key }, update, options);
  } catch (error) {
    // Two calls found no bucket, and the other one inserted it.
    if (!isDuplicate(error)) throw error;
    return collections.rates.findOneAndUpdate({ _id: key }, update, options);
  }
}
