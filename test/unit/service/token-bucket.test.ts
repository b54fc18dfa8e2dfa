import { expect, test } from 'vitest';
import { createTokenBuckets } from '../../../src/service/accounts/token-bucket.ts';

function bucketsAt() {
  let ms = 1_000_000;
  const buckets = createTokenBuckets({ now: () => new Date(ms) });
  return { buckets, pass: (by: number) => void (ms += by) };
}

test('an allowance starts full, refills evenly, and never above what it holds', () => {
  const { buckets, pass } = bucketsAt();
  const take = () => buckets.take('a', 2, 4);
  expect([take(), take(), take(), take()]).toEqual([0, 0, 0, 0]);
  expect(take()).toBe(500);
  pass(499);
  expect(take()).toBeLessThanOrEqual(2);
  pass(1);
  expect(take()).toBe(0);
  expect(take()).toBe(500);
  pass(3_600_000);
  expect([take(), take(), take(), take()]).toEqual([0, 0, 0, 0]);
  expect(take()).toBeGreaterThan(0);
});

test('keys have allowances of their own, and a clock that is set back gives nothing', () => {
  const { buckets, pass } = bucketsAt();
  expect(buckets.take('a', 1, 1)).toBe(0);
  expect(buckets.take('b', 1, 1)).toBe(0);
  pass(-60_000);
  expect(buckets.take('a', 1, 1)).toBeGreaterThan(0);
});
