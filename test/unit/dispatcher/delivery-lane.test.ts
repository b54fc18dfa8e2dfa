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

/** A lane whose posts are answered when the test says so. */
function startLane({ reserve = 0, answerMs = 1, most = Number.POSITIVE_INFINITY } = {}) {
  const clock = createTestClock();
  const gates: ((answer: EndpointAnswer) => void)[] = [];
  const memory = createFairPool({ name: 'memory', capacity: 64 * 1024 * 1024, reserve });
  const lease = { isHeld: true };
  const lane = createDeliveryLane({
    isHelper: false,
    mayPost: () => lease.isHeld,
    crawlerId: crawler.crawlerId,
    logger: silentLogger,
    memory,
    paces: createDeliveryPaces({ clock, ackTimeoutMs: 200 }),
    onChange: () => undefined,
    async postDeliveries(_crawler, deliveries) {
      const gate = Promise.withResolvers<EndpointAnswer>();
      gates.push(gate.resolve);
      const answer = await gate.promise;
      const outcomes = deliveries.slice(0, most).map(
        ({ rid, crawlerId, attempt }): DeliveryOutcome => ({
          kind: 'delivered',
          rid,
          crawlerId,
          attempt,
          billed: false,
        }),
      );
      return { outcomes, answer, isTooLong: outcomes.length < deliveries.length };
    },
  });
  const due = (count: number): Delivery[] =>
    Array.from({ length: count }, (_, n) => deliveryOf('page', { rid: `due-${n}` }));
  /** One turn with as much due in the store as is claimed. */
  function turn(ended: readonly JobOutcome[], stored = 1_000, by = crawler) {
    const begun = lane.begin(ended, by, true);
    const claimed = due(Math.min(stored, begun.claimLimit));
    const { claimLimit, settlements } = begun;
    const held = begun.outcomes.flatMap((each) =>
      each.kind === 'delivery' && each.held ? deliveryOf('page', { rid: each.rid }) : [],
    );
    lane.start(begun, { held, claimed, keep: () => ({ held: [] }), nextDeliveryAt: undefined });
    lane.release(begun);
    return { held: held.length, claimLimit, settlements };
  }
  function answerAll(answer: EndpointAnswer = { kind: 'acknowledged', answerMs }): void {
    for (const open of gates.splice(0)) open(answer);
  }
  /** Acknowledges until nothing is in flight and nothing waits. */
  async function acknowledgeAll(): Promise<void> {
    await eventually(() => {
      answerAll();
      expect([lane.inFlight, lane.buffered]).toEqual([0, 0]);
    });
  }
  /** Lets the endpoint acknowledge some posts, so that its pace is known. */
  async function warmUp(): Promise<void> {
    for (let n = 0; n < 4; n++) {
      turn([endOfCrawl(-n)], 0);
      await acknowledgeAll();
    }
    turn([], 0);
  }
  return { lane, lease, memory, turn, answerAll, acknowledgeAll, warmUp };
}

const ends = (count: number): JobOutcome[] =>
  Array.from({ length: count }, (_, n) => endOfCrawl(n));

test('new results and due deliveries take turns, also for a single place', async () => {
  const { turn, acknowledgeAll } = startLane({ answerMs: 190 });
  const seen: { held: number; claimLimit: number }[] = [];
  for (let n = 0; n < 20; n++) {
    seen.push(turn(ends(40)));
    await acknowledgeAll();
  }
  const places = seen.map(({ held, claimLimit }) => held + claimLimit);
  // Each answer is slow: the endpoint takes one post, or two while a higher pace is tried.
  expect(Math.max(...places)).toBeLessThanOrEqual(3);
  const held = seen.reduce((sum, each) => sum + each.held, 0);
  const all = places.reduce((sum, each) => sum + each, 0);
  expect(all).toBeGreaterThanOrEqual(20);
  expect(Math.abs(held * 2 - all)).toBeLessThanOrEqual(2);
});

test('what an endpoint soon takes waits in memory and is posted as slots become free, without a turn', async () => {
  const { lane, turn, acknowledgeAll, warmUp } = startLane();
  await warmUp();
  expect(turn(ends(100), 0).held).toBe(100);
  expect(lane.inFlight).toBeLessThan(20);
  expect(lane.inFlight + lane.buffered).toBe(100);
  await acknowledgeAll();
  expect(lane.begin([], crawler, false).settlements).toHaveLength(100);
});

test('an endpoint that takes nothing for a while gets what waits for it from the store later', async () => {
  const { lane, turn, answerAll, warmUp } = startLane();
  await warmUp();
  turn(ends(100), 0);
  const { inFlight } = lane;
  answerAll({ kind: 'overloaded', retryAfterMs: 60_000 });
  await eventually(() => expect(lane.inFlight).toBe(0));
  const { settlements } = turn([endOfCrawl(100)]);
  expect(settlements.filter(({ kind }) => kind === 'release')).toHaveLength(100 - inFlight);
  expect(lane.buffered).toBe(0);
  expect(lane.isWaiting).toBe(true);
  expect(lane.pausedUntil()).toBeDefined();
});

test('what an endpoint soon takes is not given back, the rest is, also without a turn', async () => {
  const { lane, turn, answerAll, warmUp } = startLane();
  await warmUp();
  turn(ends(100), 0);
  const { inFlight, buffered } = lane;
  lane.giveBackLate();
  expect(lane.buffered).toBe(buffered);
  answerAll({ kind: 'overloaded', retryAfterMs: 60_000 });
  await eventually(() => expect(lane.inFlight).toBe(0));
  expect([lane.unsettled, lane.buffered]).toEqual([inFlight, buffered]);
  lane.giveBackLate();
  expect([lane.unsettled, lane.buffered]).toEqual([inFlight + buffered, 0]);
});

test('a run that drains posts what waits for other results', async () => {
  const { lane, turn, acknowledgeAll } = startLane();
  const together = { ...crawler, deliverBatch: { maxResults: 100, maxMs: 3_600_000 } };
  turn(ends(3), 0, together);
  expect([lane.inFlight, lane.buffered]).toEqual([0, 3]);
  lane.giveBackLate();
  await eventually(() => expect([lane.inFlight, lane.buffered]).toEqual([1, 0]));
  await acknowledgeAll();
});

test.for(['a pause by the monitor', 'a drain that takes too long'])(
  '%s gives back what waits in memory',
  async (how) => {
    const { lane, turn, answerAll, warmUp } = startLane();
    await warmUp();
    turn(ends(100), 0);
    const { buffered } = lane;
    const drains = how === 'a drain that takes too long';
    if (drains) lane.abortAll(new WorkAborted('released'));
    const { settlements } = turn([], 0, { ...crawler, pausedByMonitor: !drains });
    expect(settlements.filter(({ kind }) => kind === 'release')).toHaveLength(buffered);
    answerAll();
    await eventually(() => expect(lane.inFlight).toBe(0));
    expect(lane.buffered).toBe(0);
  },
);

test('results of a POST that were not sent go back to the store', async () => {
  const { lane, turn, answerAll, warmUp } = startLane({ most: 1 });
  await warmUp();
  const together = { ...crawler, deliverBatch: { maxResults: 3, maxMs: 60_000 } };
  turn(ends(3), 0, together);
  answerAll();
  await eventually(() => expect(lane.inFlight).toBe(0));
  const { settlements } = turn([], 0, together);
  expect(settlements.map(({ rid, kind }) => `${rid} ${kind}`)).toEqual([
    'new-0 delivered',
    'new-1 release',
    'new-2 release',
  ]);
});

test('nothing is posted while the lease is not held, and all of it after the next turn that is', async () => {
  const { lane, lease, turn, acknowledgeAll, warmUp } = startLane();
  await warmUp();
  lease.isHeld = false;
  turn(ends(10), 0);
  expect([lane.inFlight, lane.buffered]).toEqual([0, 10]);
  lease.isHeld = true;
  turn([], 0);
  expect(lane.inFlight).toBeGreaterThan(0);
  await acknowledgeAll();
});

test('what has no place waits in the store, not in memory', () => {
  const { lane, memory, turn } = startLane();
  expect(turn(ends(500), 0).held).toBe(1);
  expect([lane.inFlight, lane.buffered]).toEqual([1, 0]);
  expect(memory.used).toBe(0);
  expect(lane.isWaiting).toBe(true);
});

test('a lost result and an empty claim give their places back', () => {
  const { lane, turn } = startLane();
  const begun = lane.begin([endOfCrawl(1)], crawler, false);
  expect(begun.outcomes).toMatchObject([{ held: true }]);
  lane.start(begun, {
    held: [],
    claimed: [],
    keep: () => ({ held: [] }),
    nextDeliveryAt: undefined,
  });
  lane.release(begun);
  expect(lane.inFlight + lane.buffered).toBe(0);
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

test('a claim of which all were posted is followed by another one', () => {
  const { lane, turn } = startLane();
  turn([], 1_000);
  expect([lane.inFlight, lane.buffered, lane.hasRoom]).toEqual([1, 0, true]);
  turn([], 1_000);
  expect([lane.inFlight, lane.buffered, lane.hasRoom]).toEqual([1, 1, false]);
});

test('a delivery that falls due asks for a turn, and wakes the run no more', () => {
  const { lane, turn } = startLane();
  turn([], 0);
  const begun = lane.begin([], crawler, true);
  const retry = { kind: 'retry', dueAt: new Date('2026-03-01T12:00:05Z') } as DeliveryOutcome;
  const settled = { ...begun, settlements: [retry] };
  lane.start(settled, {
    held: [],
    claimed: [],
    keep: () => ({ held: [] }),
    nextDeliveryAt: undefined,
  });
  expect([lane.hasRoom, lane.nextDueAt]).toEqual([false, retry.dueAt]);
  lane.expectBacklog();
  expect([lane.hasRoom, lane.nextDueAt]).toEqual([true, undefined]);
  expect(turn([], 0).claimLimit).toBe(1);
  expect(lane.hasRoom).toBe(false);
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
  expect(turn([endOfCrawl(1)])).toMatchObject({ held: 0, claimLimit: 0 });
  all.release();
  (await waiting).release();
  expect(turn([endOfCrawl(2)], 0).held).toBe(1);
  expect(lane.inFlight).toBe(1);
});

test('a page is posted from memory while another account waits for memory that it filled itself', async () => {
  const { lane, memory, turn } = startLane({ reserve: 4 * 1024 * 1024 });
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
  lane.release(lane.begin([], { ...crawler, pausedByMonitor: true }, true));
  expect(memory.used).toBe(0);
});
