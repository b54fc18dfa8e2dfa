import { expect, test } from 'vitest';
import {
  addTry,
  type KeptTry,
  MAX_KEPT_TRIES,
  parseTries,
  toTries,
} from '../../../src/domain/job-try.ts';

const tried = (n: number) => ({
  startedAt: new Date(n),
  durationMs: n,
  originalStatus: 503,
  failure: 'target_unavailable',
  steps: [['first_byte', n]] as const,
});

test('tries are read as they were kept, also from text', () => {
  const kept = addTry([], tried(7));
  expect(toTries(kept)).toEqual([tried(7)]);
  expect(toTries(parseTries(JSON.stringify(kept)))).toEqual([tried(7)]);
  expect(toTries(parseTries(undefined))).toEqual([]);
});

test('tries are read with their code and their rung, or one of the two', () => {
  for (const more of [
    { rung: 'direct' },
    { detail: 'EPROTO' },
    { rung: 'direct', detail: 'EPROTO' },
  ]) {
    const each = { ...tried(7), ...more };
    expect(toTries(parseTries(JSON.stringify(addTry([], each))))).toEqual([each]);
  }
});

test('the latest tries are kept, and take about 80 bytes each', () => {
  let kept: readonly KeptTry[] = [];
  for (let n = 0; n < 3 * MAX_KEPT_TRIES; n += 1) kept = addTry(kept, tried(1_764_000_000_000 + n));
  expect(kept).toHaveLength(MAX_KEPT_TRIES);
  expect(toTries(kept).at(-1)).toEqual(tried(1_764_000_000_000 + 3 * MAX_KEPT_TRIES - 1));
  expect(JSON.stringify(kept).length).toBeLessThan(110 * MAX_KEPT_TRIES);
});
