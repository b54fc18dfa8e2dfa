import { expect, test } from 'vitest';
import { createHostMarks } from '../../../src/store/mongo/host-marks.ts';

const NONE: ReadonlySet<string> = new Set();

test('known hosts divide a range, in the order of their names', () => {
  const marks = createHostMarks();
  for (const host of ['d', 'b', 'c', 'b', 'a']) marks.note('one', host);
  marks.note('two', 'x');
  const whole = { behind: '', upTo: undefined };
  expect(marks.divide('one', whole, 9, NONE).map(({ upTo }) => upTo)).toEqual([
    'a',
    'b',
    'c',
    'd',
    undefined,
  ]);
  expect(marks.divide('one', { behind: 'a', upTo: 'c' }, 9, NONE)).toEqual([
    { behind: 'a', upTo: 'b' },
    { behind: 'b', upTo: 'c' },
  ]);
  expect(marks.divide('one', whole, 2, new Set(['a', 'c']))).toEqual([
    { behind: '', upTo: 'b' },
    { behind: 'b', upTo: 'd' },
  ]);
  marks.forget('one', 'b');
  expect(marks.divide('one', whole, 2, NONE)[1]).toEqual({ behind: 'a', upTo: 'c' });
  expect(marks.divide('other', whole, 9, NONE)).toEqual([whole]);
});

test('hosts without end are kept for one crawler up to a limit', () => {
  const marks = createHostMarks();
  for (let n = 0; n < 5_000; n += 1) marks.note('one', `h${n}`);
  const ranges = marks.divide('one', { behind: '', upTo: undefined }, 10_000, NONE);
  expect(ranges).toHaveLength(2_001);
});
