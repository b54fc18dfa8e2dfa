import { type Allowance, refillWaitMs } from '../../domain/allowance.ts';
import type { Sql } from './sql.ts';

interface Bucket {
  left: number;
  at: number;
}

// In memory: there is one process, and a restart forgives one bucket's worth at most.
const buckets = new Map<string, Bucket>();
const whole = new Map<string, Bucket>();
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
  remember(buckets, key, bucket);
  const missing = 1 - bucket.left;
  return {
    granted,
    retryAfterMs: granted === count ? 0 : Math.max(Math.ceil((missing * 1_000) / perSecond), 1),
  };
}

function takeWhole(
  _sql: Sql,
  key: string,
  count: number,
  allowance: Allowance,
  now: Date,
): { granted: boolean; left: number; retryAfterMs: number } {
  const { capacity, refillMs } = allowance;
  const at = now.getTime();
  const bucket = whole.get(key) ?? { left: capacity, at };
  const passed = Math.max(at - bucket.at, 0);
  const left = Math.min(capacity, bucket.left + (passed * capacity) / refillMs);
  const granted = count <= left;
  const after = granted ? left - count : left;
  remember(whole, key, { left: after, at });
  return {
    granted,
    left: Math.floor(after),
    retryAfterMs: refillWaitMs(allowance, after, count),
  };
}

function remember(all: Map<string, Bucket>, key: string, bucket: Bucket): void {
  all.delete(key);
  all.set(key, bucket);
  if (all.size <= MAX_BUCKETS) return;
  const oldest = all.keys().next();
  if (oldest.done !== true) all.delete(oldest.value);
}

/** The push rate of each token, and the allowances that are taken from whole. */
export const rates = { take, takeWhole };
