import type { Clock } from '../../domain/clock.ts';
import { createLruMap } from '../../domain/lru-map.ts';

/** Rate limits of this process by key; each allowance refills evenly. */
export interface TokenBuckets {
  /**
   * Takes one unit from an allowance of `perSecond` that holds `capacity`. Returns 0, or the
   * milliseconds until a unit is available.
   */
  take(key: string, perSecond: number, capacity: number): number;
}

const MAX_BUCKETS = 50_000;

/** Makes the allowances. A key that is new, or was evicted, starts with a full allowance. */
export function createTokenBuckets(clock: Clock): TokenBuckets {
  const buckets = createLruMap<string, { left: number; at: number }>({ maxEntries: MAX_BUCKETS });
  return {
    take(key, perSecond, capacity) {
      const at = clock.now().getTime();
      const bucket = buckets.get(key) ?? { left: capacity, at };
      const refilled = (Math.max(at - bucket.at, 0) * perSecond) / 1_000;
      const full = Math.min(capacity, bucket.left + refilled);
      const taken = full >= 1;
      buckets.set(key, { left: taken ? full - 1 : full, at: Math.max(at, bucket.at) });
      return taken ? 0 : Math.max(Math.ceil(((1 - full) * 1_000) / perSecond), 1);
    },
  };
}
