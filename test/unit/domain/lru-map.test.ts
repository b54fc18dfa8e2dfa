import { expect, test } from 'vitest';
import { createLruMap } from '../../../src/domain/lru-map.ts';

const keys = (map: { entries(): Iterable<[string, unknown]> }) =>
  Array.from(map.entries(), ([key]) => key);

test('a full map drops the entry that was neither set nor read for longest', () => {
  const map = createLruMap<string, number>({ maxEntries: 2 });
  map.set('a', 1);
  map.set('b', 2);
  expect(map.get('a')).toBe(1);
  map.set('c', 3);
  expect(keys(map)).toEqual(['a', 'c']);
  map.set('a', 4);
  map.set('d', 5);
  expect(keys(map)).toEqual(['a', 'd']);
});

test('asking whether a key is there does not keep it', () => {
  const map = createLruMap<string, number>({ maxEntries: 1 });
  map.set('a', 1);
  expect(map.has('a')).toBe(true);
  map.set('b', 2);
  expect(map.has('a')).toBe(false);
});

test('pinned entries stay, beyond the limit if need be, and go once they are not pinned', () => {
  const evicted: string[] = [];
  const map = createLruMap<string, { name: string; pinned: boolean }>({
    maxEntries: 2,
    isPinned: ({ pinned }) => pinned,
    onEvict: ({ name }) => evicted.push(name),
  });
  const a = { name: 'a', pinned: true };
  const b = { name: 'b', pinned: true };
  for (const each of [a, b, { name: 'c', pinned: false }]) map.set(each.name, each);
  // The newest entry is not its own victim: its caller is about to use it.
  expect([keys(map), evicted]).toEqual([['a', 'b', 'c'], []]);
  a.pinned = false;
  map.set('d', { name: 'd', pinned: false });
  expect([keys(map), evicted]).toEqual([
    ['b', 'd'],
    ['a', 'c'],
  ]);
});
