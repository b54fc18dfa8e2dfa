import { expect, test } from 'vitest';
import { createHostMarks } from '../../../src/store/mongo/host-marks.ts';

const NONE: ReadonlySet<string> = new Set();
const WHOLE = { behind: '', upTo: undefined };
const parts = (most: number, jobs: number, except = NONE) => ({ most, jobs, except });

test('known hosts divide a range, by how many jobs they have', () => {
  const marks = createHostMarks();
  marks.note('one', WHOLE, new Map(Object.entries({ d: 9, b: 2, c: 2, a: 1 })), NONE);
  marks.note('two', WHOLE, new Map([['x', 1]]), NONE);
  const ends = (jobs: number, most = 9, except = NONE) =>
    marks.divide('one', WHOLE, parts(most, jobs, except)).map(({ upTo }) => upTo);
  expect(ends(1)).toEqual(['a', 'b', 'c', undefined]);
  expect(ends(3)).toEqual(['b', 'c', undefined]);
  expect(ends(5)).toEqual(['c', undefined]);
  expect(ends(99)).toEqual([undefined]);
  expect(ends(1, 2)).toEqual(['a', 'b']);
  expect(ends(1, 9, new Set(['a', 'c']))).toEqual(['b', undefined]);
  expect(marks.divide('one', { behind: 'a', upTo: 'c' }, parts(9, 1))).toEqual([
    { behind: 'a', upTo: 'b' },
    { behind: 'b', upTo: 'c' },
  ]);
  expect(marks.divide('other', WHOLE, parts(9, 1))).toEqual([WHOLE]);
});

test('what a look has seen of a range replaces what was known of it', () => {
  const marks = createHostMarks();
  marks.note('one', WHOLE, new Map(Object.entries({ a: 1, b: 1, c: 1, d: 1 })), NONE);
  // It left out `c`.
  marks.note('one', { behind: 'a', upTo: 'd' }, new Map([['bb', 1]]), new Set(['c']));
  const ends = marks.divide('one', WHOLE, parts(9, 1)).map(({ upTo }) => upTo);
  expect(ends).toEqual(['a', 'bb', undefined]);
});

test('hosts without end are kept for one crawler up to a limit', () => {
  const marks = createHostMarks();
  const hosts = Array.from({ length: 5_000 }, (_, n) => [`h${n}`, 1] as const);
  marks.note('one', WHOLE, new Map(hosts), NONE);
  expect(marks.divide('one', WHOLE, parts(10_000, 1))).toHaveLength(2_000);
});
