import { expect, test } from 'vitest';
import { startFleet } from '../../support/chaos/fleet.ts';
import { eventually } from '../../support/eventually.ts';

test('a database that ends by itself is started again, and the report says so', async () => {
  let crash: string | undefined;
  const calls: string[] = [];
  const database = {
    get crash() {
      return crash;
    },
    async kill() {
      calls.push('kill');
    },
    async start() {
      calls.push('start');
      crash = undefined;
    },
  };
  await using fleet = await startFleet({
    env: {},
    places: 0,
    database,
    clocks: [],
    network: undefined,
  });
  crash = 'mongod ended with 1: write EPIPE';
  await eventually(() => expect(calls).toEqual(['kill', 'start']));
  await eventually(() => expect(fleet.isWhole()).toBe(true));
  expect(fleet.crashes).toEqual(['mongod ended with 1: write EPIPE']);
  expect(fleet.done.database).toBe(1);
  expect(fleet.faults).toEqual([]);
});
