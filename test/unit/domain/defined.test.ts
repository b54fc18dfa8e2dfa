import { expect, test } from 'vitest';
import { defined } from '../../../src/domain/defined.ts';

test('undefined fields are left out, every other value stays', () => {
  const kept = defined({ a: undefined, b: 0, c: '', d: false, e: null });
  expect(Object.entries(kept)).toEqual([
    ['b', 0],
    ['c', ''],
    ['d', false],
    ['e', null],
  ]);
});

test('an undefined field does not overwrite the value it is spread over', () => {
  const value: number | undefined = undefined;
  expect({ a: 1, ...defined({ a: value }) }).toEqual({ a: 1 });
});
