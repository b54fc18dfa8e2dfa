import { expect, test } from 'vitest';
import { createOverviews } from '../../../src/service/reads/overviews.ts';
import { createSharedReadings } from '../../../src/service/reads/shared-readings.ts';
import { createOverviewPoll } from '../../../src/service/watches/overview-poll.ts';
import { eventually } from '../../support/eventually.ts';
import { createTestClock } from '../../support/test-clock.ts';

/** Readings that end when they are told to. */
function heldReadings() {
  const held: PromiseWithResolvers<number>[] = [];
  let underway = 0;
  let most = 0;
  return {
    held,
    get most() {
      return most;
    },
    async read(): Promise<number> {
      const own = Promise.withResolvers<number>();
      held.push(own);
      underway += 1;
      most = Math.max(most, underway);
      return own.promise.finally(() => {
        underway -= 1;
      });
    },
  };
}

test('calls that come during a reading share the next one, which sees what was written before them', async () => {
  const readings = heldReadings();
  const read = createSharedReadings(readings.read);
  const first = read('account');
  const others = Array.from({ length: 50 }, () => read('account'));
  const elsewhere = read('another');
  expect(readings.held).toHaveLength(2);
  readings.held[1]?.resolve(9);
  expect(await elsewhere).toBe(9);
  readings.held[0]?.resolve(1);
  expect(await first).toBe(1);
  await eventually(() => expect(readings.held).toHaveLength(3));
  readings.held[2]?.resolve(2);
  expect(new Set(await Promise.all(others))).toEqual(new Set([2]));
  expect(readings.held).toHaveLength(3);
});

test('a reading that fails is the failure of those who asked for it, and of nobody after them', async () => {
  const readings = heldReadings();
  const read = createSharedReadings(readings.read);
  const first = read('account');
  const second = read('account');
  readings.held[0]?.reject(new Error('away'));
  await expect(first).rejects.toThrow('away');
  await eventually(() => expect(readings.held).toHaveLength(2));
  readings.held[1]?.resolve(2);
  expect(await second).toBe(2);
});

test('lists and watches of one account that are asked for again and again read it once at a time', async () => {
  let underway = 0;
  let most = 0;
  let readings = 0;
  const overviews = createOverviews({
    attention: () => [],
    clock: createTestClock(),
    listings: {
      async crawlers() {
        readings += 1;
        underway += 1;
        most = Math.max(most, underway);
        await new Promise((resolve) => setImmediate(resolve));
        underway -= 1;
        return [];
      },
    },
  });
  const poll = createOverviewPoll({ overviews });
  const abort = new AbortController();
  const streams = Array.from({ length: 40 }, () => poll.follow('account', abort.signal));
  await Promise.all([
    ...streams.map((stream) => stream.next()),
    ...Array.from({ length: 40 }, () => overviews.read('account')),
  ]);
  expect({ most, readings }).toEqual({ most: 1, readings: 2 });
  abort.abort(new Error('gone'));
  await Promise.allSettled(streams.map((stream) => stream.next()));
});
