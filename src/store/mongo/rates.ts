import type { Document } from 'mongodb';
import { type Allowance, refillWaitMs } from '../../domain/allowance.ts';
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
      const allowance = { capacity: perSecond, refillMs: 1_000 };
      const most = { $min: [wanted, { $floor: '$left' }] };
      const bucket = await takeTokens(collections, key, allowance, most, now);
      let granted = bucket?.granted ?? 0;
      const wait = Math.max(refillWaitMs(allowance, bucket?.left ?? 0, 1), 1);
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
      const at = toWall(collections.time, now);
      const whole = { $cond: [{ $lte: [count, '$left'] }, count, 0] };
      const bucket = await takeTokens(collections, `whole:${key}`, allowance, whole, at);
      const left = bucket?.left ?? 0;
      return {
        granted: bucket?.granted === count,
        left: Math.floor(left),
        retryAfterMs: refillWaitMs(allowance, left, count),
      };
    },

    take: (key, count, perSecond, now) => take(key, { count, perSecond, now }),
  };
}

/** Fills up a bucket for the time that has passed, and takes `granted` from it, an expression. */
async function takeTokens(
  { rates }: Collections,
  key: string,
  { capacity, refillMs }: Allowance,
  granted: Document,
  now: Date,
) {
  const last = { $ifNull: ['$at', now] };
  // One far in the future was written by a machine whose clock was wrong, and is ignored.
  const before = { $cond: [{ $lte: [last, new Date(now.getTime() + MAX_AHEAD_MS)] }, last, now] };
  const passedMs = { $max: [0, { $subtract: [now, before] }] };
  const refill = { $divide: [{ $multiply: [passedMs, capacity] }, refillMs] };
  const full = { $min: [capacity, { $add: [{ $ifNull: ['$left', capacity] }, refill] }] };
  const update = [
    { $set: { left: full, at: { $max: [before, now] } } },
    { $set: { granted } },
    { $set: { left: { $subtract: ['$left', '$granted'] } } },
  ];
  const options = { upsert: true, returnDocument: 'after', ...quickly } as const;
  const take = () => rates.findOneAndUpdate({ _id: key }, update, options);
  // Of two calls that found no bucket, the other one has inserted it.
  return take().catch((error: unknown) => (isDuplicate(error) ? take() : Promise.reject(error)));
}
