import { expect, test } from 'vitest';
import { percentile, timeBucket } from '../../../src/domain/crawl-time-buckets.ts';
import { type DayCounts, toHistoryDay } from '../../../src/domain/stats.ts';
import {
  type Sample,
  timelineOf,
  timelineOfDays,
  timelineSteps,
} from '../../../src/domain/timeline.ts';

const NOW = new Date('2026-05-17T10:00:20Z');
const minute = (n: number) => new Date(Date.parse('2026-05-17T09:00:00Z') + n * 60_000);
const sample = (n: number, counts: DayCounts, queued = 0, day = '2026-05-17'): Sample => ({
  at: minute(n),
  day,
  counts,
  queued,
});
const always = Array.from({ length: 200 }, (_, n) => minute(n - 100));

test('a point has what was counted since the sample before it', () => {
  const samples = [
    sample(-30, { success: 100 }, 7),
    sample(10, { success: 130, failed: 1, times: { 50: 10 } }, 5),
    sample(11, { success: 131, failed: 1, times: { 50: 10, 100: 1 } }, 4),
    sample(60, { success: 140 }),
  ];
  const points = timelineOf('hour', NOW, samples, always);
  expect(points).toHaveLength(60);
  expect(points[0]?.at).toEqual(minute(1));
  // Nothing changed until then.
  expect(points[0]).toMatchObject({ success: 0, queued: 7, missing: false, medianMs: undefined });
  expect(points[9]).toMatchObject({ success: 30, failed: 1, queued: 5, medianMs: 40, p95Ms: 49 });
  expect(points[10]).toMatchObject({ success: 1, failed: 0, queued: 4, medianMs: 88 });
  expect(points[11]).toMatchObject({ success: 0, queued: 4 });
  expect(points[59]).toMatchObject({ at: minute(60), success: 9 });
});

test('the first sample of a day counts from zero', () => {
  const samples = [sample(5, { success: 900 }, 0, '2026-05-16'), sample(6, { success: 3 })];
  const points = timelineOf('hour', NOW, samples, always);
  expect(points[4]?.success).toBe(900);
  expect(points[5]?.success).toBe(3);
});

test('where no samples were taken nothing is known', () => {
  const taken = always.filter((at) => at <= minute(20) || at >= minute(30));
  const points = timelineOf('hour', NOW, [sample(0, {}, 3)], taken);
  const missing = points.filter((each) => each.missing).map(({ at }) => at);
  expect(missing).toEqual(Array.from({ length: 8 }, (_, n) => minute(22 + n)));
  expect(points[22]?.queued).toBeUndefined();
  expect(points[40]?.queued).toBe(3);
});

test('ranges have steps of a minute, ten minutes, an hour and a day', () => {
  const first = (range: Parameters<typeof timelineSteps>[0]) =>
    timelineSteps(range, NOW)[0]?.toISOString();
  expect(first('hour')).toBe('2026-05-17T09:01:00.000Z');
  expect(first('day')).toBe('2026-05-16T10:10:00.000Z');
  expect(first('week')).toBe('2026-05-10T11:00:00.000Z');
  expect(first('quarter')).toBe('2026-02-17T00:00:00.000Z');
  const days = timelineOfDays(NOW, [toHistoryDay('2026-05-16', { failed: 2, times: { 10: 1 } })]);
  expect(days).toHaveLength(90);
  expect(days[88]).toMatchObject({ failed: 2, queued: undefined, missing: false, p95Ms: 10 });
  expect(days[89]).toMatchObject({ failed: 0 });
});

test.each([1, 9, 44, 130, 333, 1_234, 8_000, 45_000, 130_000])(
  'percentiles of durations around %i ms are near the exact ones',
  (around) => {
    const counts: Record<string, number> = {};
    const exact: number[] = [];
    for (let n = 0; n < 1_000; n += 1) {
      const tookMs = around * (0.9 + n / 5_000);
      exact.push(tookMs);
      const bucket = timeBucket(tookMs);
      counts[bucket] = (counts[bucket] ?? 0) + 1;
    }
    for (const share of [0.5, 0.95]) {
      const wanted = exact[Math.floor(share * 1_000)] ?? 0;
      const found = percentile(counts, share) ?? 0;
      // Below the first bound only that it is below is known.
      if (around >= 10) expect(Math.abs(found / wanted - 1)).toBeLessThan(0.6);
      else expect(found).toBeLessThanOrEqual(10);
    }
    expect(percentile({}, 0.5)).toBeUndefined();
  },
);
