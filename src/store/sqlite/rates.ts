import { type Allowance, refillWaitMs } from '../../domain/allowance.ts';
import { createLruMap } from '../../domain/lru-map.ts';
import type { RateStore } from '../store.ts';

interface Bucket {
  readonly left: number;
  readonly at: number;
}

const MAX_BUCKETS = 20_000;

/**
 * Makes the push rate of each token, and the allowances that are taken as a whole. They are in
 * memory, because there is one process, and a restart grants one bucket more at most. They are
 * outside the database's thread, because every call takes from one and would wait for the current
 * write.
 */
export function createRates(): RateStore {
  const buckets = createLruMap<string, Bucket>({ maxEntries: MAX_BUCKETS });

  /** Fills up a bucket for the time that has passed, and takes from it what `take` says. */
  function takeFrom(
    key: string,
    { capacity, refillMs }: Allowance,
    now: Date,
    take: (left: number) => number,
  ): { readonly granted: number; readonly left: number } {
    const at = now.getTime();
    const bucket = buckets.get(key) ?? { left: capacity, at };
    const passed = Math.max(at - bucket.at, 0);
    const filled = Math.min(capacity, bucket.left + (passed * capacity) / refillMs);
    const granted = take(filled);
    const left = filled - granted;
    buckets.set(key, { left, at });
    return { granted, left };
  }

  return {
    async take(key, count, perSecond, now) {
      const allowance = { capacity: perSecond, refillMs: 1_000 };
      const fitting = (left: number): number => Math.min(count, Math.floor(left));
      const { granted, left } = takeFrom(key, allowance, now, fitting);
      const waitMs = Math.max(refillWaitMs(allowance, left, 1), 1);
      return { granted, retryAfterMs: granted === count ? 0 : waitMs };
    },

    async takeWhole(key, count, allowance, now) {
      const whole = (left: number): number => (count <= left ? count : 0);
      const { granted, left } = takeFrom(`whole:${key}`, allowance, now, whole);
      return {
        granted: granted === count,
        left: Math.floor(left),
        retryAfterMs: refillWaitMs(allowance, left, count),
      };
    },
  };
}
