import { expect, test } from 'vitest';
import {
  type CrawlGrants,
  type CrawlRoom,
  createCrawlRoom,
} from '../../../src/dispatcher/crawl-room.ts';
import { createFairPool } from '../../../src/fairness/fair-pool.ts';
import { eventually } from '../../support/eventually.ts';

const PIECE = 10;

/** Lanes that each have three crawls to start, in pools of `slots` slots and `pieces` pieces of memory. */
function openLanes(slots: number, pieces: number) {
  const pools = {
    slots: createFairPool({ name: 'slots', capacity: slots }),
    memory: createFairPool({ name: 'memory', capacity: pieces * PIECE }),
  };
  const running: CrawlGrants[] = [];
  let asked = 0;
  let started = 0;
  const fills = ['a', 'b', 'c', 'd'].map((crawlerId, n) => {
    const claimant = { accountId: n < 2 ? 'one' : 'two', crawlerId };
    let left = 3;
    const room: CrawlRoom = createCrawlRoom({ ...pools, onRoom: fill });
    function fill(): void {
      while (left > 0) {
        asked += 1;
        if (asked > 10_000) throw new Error('what is free is passed on for ever');
        const grants = room.take(claimant, PIECE);
        if (grants === undefined) return;
        left -= 1;
        started += 1;
        running.push(grants);
      }
    }
    return fill;
  });
  return {
    ...pools,
    fills,
    started: () => started,
    endOne() {
      const { slot, base } = running.shift() ?? {};
      base?.release();
      slot?.release();
    },
  };
}

test.each([
  [1, 1],
  [1, 3],
  [3, 1],
  [2, 2],
  [8, 1],
])(
  'with %i slots and memory for %i crawls, all lanes get to start theirs',
  async (slots, pieces) => {
    const lanes = openLanes(slots, pieces);
    for (const fill of lanes.fills) fill();
    const most = Math.min(slots, pieces);
    expect(lanes.started()).toBe(most);
    for (let count = most + 1; count <= 12; count += 1) {
      lanes.endOne();
      await eventually(() => expect(lanes.started()).toBe(count));
    }
    for (let n = 0; n < most; n += 1) lanes.endOne();
    await eventually(() => expect([lanes.slots.used, lanes.memory.used]).toEqual([0, 0]));
  },
);

test('a lane that stops gives back the slot of a crawl that waits for memory', async () => {
  const slots = createFairPool({ name: 'slots', capacity: 1 });
  const memory = createFairPool({ name: 'memory', capacity: PIECE });
  const held = memory.tryAcquire({ accountId: 'other' }, PIECE);
  const room = createCrawlRoom({ slots, memory, onRoom: () => undefined });
  expect(room.take({ accountId: 'one' }, PIECE)).toBeUndefined();
  expect([room.waits, slots.used]).toEqual([true, 1]);
  room.cancel();
  expect([room.waits, slots.used, memory.waiting]).toEqual([false, 0, 0]);
  held?.release();
});
