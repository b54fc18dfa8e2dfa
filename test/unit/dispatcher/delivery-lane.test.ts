import { expect, test } from 'vitest';
import { createDeliveryLane } from '../../../src/dispatcher/delivery-lane.ts';
import { createDeliveryPaces } from '../../../src/dispatcher/delivery-paces.ts';
import { WorkAborted } from '../../../src/dispatcher/in-flight.ts';
import type { Delivery, EndpointAnswer } from '../../../src/domain/delivery.ts';
import { createFairPool } from '../../../src/fairness/fair-pool.ts';
import type { DeliveryOutcome, JobOutcome } from '../../../src/store/store.ts';
import { eventually } from '../../support/eventually.ts';
import { silentLogger } from '../../support/loggers.ts';
import { createTestClock } from '../../support/test-clock.ts';
import { deliveryOf, webhookCrawler } from '../../support/webhook-fixtures.ts';

const crawler = webhookCrawler();

function endOfCrawl(n: number): JobOutcome {
  const { crawlerId, attempt } = deliveryOf('');
  const rid = `new-${n}`;
  return {
    kind: 'delivery',
    rid,
    crawlerId,
    attempt,
    record: deliveryOf('page', { rid }),
    callbackHeaders: [],
    billed: true,
    expiresAt: new Date(),
    held: false,
  };
}

/** A lane whose posts are acknowledged when the test says so. */
function startLane(reserve = 0) {
  const clock = createTestClock();
  const gates: (() => void)[] = [];
  const memory = createFairPool({ name: 'memory', capacity: 64 * 1024 * 1024, reserve });
  const lane = createDeliveryLane({
    isHelper: false,
    crawlerId: crawler.crawlerId,
    logger: silentLogger,
    memory,
    paces: createDeliveryPaces({ clock, ackTimeoutMs: 200 }),
    onChange: () => undefined,
    async postDelivery(_crawler, { rid, crawlerId, attempt }: Delivery) {
      const gate = Promise.withResolvers<void>();
      gates.push(gate.resolve);
      await gate.promise;
      const outcome: DeliveryOutcome = {
        kind: 'delivered',
        rid,
        crawlerId,
        attempt,
        billed: false,
      };
      const answer: EndpointAnswer = { kind: 'acknowledged', answerMs: 1 };
      return { outcome, answer };
    },
  });
  const due = (count: number): Delivery[] =>
    Array.from({ length: count }, (_, n) => deliveryOf('page', { rid: `due-${n}` }));
  /** One turn with as much due in the store as is claimed. */
  function turn(ended: readonly JobOutcome[], stored = 1_000) {
    const begun = lane.begin(ended, crawler, true);
    const claimed = due(Math.min(stored, begun.claimLimit));
    const { claimLimit } = begun;
    const held = begun.outcomes.flatMap((each) =>
      each.kind === 'delivery' && each.held ? deliveryOf('page', { rid: each.rid }) : [],
    );
    lane.start(begun, { held, claimed, keep: () => [], nextDeliveryAt: undefined }, crawler);
    lane.releaseUnused(begun);
    return { held: held.length, claimLimit };
  }
  async function acknowledgeAll(): Promise<void> {
    for (const open of gates.splice(0)) open();
    await eventually(() => expect(lane.inFlight).toBe(0));
  }
  return { lane, memory, turn, acknowledgeAll };
}

test('new results and due deliveries take turns, also for a single place', async () => {
  const { turn, acknowledgeAll } = startLane();
  const seen: { held: number; claimLimit: number }[] = [];
  for (let n = 0; n < 6; n++) {
    seen.push(turn(Array.from({ length: 40 }, (_, at) => endOfCrawl(n * 100 + at))));
    await acknowledgeAll();
  }
  const places = seen.map(({ held, claimLimit }) => held + claimLimit);
  expect(places).toEqual([1, 2, 4, 8, 16, 32]);
  const held = seen.reduce((sum, each) => sum + each.held, 0);
  expect(Math.abs(held * 2 - 63)).toBeLessThanOrEqual(1);
});

test('what has no place waits in the store, not in memory', () => {
  const { lane, memory, turn } = startLane();
  const ended = Array.from({ length: 500 }, (_, n) => endOfCrawl(n));
  expect(turn(ended, 0)).toMatchObject({ held: expect.any(Number) });
  expect(lane.inFlight).toBeLessThanOrEqual(1);
  expect(memory.used).toBe(0);
  expect(lane.isWaiting).toBe(true);
});

test('a lost result and an empty claim give their places back', async () => {
  const { lane, turn } = startLane();
  const begun = lane.begin([endOfCrawl(1)], crawler, false);
  expect(begun.slots).toHaveLength(1);
  lane.start(begun, { held: [], claimed: [], keep: () => [], nextDeliveryAt: undefined }, crawler);
  lane.releaseUnused(begun);
  expect(lane.inFlight).toBe(0);
  turn([], 0);
  expect(turn([endOfCrawl(2)], 0).held).toBe(1);
  expect(lane.inFlight).toBe(1);
});

test('an empty store is not asked again before somebody says that there is more', () => {
  const { lane, turn } = startLane();
  expect(turn([], 0).claimLimit).toBe(1);
  expect(turn([], 0).claimLimit).toBe(0);
  lane.expectBacklog();
  expect(turn([], 0).claimLimit).toBe(1);
});

test('pages in flight count in the memory budget until their posts end, and make way for who waits', async () => {
  const { lane, memory, turn, acknowledgeAll } = startLane();
  const { claimLimit } = turn([], 1);
  expect(claimLimit).toBe(1);
  const size = deliveryOf('page').body.byteLength;
  expect(memory.used).toBe(size);
  await acknowledgeAll();
  expect(memory.used).toBe(0);

  const all = await memory.acquire({ accountId: 'other' }, 64 * 1024 * 1024);
  const waiting = memory.acquire({ accountId: 'another' }, 1);
  expect(turn([endOfCrawl(1)])).toEqual({ held: 0, claimLimit: 0 });
  all.release();
  (await waiting).release();
  expect(turn([endOfCrawl(2)], 0).held).toBe(1);
  expect(lane.inFlight).toBe(1);
});

test('a page is posted from memory while another account waits for memory that it filled itself', async () => {
  const { lane, memory, turn } = startLane(4 * 1024 * 1024);
  const all = await memory.acquire({ accountId: 'other' }, 64 * 1024 * 1024);
  const waiting = memory.acquire({ accountId: 'other' }, 1);
  expect(turn([endOfCrawl(1)], 0).held).toBe(1);
  expect(lane.inFlight).toBe(1);
  all.release();
  (await waiting).release();
});

test('a lane without memory for a claim asks for a turn as soon as there is some', async () => {
  const { lane, memory, turn } = startLane();
  const all = await memory.acquire({ accountId: 'other' }, 64 * 1024 * 1024);
  expect(turn([], 1).claimLimit).toBe(0);
  expect(lane.hasRoom).toBe(false);
  all.release();
  await eventually(() => expect(lane.hasRoom).toBe(true));
  expect(turn([], 1).claimLimit).toBe(1);
  lane.close();
  lane.abortAll(new WorkAborted('dropped'));
});

test('memory that a lane waited for is given back when its crawler is paused', async () => {
  const { lane, memory, turn } = startLane();
  const all = await memory.acquire({ accountId: 'other' }, 64 * 1024 * 1024);
  turn([], 1);
  all.release();
  await eventually(() => expect(lane.hasRoom).toBe(true));
  expect(memory.used).toBeGreaterThan(0);
  lane.releaseUnused(lane.begin([], { ...crawler, pausedByMonitor: true }, true));
  expect(memory.used).toBe(0);
});
