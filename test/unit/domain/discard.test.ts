import { expect, test } from 'vitest';
import { discard, trimmed } from '../../../src/domain/discard.ts';

test('a large body of its own is emptied, a part of a larger one and a small one are left alone', () => {
  const whole = new Uint8Array(100_000);
  discard(whole);
  expect(whole.byteLength).toBe(0);

  const part = new Uint8Array(200_000).subarray(0, 100_000);
  discard(part);
  expect(part.byteLength).toBe(100_000);

  const small = new Uint8Array(1_000);
  discard(small);
  expect(small.byteLength).toBe(1_000);
});

test('trimming keeps the bytes and owns its memory', () => {
  const bytes = new Uint8Array(100_000).fill(7);
  const kept = trimmed(bytes, 70_000);
  expect([kept.byteLength, kept.buffer.byteLength, kept[69_999]]).toEqual([70_000, 70_000, 7]);
  expect(trimmed(Buffer.from('some text'), 4).toString()).toBe('some');
});
