import { expect, test } from 'vitest';
import { getOrInsert } from '../../../src/domain/get-or-insert.ts';
import { createLruMap } from '../../../src/domain/lru-map.ts';

test.each([
  ['Map', () => new Map<string, number[]>()],
  ['LruMap', () => createLruMap<string, number[]>({ maxEntries: 2 })],
])('a value of a %s is made once, and inserted', (_name, create) => {
  const map = create();
  const made = getOrInsert(map, 'a', () => [1]);
  expect(map.get('a')).toBe(made);
  expect(getOrInsert(map, 'a', () => [2])).toBe(made);
  expect(made).toEqual([1]);
});
