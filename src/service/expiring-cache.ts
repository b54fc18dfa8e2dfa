import type { Clock } from '../domain/clock.ts';
import { createLruMap } from '../domain/lru-map.ts';

/** Caches the results of look-ups for a short time; misses are not cached. */
export interface ExpiringCache<Value> {
  /**
   * Returns the cached value, or the result of `load`. Concurrent look-ups of one key share one
   * `load`.
   */
  get(key: string, load: () => Promise<Value | undefined>): Promise<Value | undefined>;
  /** The value that {@link ExpiringCache.get} would return without loading. */
  peek(key: string): Value | undefined;
  forget(key: string): void;
  clear(): void;
}

/**
 * Makes a cache whose entries live for `ttlMs`; the oldest entries are evicted when there are more
 * than `maxEntries`.
 */
export function createExpiringCache<Value>(deps: {
  readonly clock: Clock;
  /** Or a function of the time that the value took to load, and of the value. */
  readonly ttlMs: number | ((tookMs: number, value: Value) => number);
  readonly maxEntries: number;
}): ExpiringCache<Value> {
  const entries = createLruMap<string, { value: Value; until: number }>({
    maxEntries: deps.maxEntries,
  });
  const { clock, ttlMs } = deps;
  const ttl = typeof ttlMs === 'number' ? () => ttlMs : ttlMs;
  const loading = new Map<string, Promise<Value | undefined>>();

  async function load(
    key: string,
    from: () => Promise<Value | undefined>,
  ): Promise<Value | undefined> {
    const startedAt = performance.now();
    const value = await from();
    // After a `forget` during the load, the loaded value may be outdated.
    if (value === undefined || !loading.has(key)) return value;
    const until = clock.now().getTime() + ttl(performance.now() - startedAt, value);
    entries.set(key, { value, until });
    return value;
  }

  function peek(key: string): Value | undefined {
    const entry = entries.get(key);
    return entry !== undefined && entry.until > clock.now().getTime() ? entry.value : undefined;
  }

  return {
    peek,
    async get(key, from) {
      const cached = peek(key);
      if (cached !== undefined) return cached;
      const under = loading.get(key);
      if (under !== undefined) return under;
      const promise = load(key, from).finally(() => {
        if (loading.get(key) === promise) loading.delete(key);
      });
      loading.set(key, promise);
      return promise;
    },
    forget(key) {
      entries.delete(key);
      loading.delete(key);
    },
    clear() {
      entries.clear();
      loading.clear();
    },
  };
}
