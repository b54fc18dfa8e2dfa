import { describe, expect, test } from 'vitest';
import { mongodbUri } from '../../../support/mongodb.ts';
import { at, claimJobs, makeJobs, TTL_MS } from '../store-harness.ts';
import { withProcesses } from './gated.ts';

const HOUR = 3_600_000;

describe.skipIf(mongodbUri === '')('a machine whose clock is far ahead', () => {
  test(
    'and that dies with a crawler does not keep it: others see the crawler, take it, and wake it',
    withProcesses(async ({ bench, stopped }) => {
      const { store } = bench;
      const crawler = await bench.crawler();
      const { crawlerId } = crawler;
      await bench.push(makeJobs(crawler, 1));
      const lease = await stopped.queue.acquire(crawlerId, 'ahead', TTL_MS, at(3 * HOUR));
      if (lease === undefined) throw new Error('no lease');
      expect((await claimJobs(stopped, lease, 1, at(3 * HOUR))).jobs).toHaveLength(1);
      expect(await store.queue.crawlersWithWorkDue(at(TTL_MS), 9)).toEqual([crawlerId]);
      const receipt = await bench.push(makeJobs(crawler, 1), at(TTL_MS));
      expect(receipt.leased).toBe(false);
      const next = await bench.lease(crawler, at(TTL_MS), 'right');
      expect((await claimJobs(store, next, 9, at(TTL_MS))).jobs).toHaveLength(2);
      expect(await bench.counters(crawler)).toMatchObject({ running: 2, waiting: 0 });
    }),
  );

  test(
    'and that takes from a rate does not use it up for good',
    withProcesses(async ({ bench, stopped }) => {
      const years = 3 * 365 * 24 * HOUR;
      const { rates } = bench.store;
      expect((await rates.take('token', 2, 2, at(0))).granted).toBe(2);
      await stopped.rates.take('token', 5, 2, at(years));
      expect((await rates.take('token', 2, 2, at(1_000))).granted).toBe(0);
      expect((await rates.take('token', 2, 2, at(2_000))).granted).toBe(2);
      const allowance = { capacity: 10, refillMs: HOUR };
      await stopped.rates.takeWhole('account', 10, allowance, at(years));
      await rates.takeWhole('account', 10, allowance, at(0));
      expect((await rates.takeWhole('account', 10, allowance, at(HOUR))).granted).toBe(true);
    }),
  );
});
