import { refillWaitMs } from '../../domain/allowance.ts';
import { createLruMap } from '../../domain/lru-map.ts';
import type { RateStore } from '../store.ts';

interface Bucket {
  left: number;
  at: number;
}

const MAX_BUCKETS = 10_000;

/**
 * Makes the push rate of each token, and the allowances that are taken as a whole. They are in
 * memory, because there is one process, and a restart grants one bucket more at most. They are
 * outside the database's thread, because every call takes from one and would wait for the current
 * write.
 */
export function createRates(): RateStore {
  const buckets = createLruMap<string, Bucket>({ maxEntries: MAX_BUCKETS });
  const whole = createLruMap<string, Bucket>({ maxEntries: MAX_BUCKETS });

  return {
    async take(key, count, perSecond, now) {
      const at = now.getTime();
      const bucket = buckets.get(key) ?? { left: perSecond, at };
      const passed = Math.max(at - bucket.at, 0);
      bucket.left = Math.min(perSecond, bucket.left + (passed * perSecond) / 1_000);
      bucket.at = at;
      const granted = Math.min(count, Math.floor(bucket.left));
      bucket.left -= granted;
      buckets.set(key, bucket);
      const missing = 1 - bucket.left;
      return {
        granted,
        retryAfterMs: granted === count ? 0 : Math.max(Math.ceil((missing * 1_000) / perSecond), 1),
      };
    },

    async takeWhole(key, count, allowance, now) {
      const { capacity, refillMs } = allowance;
      const at = now.getTime();
      const bucket = whole.get(key) ?? { left: capacity, at };
      const passed = Math.max(at - bucket.at, 0);
      const left = Math.min(capacity, bucket.left + (passed * capacity) / refillMs);
      const granted = count <= left;
      const after = granted ? left - count : left;
      whole.set(key, { left: after, at });
      return {
        granted,
        left: Math.floor(after),
        retryAfterMs: refillWaitMs(allowance, after, count),
      };
    },
  };
}
