import { array, assert, asyncProperty, constantFrom, integer, nat, record } from 'fast-check';
import { expect, test } from 'vitest';
import { createFairPool, type Grant } from '../../../src/fairness/fair-pool.ts';

const pool = (options: { capacity: number; reserve?: number; maxWaiting?: number }) =>
  createFairPool({ name: 'slots', ...options });

/** Acquires and notes the order in which claims are granted. */
function recorder(shared: ReturnType<typeof pool>) {
  const order: string[] = [];
  const grants = new Map<string, Grant>();
  return {
    order,
    grants,
    claim(name: string, accountId: string, amount = 1, crawlerId?: string, signal?: AbortSignal) {
      const claimed = shared.acquire({ accountId, crawlerId }, amount, signal).then((grant) => {
        order.push(name);
        grants.set(name, grant);
      });
      claimed.catch(() => undefined);
      return claimed;
    },
  };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('grants at once while there is room, and what is given back goes to who waits', async () => {
  const shared = pool({ capacity: 2 });
  const { order, grants, claim } = recorder(shared);
  void claim('a1', 'a');
  void claim('a2', 'a');
  void claim('a3', 'a');
  await settled();
  expect(order).toEqual(['a1', 'a2']);
  expect([shared.used, shared.waiting]).toEqual([2, 1]);
  grants.get('a1')?.release();
  grants.get('a1')?.release();
  await settled();
  expect(order).toEqual(['a1', 'a2', 'a3']);
  expect([shared.used, shared.waiting]).toEqual([2, 0]);
});

test('takes accounts in turn, and the crawlers of an account in turn', async () => {
  const shared = pool({ capacity: 1 });
  const { order, grants, claim } = recorder(shared);
  const names = ['a1', 'a2', 'a3', 'x1', 'x2', 'b1', 'b2'];
  void claim('a1', 'a', 1, 'one');
  void claim('a2', 'a', 1, 'one');
  void claim('a3', 'a', 1, 'one');
  void claim('x1', 'a', 1, 'two');
  void claim('x2', 'a', 1, 'two');
  void claim('b1', 'b');
  void claim('b2', 'b');
  for (let at = 0; at < names.length; at += 1) {
    await settled();
    grants.get(order.at(-1) ?? '')?.release();
  }
  expect(order).toEqual(['a1', 'a2', 'b1', 'x1', 'b2', 'a3', 'x2']);
  expect(shared.used).toBe(0);
});

test('an account that uses little is served from the reserve while another fills the capacity', async () => {
  const shared = pool({ capacity: 4, reserve: 8 });
  const { order, claim } = recorder(shared);
  for (let n = 0; n < 10; n += 1) void claim(`a${n}`, 'a');
  void claim('b1', 'b');
  void claim('b2', 'b');
  void claim('b3', 'b');
  await settled();
  // A quarter of the reserve is 2: what an account beyond that waits for is the capacity.
  expect(order).toEqual(['a0', 'a1', 'a2', 'a3', 'b1', 'b2']);
});

test('a large claim is not starved by small ones of others', async () => {
  const shared = pool({ capacity: 10 });
  const { order, grants, claim } = recorder(shared);
  void claim('a1', 'a', 6);
  void claim('a2', 'a', 4);
  void claim('big', 'b', 10);
  void claim('c1', 'c', 1);
  await settled();
  grants.get('a2')?.release();
  await settled();
  expect(order).toEqual(['a1', 'a2']);
  grants.get('a1')?.release();
  await settled();
  expect(order).toEqual(['a1', 'a2', 'big']);
  grants.get('big')?.shrink(3);
  await settled();
  expect(order).toEqual(['a1', 'a2', 'big', 'c1']);
  expect(shared.used).toBe(4);
});

test('an aborted claim leaves the queue, and those behind it continue', async () => {
  const shared = pool({ capacity: 2 });
  const { order, grants, claim } = recorder(shared);
  void claim('a1', 'a', 1);
  const controller = new AbortController();
  const big = claim('big', 'b', 2, undefined, controller.signal);
  void claim('c1', 'c', 1);
  await settled();
  expect(order).toEqual(['a1']);
  controller.abort(new Error('gone'));
  await expect(big).rejects.toThrow('gone');
  await settled();
  expect(order).toEqual(['a1', 'c1']);
  for (const grant of grants.values()) grant.release();
  expect([shared.used, shared.waiting]).toEqual([0, 0]);
});

test('an account has no more claims waiting than it may', async () => {
  const shared = pool({ capacity: 1, maxWaiting: 1 });
  const { claim } = recorder(shared);
  void claim('a1', 'a');
  void claim('a2', 'a');
  await expect(claim('a3', 'a')).rejects.toMatchObject({ reason: 'too_many_waiting' });
  expect(shared.waiting).toBe(1);
});

test('a grant can be split, and each part is given back by itself', async () => {
  const shared = pool({ capacity: 10 });
  const whole = await shared.acquire({ accountId: 'a' }, 10);
  const part = whole.split(4);
  const rest = whole.split(100);
  expect([whole.amount, part.amount, rest.amount]).toEqual([0, 4, 6]);
  expect(shared.used).toBe(10);
  whole.release();
  part.release();
  expect(shared.used).toBe(6);
  rest.shrink(1);
  expect(shared.available({ accountId: 'b' })).toBe(9);
});

test('more than the whole capacity is granted as the capacity', async () => {
  const shared = pool({ capacity: 5 });
  const grant = await shared.acquire({ accountId: 'a' }, 50);
  expect(grant.amount).toBe(5);
  expect(shared.tryAcquire({ accountId: 'a' }, 1)).toBeUndefined();
});

test('whatever is claimed, shrunk, aborted and released: never more than it has, nobody left waiting with room', async () => {
  const step = record({
    kind: constantFrom('claim', 'claim', 'claim', 'release', 'shrink', 'abort'),
    account: constantFrom('a', 'b', 'c'),
    crawler: constantFrom('one', 'two'),
    amount: integer({ min: 1, max: 6 }),
    pick: nat(),
  });
  await assert(
    asyncProperty(array(step, { maxLength: 60 }), async (steps) => {
      const shared = pool({ capacity: 6, reserve: 4 });
      const held: Grant[] = [];
      const pending = new Set<AbortController>();
      for (const { kind, account, crawler, amount, pick } of steps) {
        const grant = held[pick % Math.max(held.length, 1)];
        if (kind === 'claim') {
          const controller = new AbortController();
          pending.add(controller);
          shared
            .acquire({ accountId: account, crawlerId: crawler }, amount, controller.signal)
            .then(
              (granted) => held.push(granted),
              () => undefined,
            )
            .finally(() => pending.delete(controller));
        } else if (kind === 'abort') {
          [...pending][pick % Math.max(pending.size, 1)]?.abort(new Error('aborted'));
        } else if (kind === 'shrink') grant?.shrink(amount - 1);
        else grant?.release();
        await settled();
        expect(shared.used).toBeLessThanOrEqual(10);
        expect(shared.used).toBe(held.reduce((sum, each) => sum + each.amount, 0));
        expect(shared.waiting).toBe(pending.size);
      }
      for (const controller of pending) if (controller.signal.aborted) pending.delete(controller);
      // Everything given back: everybody gets a turn.
      while (held.some((each) => each.amount > 0) || pending.size > 0) {
        for (const each of held) each.release();
        await settled();
      }
      expect([shared.used, shared.waiting]).toEqual([0, 0]);
    }),
    { numRuns: 200 },
  );
});
