import { describe, expect, test } from 'vitest';
import { mongodbUri } from '../../../support/mongodb.ts';
import { at } from '../store-harness.ts';
import { withProcesses } from './gated.ts';

const HOUR = 3_600_000;

describe.skipIf(mongodbUri === '')('a machine whose clock is far ahead', () => {
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
