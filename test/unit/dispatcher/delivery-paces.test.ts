import { expect, test } from 'vitest';
import { createDeliveryPaces } from '../../../src/dispatcher/delivery-paces.ts';
import type { DeliverySlot } from '../../../src/dispatcher/paced-endpoint.ts';
import { createTestClock } from '../../support/test-clock.ts';

const URL_A = 'https://hooks.example.com/a';

function createPaces(capacity?: number) {
  const clock = createTestClock();
  const paces = createDeliveryPaces({
    clock,
    ackTimeoutMs: 200,
    ...(capacity === undefined ? {} : { capacity }),
  });
  const open = (accountId: string, crawlerId: string) => {
    let rung = 0;
    const lane = paces.open({ accountId, crawlerId }, () => {
      rung += 1;
    });
    return { ...lane, rung: () => rung };
  };
  return { clock, open };
}

const acknowledged = { kind: 'acknowledged', answerMs: 1 } as const;

function endAll(slots: readonly DeliverySlot[]): void {
  for (const slot of slots) slot.end(acknowledged);
}

/** Brings the endpoint's limit up by answering everything at once. */
function warmUp(lane: { take(url: string, wanted: number): DeliverySlot[] }, url: string): void {
  for (let n = 0; n < 10; n++) endAll(lane.take(url, 500));
}

test('an endpoint is its URL without query, credentials and fragment, for every crawler of the process', () => {
  const { open } = createPaces();
  const one = open('account', 'one');
  const other = open('account', 'other');
  const [slot] = one.take(`${URL_A}?token=1`, 1);
  expect(slot).toBeDefined();
  expect(other.take('https://me:secret@hooks.example.com/a?token=2#x', 1)).toEqual([]);
  expect(other.take('https://hooks.example.com/b', 1)).toHaveLength(1);
});

test('who waits is told in turn when a post ends, and takes its share of the room', () => {
  const { open } = createPaces();
  const lanes = ['one', 'two', 'three'].map((name) => open('account', name));
  const [one, two, three] = lanes as [(typeof lanes)[0], (typeof lanes)[0], (typeof lanes)[0]];
  warmUp(one, URL_A);
  one.leave();
  const held = one.take(URL_A, 500);
  expect(held.length).toBeGreaterThan(100);
  one.leave();
  expect([two.take(URL_A, 500), three.take(URL_A, 500)]).toEqual([[], []]);
  held.slice(0, 9).forEach((slot) => {
    slot.end({ kind: 'other' });
  });
  expect(two.rung()).toBeGreaterThan(0);
  // Nobody goes ahead of those in line.
  expect(one.take(URL_A, 500)).toEqual([]);
  expect(two.take(URL_A, 500).length).toBeGreaterThanOrEqual(3);
  expect(three.rung()).toBeGreaterThan(0);
  expect(three.take(URL_A, 500).length).toBeGreaterThan(0);
});

test('one that leaves the line lets the next one in', () => {
  const { open } = createPaces();
  const one = open('account', 'one');
  const two = open('account', 'two');
  const three = open('account', 'three');
  const [slot] = one.take(URL_A, 1);
  two.take(URL_A, 1);
  three.take(URL_A, 1);
  slot?.end(acknowledged);
  expect([two.rung() > 0, three.rung()]).toEqual([true, 0]);
  two.leave();
  expect(three.rung()).toBeGreaterThan(0);
  expect(three.take(URL_A, 1)).toHaveLength(1);
});

test('an account with many endpoints that never answer leaves room for the others', async () => {
  const { open } = createPaces(64);
  const tarpits = Array.from({ length: 1_000 }, (_, n) => open('hostile', `tarpit-${n}`));
  const taken = tarpits.flatMap((lane, n) => lane.take(`https://tar.example.com/${n}`, 1));
  expect(taken).toHaveLength(64);
  const fine = open('honest', 'fine');
  const [slot] = fine.take(URL_A, 1);
  expect(slot).toBeDefined();
  slot?.end(acknowledged);
  // The reserve is small; beyond it the honest account has the next slot that becomes free, ahead
  // of the thousand.
  const many = fine.take(URL_A, 50);
  const before = fine.rung();
  taken[0]?.end(undefined);
  await Promise.resolve();
  await Promise.resolve();
  expect(fine.take(URL_A, 50).length + many.length).toBeGreaterThanOrEqual(2);
  expect(fine.rung()).toBeGreaterThanOrEqual(before);
});

test('a pause of the endpoint is told to who waits', () => {
  const { clock, open } = createPaces();
  const lane = open('account', 'one');
  const [slot] = lane.take(URL_A, 1);
  slot?.end({ kind: 'overloaded', retryAfterMs: 60_000 });
  expect(lane.take(URL_A, 1)).toEqual([]);
  expect(lane.pausedUntil()?.getTime()).toBeGreaterThan(clock.now().getTime() + 50_000);
  clock.advance(61_000);
  expect(lane.pausedUntil()).toBeUndefined();
  expect(lane.take(URL_A, 1)).toHaveLength(1);
});
