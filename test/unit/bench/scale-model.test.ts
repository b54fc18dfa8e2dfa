import { describe, expect, test } from 'vitest';
import {
  type Deployment,
  limitsOf,
  readCosts,
  resourcesAt,
} from '../../../bench/scale/scale-model.ts';

const { assumed, designs } = readCosts();
const { lease, shares } = designs;

const base: Deployment = {
  processes: 100,
  shards: 12,
  accounts: 1,
  crawlers: 1_000,
  concurrency: 50,
  pageMs: 1_000,
  delivery: 'storage',
  pushedAtOnce: 100,
};

const first = (costs: typeof lease, use: Deployment) => limitsOf(costs, assumed, use)[0];

describe('the model of large deployments', () => {
  test('a lease for each crawler meets in the document of the account, unless there are several', () => {
    expect(first(lease, base)?.name).toBe('document of the account');
    expect(first(lease, { ...base, accounts: 100 })?.name).not.toBe('document of the account');
  });

  test('leased crawlers use up a server by being there', () => {
    const idle = { ...base, crawlers: 10_000, concurrency: 5 };
    expect(first(lease, idle)).toEqual({ name: 'commands at the first shard', rate: 0 });
    expect(first(shares, idle)?.rate).toBeGreaterThan(10_000);
  });

  test('more shards never make anything worse that is sharded', () => {
    const writes = (shards: number): number =>
      limitsOf(shares, assumed, { ...base, shards }).find(({ name }) => name.startsWith('writes'))
        ?.rate ?? 0;
    expect(writes(1)).toBeLessThan(writes(3));
    expect(writes(3)).toBeLessThan(writes(12));
  });

  test('one wide crawler is one process with a lease, and sixteen with shares', () => {
    const wide = { ...base, crawlers: 1, concurrency: 1_000, pageMs: 200 };
    const processors = (costs: typeof lease): number =>
      resourcesAt(1_000, costs, assumed, wide).find(({ name }) => name.startsWith('processors'))
        ?.capacity ?? 0;
    expect(processors(lease)).toBe(assumed.coresOfOneProcess);
    expect(processors(shares)).toBe(16 * assumed.coresOfOneProcess);
  });

  test('a limit is where demand meets capacity', () => {
    for (const costs of [lease, shares]) {
      for (const { name, rate } of limitsOf(costs, assumed, base)) {
        if (!Number.isFinite(rate) || rate === 0) continue;
        const found = resourcesAt(rate, costs, assumed, base).find((each) => each.name === name);
        expect((found?.demand ?? 0) / (found?.capacity ?? 1), name).toBeCloseTo(1, 2);
      }
    }
  });
});
