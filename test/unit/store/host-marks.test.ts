import { expect, test } from 'vitest';
import { createHostMarks } from '../../../src/store/mongo/host-marks.ts';

const NONE: ReadonlySet<string> = new Set();
const WHOLE = { behind: '', upTo: undefined };
const parts = (most: number, jobs: number, except = NONE) => ({ most, jobs, except });

const of = (...hosts: string[]) => hosts.map((host) => ({ host }));

/** What was read when all jobs of the whole range were. */
const whole = (jobsOf: Readonly<Record<string, number>>) => [
  {
    range: WHOLE,
    documents: Object.entries(jobsOf).flatMap(([host, jobs]) =>
      Array.from({ length: jobs }, () => ({ host })),
    ),
    isWhole: true,
  },
];

test('known hosts divide a range, by how many jobs they have', () => {
  const marks = createHostMarks();
  marks.note('one', whole({ a: 1, b: 2, c: 2, d: 9 }), NONE);
  marks.note('two', whole({ x: 1 }), NONE);
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

test('what a look has read replaces what was known, up to the first host that it has not read', () => {
  const marks = createHostMarks();
  marks.note('one', whole({ a: 1, b: 1, c: 1, d: 1, e: 1, f: 1 }), NONE);
  const read = [
    { range: { behind: '', upTo: 'b' }, documents: of('b', 'b'), isWhole: false },
    { range: { behind: 'b', upTo: 'd' }, documents: of('bb'), isWhole: true },
    { range: { behind: 'd', upTo: 'f' }, documents: of('dd', 'dd'), isWhole: false },
    { range: { behind: 'f', upTo: undefined }, documents: [], isWhole: true },
  ];
  marks.note('one', read, new Set(['c']));
  marks.add('one', ['g', 'f']);
  const ends = (jobs: number) => marks.divide('one', WHOLE, parts(9, jobs)).map(({ upTo }) => upTo);
  expect(ends(1)).toEqual(['b', 'bb', 'c', 'dd', 'e', 'f', undefined]);
  // Of `b`, `dd` and `g` it is not known how many jobs they have.
  expect(ends(2)).toEqual(['b', 'c', 'dd', 'f', undefined]);
});

test('hosts of a queue that was seen to its end replace those that were pushed', () => {
  const marks = createHostMarks();
  marks.add('one', ['a', 'b', 'c']);
  marks.replace('one', ['d', 'b']);
  const ends = marks.divide('one', WHOLE, parts(9, 1)).map(({ upTo }) => upTo);
  expect(ends).toEqual(['b', undefined]);
});

test('hosts without end are kept for one crawler up to a limit', () => {
  const marks = createHostMarks();
  marks.add(
    'one',
    Array.from({ length: 5_000 }, (_, n) => `h${n}`),
  );
  expect(marks.divide('one', WHOLE, parts(10_000, 1))).toHaveLength(2_000);
});
