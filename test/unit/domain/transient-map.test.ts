import { expect, test } from 'vitest';
import { createTransientMap, createTransientSet } from '../../../src/domain/transient-map.ts';
import { createNoise } from '../../support/noise.ts';

test('it holds what a Map holds, in the same order, whatever comes and goes', () => {
  const noise = createNoise(11);
  const expected = new Map<number, number>();
  const map = createTransientMap<number, number>();
  for (let step = 0; step < 5_000; step += 1) {
    const key = noise.int(60);
    if (noise.int(2) === 0) {
      expected.set(key, step);
      map.set(key, step);
    } else expect(map.delete(key)).toBe(expected.delete(key));
    expect([map.size, map.has(key), map.get(key)]).toEqual([
      expected.size,
      expected.has(key),
      expected.get(key),
    ]);
  }
  expect([...map.entries()]).toEqual([...expected]);
  map.clear();
  expect([map.size, ...map.keys()]).toEqual([0]);
});

test('all can be removed while they are passed', () => {
  const set = createTransientSet<number>();
  for (let n = 0; n < 100; n += 1) set.add(n);
  const passed = [];
  for (const item of set.values()) {
    passed.push(item);
    set.delete(item);
  }
  expect(passed).toHaveLength(100);
  expect([...set.values()]).toEqual([]);
});
