import { describe, expect, test } from 'vitest';
import { toDelivery, toRelease, toRetry, toSettlement, toStored } from './outcomes.ts';
import {
  at,
  claimDeliveries,
  claimJobs,
  finishJobs,
  makeJobs,
  newId,
  type OpenStore,
  only,
  settleDeliveries,
  withStore,
} from './store-harness.ts';

const MINUTE = 60_000;

/** What tells that a crawler needs attention. */
export function attentionContract(open: OpenStore): void {
  describe('tries in a row that fail', () => {
    test(
      'are counted since the last crawl that succeeded',
      withStore(open, async ({ store, crawler, running, counters }) => {
        const made = await crawler();
        const { lease, jobs } = await running(made, 6);
        const [one, two, three, four, five, six] = jobs as [
          ...[(typeof jobs)[0], (typeof jobs)[0], (typeof jobs)[0]],
          ...[(typeof jobs)[0], (typeof jobs)[0], (typeof jobs)[0]],
        ];
        expect((await counters(made)).failing).toEqual({});
        await finishJobs(store, [toRetry(one, at(9), 'timeout')], at(1), lease);
        const bad = { cbStatus: 521, details: { failure: 'name_not_found' } };
        await finishJobs(store, [toStored(two, bad), toRelease(three)], at(2), lease);
        expect((await counters(made)).failing).toEqual({
          crawl: { count: 2, since: at(1), at: at(2), error: 'name_not_found' },
        });
        await finishJobs(store, [toStored(four), toRetry(five, at(9))], at(3), lease);
        const good = await counters(made);
        expect([good.failing, good.last.success]).toEqual([{}, at(3)]);
        await finishJobs(store, [toRetry(six, at(9), 'timeout')], at(4), lease);
        expect((await counters(made)).failing).toEqual({
          crawl: { count: 1, since: at(4), at: at(4), error: 'timeout' },
        });
      }),
    );

    test(
      'are counted of deliveries, too, and survive upkeep and a crash',
      withStore(open, async (bench) => {
        const { store, crawler, running, counters } = bench;
        const made = await crawler({ delivery: 'webhook' });
        const { lease, jobs } = await running(made, 3);
        for (const job of jobs) await finishJobs(store, [toDelivery(job)], at(0), lease);
        const fail = async (ms: number, error: string) => {
          const claimed = await claimDeliveries(bench.store, lease, 9, 1e9, at(ms));
          const ends = claimed.map((each) => {
            const retry = toSettlement(each, 'retry', { dueAt: at(0) });
            return { ...retry, ...(retry.log && { log: { ...retry.log, error } }) };
          });
          await settleDeliveries(bench.store, ends, at(ms));
        };
        await fail(1, 'status 500');
        await fail(2, 'x'.repeat(300));
        const failing = { count: 6, since: at(1), at: at(2), error: 'x'.repeat(200) };
        expect((await counters(made)).failing).toEqual({ delivery: failing });
        const pending = async (retried?: true) => {
          const filter = { state: 'pending', ...(retried && { retried }) } as const;
          return (await store.listings.deliveries(made.crawlerId, filter, { limit: 9 })).rows
            .length;
        };
        const more = await bench.push(makeJobs(made, 1));
        expect(more.outcomes).toHaveLength(1);
        const job = only((await claimJobs(store, lease, 1, at(2))).jobs);
        await finishJobs(store, [toDelivery(job)], at(2), lease);
        expect([await pending(), await pending(true)]).toEqual([4, 3]);
        await bench.store.maintain(at(2 * MINUTE));
        await bench.crash();
        expect((await bench.counters(made)).failing).toEqual({ delivery: failing });

        const again = await bench.lease(made, at(3 * MINUTE), 'another');
        const [first] = await claimDeliveries(bench.store, again, 1, 1e9, at(3 * MINUTE));
        if (first === undefined) throw new Error('a delivery is due');
        await settleDeliveries(bench.store, [toSettlement(first, 'delivered')], at(3 * MINUTE));
        expect((await bench.counters(made)).failing).toEqual({});
        await bench.store.maintain(at(6 * MINUTE));
        expect((await bench.counters(made)).failing).toEqual({});
      }),
    );
  });

  describe('crawlers that may need attention', () => {
    test(
      'are found among all',
      withStore(open, async (bench) => {
        const { store, crawler, push } = bench;
        const limits = { queueLimit: 3, heldAccounts: [] };
        const found = async () =>
          (await store.listings.troubled(limits, 100)).map((each) => each.crawler.crawlerId);
        const quiet = await crawler();
        await push(makeJobs(quiet, 2));
        expect(await found()).toEqual([]);
        const full = await crawler();
        await push(makeJobs(full, 3));
        const paused = await crawler({ delivery: 'webhook' });
        await store.crawlers.setPaused(paused.crawlerId, 'monitor_pause', at(1), 'status 500');
        const failing = await crawler();
        await push(makeJobs(failing, 1));
        const lease = await bench.lease(failing);
        for (let n = 0; n < 5; n += 1) {
          const job = only((await claimJobs(store, lease, 1, at(n))).jobs);
          await finishJobs(store, [toRetry(job, at(n), 'timeout')], at(n), lease);
        }
        const held = await crawler();
        const heldUp = { host: 'a', reason: 'timeout', sinceMs: 1, untilMs: 2, queued: 3 };
        const report = { crawlerId: held.crawlerId, processId: 'p', hosts: [] };
        await store.hosts.save([{ ...report, heldUp }], at(1));
        const ids = [full, paused, failing, held].map(({ crawlerId }) => crawlerId);
        expect((await found()).toSorted()).toEqual(ids.toSorted());
        const all = await store.listings.crawlers([held.accountId], 9);
        expect(all.map(({ counters }) => counters.heldUp)).toEqual([heldUp]);
        expect((await bench.counters(held)).heldUp).toEqual(heldUp);
        expect(await store.listings.troubled(limits, 2)).toHaveLength(2);
        await store.hosts.save([report], at(2));
        expect((await bench.counters(held)).heldUp).toBeUndefined();
        expect(await found()).not.toContain(held.crawlerId);
      }),
    );

    test(
      'are those with queued URLs in accounts whose crawls are held back',
      withStore(open, async (bench) => {
        const { store, crawler, push } = bench;
        const found = async (heldAccounts: readonly string[] | 'all') => {
          const read = await store.listings.troubled({ queueLimit: 100, heldAccounts }, 100);
          return read.map((each) => each.crawler.crawlerId).toSorted();
        };
        const queued = await crawler();
        await push(makeJobs(queued, 1));
        const empty = await crawler();
        const purged = await crawler();
        await push(makeJobs(purged, 1));
        await store.queue.purge(purged.crawlerId, at(1));
        expect(await found([])).toEqual([]);
        expect(await found([newId()])).toEqual([]);
        for (const held of [[queued.accountId, empty.accountId], 'all'] as const) {
          expect(await found(held)).toContain(queued.crawlerId);
          expect(await found(held)).not.toContain(empty.crawlerId);
        }
      }),
    );
  });

  describe('an episode', () => {
    test(
      'lasts while it is noted; one that was told of survives an hour in between',
      withStore(open, async ({ store: { notices } }) => {
        const since = async (ms: number) => notices.lasting(['a', 'b'], at(ms));
        const both = (ms: number, told: boolean) => [
          { key: 'a', since: at(0), told },
          { key: 'b', since: at(ms), told: false },
        ];
        expect(await since(0)).toEqual(both(0, false));
        expect(await since(5 * MINUTE)).toEqual(both(0, false));
        await notices.told(['a']);
        expect(await since(5 * MINUTE + 1)).toEqual(both(0, true));
        expect(await since(50 * MINUTE)).toEqual(both(50 * MINUTE, true));
        expect(await notices.lasting([], at(50 * MINUTE))).toEqual([]);
        expect(await since(111 * MINUTE)).toMatchObject([
          { since: at(111 * MINUTE), told: false },
          { since: at(111 * MINUTE) },
        ]);
      }),
    );
  });
}
