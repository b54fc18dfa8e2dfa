import { describe, expect, test } from 'vitest';
import type { Crawler } from '../../../src/domain/crawler.ts';
import type { Delivery } from '../../../src/domain/delivery.ts';
import { createOverviews } from '../../../src/service/reads/overviews.ts';
import type { Lease } from '../../../src/store/store.ts';
import { createFrozenClock } from '../../support/test-clock.ts';
import { makeAttempt, toDelivery, toSettlement } from './outcomes.ts';
import {
  at,
  claimDeliveries,
  finishJobs,
  newId,
  type OpenStore,
  only,
  type StoreBench,
  settleDeliveries,
  TTL_MS,
  withStore,
} from './store-harness.ts';

/** A webhook crawler with `count` deliveries due, the n-th since `at(n)`, `bytes` each. */
async function due(
  { store, crawler, running }: StoreBench,
  count: number,
  bytes = 10,
): Promise<{ made: Crawler; lease: Lease; rids: string[] }> {
  const made = await crawler({ delivery: 'webhook' });
  const { lease, jobs } = await running(made, count);
  for (const [n, job] of jobs.entries()) {
    const end = toDelivery(job, { body: new Uint8Array(bytes).fill(n) });
    await finishJobs(store, [end], at(n), lease);
  }
  return { made, lease, rids: jobs.map(({ rid }) => rid) };
}

const toRids = (deliveries: readonly Delivery[]): string[] => deliveries.map(({ rid }) => rid);

/** Results on their way to callback URLs. */
export function deliveriesContract(open: OpenStore): void {
  describe('the rate of deliveries', () => {
    test(
      'counts what was acknowledged, not what was given up',
      withStore(open, async (bench) => {
        const { made, lease } = await due(bench, 5);
        const clock = createFrozenClock();
        const overviews = createOverviews({
          listings: bench.store.listings,
          clock,
          attention: () => [],
          holds: async () => [],
        });
        await overviews.read(made.accountId);
        const claimed = await claimDeliveries(bench.store, lease, 9, 1e9, at(100));
        const kinds = ['delivered', 'failed', 'retry', 'failed', 'delivered'] as const;
        const ends = claimed.map((delivery, n) => toSettlement(delivery, kinds[n] ?? 'retry'));
        await settleDeliveries(bench.store, ends, at(101));
        clock.advance(10_000);
        const { crawlers } = await overviews.read(made.accountId);
        const rated = crawlers.find(({ crawler }) => crawler.crawlerId === made.crawlerId);
        expect(rated?.rates).toMatchObject({ delivered: 0.2, measuredMs: 10_000 });
      }),
    );
  });

  describe('a claim of deliveries', () => {
    test(
      'takes the oldest due, within its limits of number and size but at least one',
      withStore(open, async (bench) => {
        const { lease, rids } = await due(bench, 6, 1_000);
        const claim = (limit: number, maxBytes: number) =>
          claimDeliveries(bench.store, lease, limit, maxBytes, at(10));
        const first = await claim(9, 2_500);
        expect(toRids(first)).toEqual(rids.slice(0, 2));
        expect(first.map(({ body }) => [body.byteLength, body[0]])).toEqual([
          [1_000, 0],
          [1_000, 1],
        ]);
        expect(toRids(await claim(1, 1e9))).toEqual([rids[2]]);
        expect(toRids(await claim(9, 1))).toEqual([rids[3]]);
        expect(toRids(await claim(9, 1e9))).toEqual(rids.slice(4));
        expect(await claim(9, 1e9)).toEqual([]);
      }),
    );

    test(
      'gives each delivery once to eight at the same time',
      withStore(open, async (bench) => {
        const { lease, rids } = await due(bench, 20);
        const shares = await Promise.all(
          Array.from({ length: 8 }, () => claimDeliveries(bench.store, lease, 4, 1e9, at(30))),
        );
        const given = shares.flatMap(toRids);
        given.push(...toRids(await claimDeliveries(bench.store, lease, 20, 1e9, at(30))));
        expect(given).toHaveLength(20);
        expect(new Set(given)).toEqual(new Set(rids));
      }),
    );

    test(
      'needs the current lease; the monitor’s pause stops it, the user’s does not',
      withStore(open, async (bench) => {
        const { store } = bench;
        const { made, lease, rids } = await due(bench, 1);
        const claim = (ms: number, by = lease) => claimDeliveries(store, by, 9, 1e9, at(ms));
        expect(await claim(9, { ...lease, epoch: lease.epoch - 1 })).toEqual([]);
        expect(await claim(TTL_MS + 1)).toEqual([]);
        await store.crawlers.setPaused(made.crawlerId, 'monitor_pause', at(9));
        expect(await claim(9)).toEqual([]);
        await store.crawlers.setPaused(made.crawlerId, 'user_unpause', at(9));
        await store.crawlers.setPaused(made.crawlerId, 'user_pause', at(9));
        expect(toRids(await claim(9))).toEqual(rids);
      }),
    );
  });

  describe('a settled delivery', () => {
    test(
      'was attempted once an attempt has ended, not by a process that died',
      withStore(open, async (bench) => {
        const { store } = bench;
        const { made, lease } = await due(bench, 1);
        const [crashed] = await claimDeliveries(store, lease, 9, 1e9, at(1));
        expect(crashed).toMatchObject({ attempt: 1, wasAttempted: false });
        const later = at(TTL_MS + 1);
        const next = await bench.lease(made, later, 'other');
        const second = only(await claimDeliveries(store, next, 9, 1e9, later));
        expect(second).toMatchObject({ attempt: 2, wasAttempted: false });
        const retry = toSettlement(second, 'retry', { dueAt: later });
        expect(await settleDeliveries(store, [retry], later)).toEqual(['won']);
        const third = only(await claimDeliveries(store, next, 9, 1e9, later));
        expect(third).toMatchObject({ attempt: 3, wasAttempted: true });
      }),
    );

    test(
      'goes from pending over retries to delivered, with a log of its attempts',
      withStore(open, async (bench) => {
        const { store, counters } = bench;
        const { made, lease, rids } = await due(bench, 1);
        const [rid = ''] = rids;
        const summary = () => store.deliveries.get(made.crawlerId, rid);
        const before = { state: 'pending', cbStatus: 200, originalStatus: 200, createdAt: at(0) };
        expect(await summary()).toMatchObject({ ...before, rid, attempts: [] });
        expect((await summary())?.nextAttemptAt).toEqual(at(0));

        const first = only(await claimDeliveries(store, lease, 9, 1e9, at(0)));
        const retry = toSettlement(first, 'retry', { dueAt: at(300) });
        expect(await settleDeliveries(store, [retry], at(1))).toEqual(['won']);
        expect(await summary()).toMatchObject({ state: 'pending', nextAttemptAt: at(300) });
        expect((await counters(made)).deliveriesPending).toBe(1);
        expect(await claimDeliveries(store, lease, 9, 1e9, at(299))).toEqual([]);

        const second = only(await claimDeliveries(store, lease, 9, 1e9, at(300)));
        expect(second.attempt).toBe(2);
        const end = toSettlement(second, 'delivered', { log: makeAttempt(2, 200, at(300)) });
        expect(await settleDeliveries(store, [end], at(301))).toEqual(['won']);
        const after = await summary();
        expect(after).toMatchObject({ state: 'delivered', nextAttemptAt: undefined });
        expect(after?.attempts).toEqual([makeAttempt(1, 500), makeAttempt(2, 200, at(300))]);
        expect((await counters(made)).deliveriesPending).toBe(0);
        const days = await store.stats.history([made.crawlerId], {});
        const day = only(days.get(made.crawlerId) ?? []);
        expect(day).toMatchObject({ deliveries: 1, deliveryFailures: 1, billed: 2, success: 1 });
        expect(await store.deliveries.get(newId(), rid)).toBeUndefined();
      }),
    );

    test(
      'is given up or given back; what never started does not count',
      withStore(open, async (bench) => {
        const { store, counters } = bench;
        const { made, lease, rids } = await due(bench, 2);
        const [back, up] = await claimDeliveries(store, lease, 9, 1e9, at(5));
        if (back === undefined || up === undefined) throw new Error('two are due');
        const outcomes = [toSettlement(back, 'release'), toSettlement(up, 'failed')];
        expect(await settleDeliveries(store, outcomes, at(6))).toEqual(['won', 'won']);
        const failed = await store.deliveries.get(made.crawlerId, rids[1] ?? '');
        expect(failed).toMatchObject({ state: 'failed', nextAttemptAt: undefined });
        expect(failed?.attempts).toHaveLength(1);
        expect((await counters(made)).deliveriesPending).toBe(1);
        const again = only(await claimDeliveries(store, lease, 9, 1e9, at(6)));
        expect(again).toMatchObject({ rid: back.rid, attempt: 1 });
        const days = await store.stats.history([made.crawlerId], {});
        expect(only(days.get(made.crawlerId) ?? [])).toMatchObject({ deliveryFailures: 1 });
      }),
    );

    test(
      'is won once, and only by the attempt under way',
      withStore(open, async (bench) => {
        const { store, lease: acquire } = bench;
        const { made, lease } = await due(bench, 1);
        const old = only(await claimDeliveries(store, lease, 9, 1e9, at(0)));
        const settle = async (delivery: { rid: string; crawlerId: string; attempt: number }) =>
          only(await settleDeliveries(store, [toSettlement(delivery, 'delivered')], at(1)));
        expect(await settle({ ...old, attempt: 2 })).toBe('lost');
        expect(await settle({ ...old, crawlerId: newId() })).toBe('lost');
        expect(await settle({ ...old, rid: newId() })).toBe('lost');
        const next = await acquire(made, at(TTL_MS + 1), 'second');
        expect(await settle(old)).toBe('lost');
        const now = at(TTL_MS + 2);
        const current = only(await claimDeliveries(store, next, 9, 1e9, now));
        expect(await settle(old)).toBe('lost');
        expect(await settle(current)).toBe('won');
        expect(await settle(current)).toBe('lost');
      }),
    );

    test(
      'keeps the last hundred attempts',
      withStore(open, async (bench) => {
        const { store } = bench;
        const { made, lease, rids } = await due(bench, 1);
        for (let n = 1; n <= 103; n++) {
          const delivery = only(await claimDeliveries(store, lease, 1, 1e9, at(0)));
          await settleDeliveries(store, [toSettlement(delivery, 'retry')], at(0));
        }
        const summary = await store.deliveries.get(made.crawlerId, rids[0] ?? '');
        expect(summary?.attempts.map(({ attempt }) => attempt)).toEqual(
          Array.from({ length: 100 }, (_, n) => n + 4),
        );
      }),
    );
  });

  describe('a replay', () => {
    test(
      'of one makes it due at once, whatever became of it, and counts on',
      withStore(open, async (bench) => {
        const { store, counters } = bench;
        const { made, lease, rids } = await due(bench, 3);
        const { crawlerId } = made;
        const [done, failed, later] = await claimDeliveries(store, lease, 9, 1e9, at(9));
        if (done === undefined || failed === undefined || later === undefined) throw new Error('3');
        const outcomes = [
          toSettlement(done, 'delivered'),
          toSettlement(failed, 'failed'),
          toSettlement(later, 'retry', { dueAt: at(9_000) }),
        ];
        await settleDeliveries(store, outcomes, at(10));
        await store.queue.release(lease, at(11));
        for (const rid of rids) {
          expect(await store.deliveries.replay(newId(), { rids: [rid] }, at(20))).toBe(0);
          expect(await store.deliveries.replay(crawlerId, { rids: [rid] }, at(20))).toBe(1);
        }
        expect(await store.deliveries.replay(crawlerId, { rids: [newId()] }, at(20))).toBe(0);
        expect((await counters(made)).deliveriesPending).toBe(3);
        expect(await store.queue.crawlersWithWorkDue(at(20), 9)).toEqual([crawlerId]);
        const next = await bench.lease(made, at(20), 'second');
        const again = await claimDeliveries(store, next, 9, 1e9, at(20));
        expect(toRids(again).sort()).toEqual([...rids].sort());
        expect(again.map(({ attempt }) => attempt)).toEqual([2, 2, 2]);
        expect(again.every(({ body }) => body.byteLength === 10)).toBe(true);
      }),
    );

    test(
      'of a range takes those created in it, its end excluded',
      withStore(open, async (bench) => {
        const { store, counters } = bench;
        const { made, lease, rids } = await due(bench, 5);
        const claimed = await claimDeliveries(store, lease, 9, 1e9, at(9));
        const ends = claimed.map((delivery) => toSettlement(delivery, 'delivered'));
        await settleDeliveries(store, ends, at(10));
        const range = { from: at(1), to: at(4) };
        expect(await store.deliveries.replay(newId(), range, at(20))).toBe(0);
        expect(await store.deliveries.replay(made.crawlerId, range, at(20))).toBe(3);
        expect((await counters(made)).deliveriesPending).toBe(3);
        const again = await claimDeliveries(store, lease, 9, 1e9, at(20));
        expect(toRids(again).sort()).toEqual(rids.slice(1, 4).sort());
      }),
    );
  });
}
