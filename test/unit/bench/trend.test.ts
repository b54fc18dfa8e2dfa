import { expect, test } from 'vitest';
import { type Series, trendOf } from '../../../bench/soak/trend.ts';
import { createNoise } from '../../support/noise.ts';

/** Ten minutes of samples, one a second. */
function series(valueAt: (seconds: number, noise: number) => number): Series {
  const noise = createNoise(7);
  const points = Array.from(
    { length: 600 },
    (_, at) => [at, valueAt(at, noise.int(1_000) / 1_000)] as const,
  );
  return { name: 'Memory', unit: 'MB', points, allowed: { share: 0.08, amount: 15 } };
}

test.each<[name: string, isFlat: boolean, valueAt: (seconds: number, noise: number) => number]>([
  ['the same all the time', true, () => 200],
  ['noise', true, (_seconds, noise) => 200 + 40 * noise],
  ['a warm-up, then noise', true, (at, noise) => 250 - 100 * Math.exp(-at / 40) + 20 * noise],
  ['single outliers late in the run', true, (at) => (at > 500 && at % 10 === 0 ? 900 : 200)],
  ['less and less', true, (at) => 400 - at / 10],
  ['a leak of 5 MB a minute', false, (at, noise) => 200 + at / 12 + 20 * noise],
  ['a leak from the middle on', false, (at) => 200 + Math.max(0, at - 250) / 5],
])('%s: flat %s', (_name, isFlat, valueAt) => {
  expect(trendOf(series(valueAt)).isFlat).toBe(isFlat);
});

test('a heap that is collected every two minutes is flat, unless each collection leaves more', () => {
  const sawtooth = (at: number): number => 50 + (at % 120) / 2;
  const byFloor = { byFloor: true, allowed: { share: 0.15, amount: 8 } };
  expect(trendOf({ ...series(sawtooth), ...byFloor }).isFlat).toBe(true);
  expect(trendOf({ ...series((at) => sawtooth(at) + at / 10), ...byFloor }).isFlat).toBe(false);
});

test('too few points are no trend', () => {
  const short = { ...series(() => 200), points: [[0, 200] as const] };
  expect(() => trendOf(short)).toThrow('ten points');
});
