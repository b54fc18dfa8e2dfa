import type { Sql } from './sql.ts';

interface Bucket {
  left: number;
  at: number;
}

// In memory: there is one process, and a restart forgives a second's worth at most.
const buckets = new Map<string, Bucket>();
const MAX_BUCKETS = 10_000;

function take(
  _sql: Sql,
  key: string,
  count: number,
  perSecond: number,
  now: Date,
): { granted: number; retryAfterMs: number } {
  const at = now.getTime();
  const bucket = buckets.get(key) ?? { left: perSecond, at };
  const passed = Math.max(at - bucket.at, 0);
  bucket.left = Math.min(perSecond, bucket.left + (passed * perSecond) / 1_000);
  bucket.at = at;
  const granted = Math.min(count, Math.floor(bucket.left));
  bucket.left -= granted;
  buckets.delete(key);
  buckets.set(key, bucket);
  if (buckets.size > MAX_BUCKETS) {
    const oldest = buckets.keys().next();
    if (oldest.done !== true) buckets.delete(oldest.value);
  }
  const missing = 1 - bucket.left;
  return {
    granted,
    retryAfterMs: granted === count ? 0 : Math.max(Math.ceil((missing * 1_000) / perSecond), 1),
  };
}

/** The push rate of each token. */
export const rates = { take };
