import { describe, expect, test } from 'vitest';
import {
  type CrawlRetryInput,
  nextCrawlRetry,
  nextDelivery,
  parseRetrySchedule,
} from '../../../src/domain/retry-schedule.ts';

const START = new Date('2026-01-01T00:00:00Z');
const HOUR = 3_600_000;

function after(ms: number): Date {
  return new Date(START.getTime() + ms);
}

function retryWait(input: Partial<CrawlRetryInput>): number | undefined {
  const now = input.now ?? START;
  const next = nextCrawlRetry({
    retry: 0,
    firstTriedAt: START,
    now,
    maxRetries: 110,
    windowHours: 48,
    random: 0,
    ...input,
  });
  return next === undefined ? undefined : next.getTime() - now.getTime();
}

/** The moments of all retries, in ms after the first try, when each crawl takes `crawlMs`. */
function lifeOf(options: {
  maxRetries: number;
  windowHours: number;
  crawlMs: number;
  random: () => number;
}): number[] {
  const moments: number[] = [];
  let now = after(options.crawlMs);
  for (;;) {
    const next = nextCrawlRetry({
      ...options,
      retry: moments.length,
      firstTriedAt: START,
      now,
      random: options.random(),
    });
    if (next === undefined) return moments;
    moments.push(next.getTime() - START.getTime());
    now = new Date(next.getTime() + options.crawlMs);
  }
}

describe('crawl retries', () => {
  test.each([
    ['quick crawls, no jitter', { maxRetries: 110, windowHours: 48, crawlMs: 0, random: () => 0 }],
    ['crawls of 90 s each', { maxRetries: 110, windowHours: 48, crawlMs: 90_000, random: () => 0 }],
    ['most jitter', { maxRetries: 110, windowHours: 48, crawlMs: 90_000, random: () => 0.999_999 }],
    ['any jitter', { maxRetries: 110, windowHours: 48, crawlMs: 5_000, random: Math.random }],
    ['an hour', { maxRetries: 20, windowHours: 1, crawlMs: 20_000, random: () => 0 }],
    ['many in little time', { maxRetries: 1_000, windowHours: 1, crawlMs: 100, random: () => 0.5 }],
  ])('all fit in the window: %s', (_why, options) => {
    const moments = lifeOf(options);
    expect(moments).toHaveLength(options.maxRetries);
    expect(moments.at(-1)).toBeLessThanOrEqual(options.windowHours * HOUR);
  });

  test('the default ones reach far into the 48 hours', () => {
    const moments = lifeOf({ maxRetries: 110, windowHours: 48, crawlMs: 0, random: Math.random });
    expect(moments.at(-1)).toBeGreaterThan(40 * HOUR);
  });

  test('the first come within seconds and the waits grow', () => {
    const moments = lifeOf({ maxRetries: 110, windowHours: 48, crawlMs: 0, random: Math.random });
    const waits = moments.map((moment, at) => moment - (moments[at - 1] ?? 0)).slice(0, 14);
    expect(waits[0]).toBeLessThanOrEqual(5_000);
    expect(waits[0]).toBeGreaterThanOrEqual(3_750);
    expect(waits).toEqual(waits.toSorted((a, b) => a - b));
  });

  test.each<[why: string, input: Partial<CrawlRetryInput>, waitMs: number | undefined]>([
    ['the first, no jitter', {}, 5_000],
    ['the first, most jitter', { random: 1 - Number.EPSILON }, 3_750],
    ['the second', { retry: 1 }, 7_500],
    ['none left', { retry: 110 }, undefined],
    ['none allowed', { maxRetries: 0 }, undefined],
    ['the last', { retry: 109, now: after(47 * HOUR) }, HOUR],
    ['the window is over', { retry: 1, now: after(48 * HOUR) }, undefined],
    ['the window has less than a second', { retry: 1, now: after(48 * HOUR - 999) }, undefined],
    ['a share under a second', { maxRetries: 1_000, now: after(48 * HOUR - 2_000) }, 1_000],
    ['Retry-After above the own wait', { retryAfterMs: 60_000 }, 60_000],
    ['Retry-After with jitter on top', { retryAfterMs: 60_000, random: 0.5 }, 63_000],
    ['Retry-After below the own wait', { retryAfterMs: 100 }, 5_000],
    ['Retry-After beyond the window', { retryAfterMs: 90 * HOUR }, 48 * HOUR],
    ['Retry-After without end', { retryAfterMs: Number.POSITIVE_INFINITY }, 48 * HOUR],
    ['a retry number beyond all powers', { retry: 5_000, maxRetries: 5_001 }, 48 * HOUR],
  ])('%s', (_why, input, waitMs) => {
    expect(retryWait(input)).toBe(waitMs);
  });
});

describe('delivery retries', () => {
  test('a schedule in every unit', () => {
    expect(parseRetrySchedule('250ms, 5s,1.5m ,2h,1d')).toEqual([
      250, 5_000, 90_000, 7_200_000, 86_400_000,
    ]);
  });

  test.each(['', 'x', '5', '5s,', '-5s', '5 s', '5s;6s', '1e3s', '31d', '1s,'.repeat(100) + '1s'])(
    'refuses %j',
    (text) => {
      expect(() => parseRetrySchedule(text)).toThrow(/^(a wait )?must be/);
    },
  );

  const schedule = parseRetrySchedule('10s,1m');
  test.each<[attempt: number, random: number, waitMs: number | undefined]>([
    [1, 0.5, 10_000],
    [1, 0, 9_000],
    [2, 1 - Number.EPSILON, 66_000],
    [3, 0.5, undefined],
    [400, 0.5, undefined],
  ])('after attempt %i with random %d', (attempt, random, waitMs) => {
    const due = nextDelivery(schedule, attempt, START, random);
    expect(due === undefined ? undefined : due.getTime() - START.getTime()).toBe(waitMs);
  });
});
