import { expect, test } from 'vitest';
import { createSlotWaiters } from '../../../src/threads/slot-waiters.ts';

test('crawls are taken in their order, each line by itself, and each once', () => {
  const waiters = createSlotWaiters<string>();
  waiters.add(1, 10, 'a');
  waiters.add(2, 11, 'b');
  waiters.add(1, 12, 'c');
  waiters.add(1, 13, 'd');
  expect(waiters.take(12)).toBe('c');
  expect([waiters.take(12), waiters.take(99)]).toEqual([undefined, undefined]);
  expect([1, 1, 1, 2, 2].map((line) => waiters.takeFirst(line))).toEqual([
    'a',
    'd',
    undefined,
    'b',
    undefined,
  ]);
});
