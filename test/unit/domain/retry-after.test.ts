import { describe, expect, test } from 'vitest';
import { parseRetryAfter } from '../../../src/domain/retry-after.ts';

describe('Retry-After', () => {
  const now = new Date('2026-01-01T00:00:00Z');
  test.each([
    ['120', 120_000],
    ['0', 0],
    [' 5 ', 5_000],
    ['Thu, 01 Jan 2026 00:00:30 GMT', 30_000],
    ['Wed, 31 Dec 2025 00:00:00 GMT', 0],
    ['999999999', 86_400_000],
    ['-1', undefined],
    ['1.5', undefined],
    ['soon', undefined],
    ['', undefined],
    [undefined, undefined],
  ])('%j is %j', (value, ms) => {
    expect(parseRetryAfter(value, now)).toBe(ms);
  });
});
