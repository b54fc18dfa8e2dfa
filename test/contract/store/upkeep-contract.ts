import { describe, expect, test } from 'vitest';
import { makeRecord, toDelivery, toSettlement, toStored } from './outcomes.ts';
import {
  at,
  claimDeliveries,
  claimJobs,
  finishJobs,
  makeJobs,
  makeScreenshot,
  newId,
  type OpenStore,
  only,
  settleDeliveries,
  TTL_MS,
  withStore,
} from './store-harness.ts';

/** Retention, and what a crash leaves. */
export function upkeepContract(open: OpenStore): void {
  describe('maintenance', () => {
    test(
      'removes what is past its retention, and only that',
      withStore(open, async ({ store, crawler, running, counters }) => {
        const made = await crawler({ delivery: 'webhook' });
        const { lease, jobs } = await running(made, 3);
        const outcomes = [100, 200, 100].map((ms, n) =>
          toDelivery(jobs[n] ?? only([]), {}, { expiresAt: at(ms), held: n === 2 }),
        );
        await finishJobs(store, outcomes, at(0), lease);
        const [pending = '', kept = '', delivered = ''] = jobs.map(({ rid }) => rid);
        const end = { rid: delivered, crawlerId: made.crawlerId, attempt: 1 };
        await settleDeliveries(
          store,
          [toSettlement(end, 'delivered', { expiresAt: at(50) })],
          at(1),
        );
        const scope = { accountId: made.accountId, tokenType: 'normal' } as const;
        const expiring = [100, 200].map((ms) => ({ rid: newId(), url: 'https://a.test/', ms }));
        for (const each of expiring)
          await store.results.put(scope, makeRecord(each), at(0), at(each.ms));
        const media = [newId(), newId()];
        for (const [n, id] of media.entries()) {
          const expiresAt = at(n === 0 ? 100 : 200);
          await store.screenshots.put({ ...makeScreenshot(made.accountId, 9), id, expiresAt });
        }

        await store.maintain(at(10));
        expect(await store.deliveries.get(made.crawlerId, delivered)).toBeDefined();
        expect(await store.results.count(scope)).toBe(expiring.length);
        await store.maintain(at(60));
        expect(await store.deliveries.get(made.crawlerId, delivered)).toBeUndefined();
        expect(await store.deliveries.get(made.crawlerId, pending)).toBeDefined();
        await store.maintain(at(150));
        expect(await store.deliveries.get(made.crawlerId, pending)).toBeUndefined();
        expect(await store.deliveries.get(made.crawlerId, kept)).toBeDefined();
        expect((await counters(made)).deliveriesPending).toBe(1);
        expect(await store.results.count(scope)).toBe(1);
        expect(await store.results.get(scope, expiring[1]?.rid ?? '')).toBeDefined();
        expect(await store.screenshots.get(media[1] ?? '', at(150))).toBeDefined();
        // An expired delivery is not posted any more, nor replayed.
        expect(await store.deliveries.replay(made.crawlerId, { rids: [pending] }, at(150))).toBe(0);
        const claimed = await claimDeliveries(store, lease, 9, 1e9, at(150));
        expect(claimed.map(({ rid }) => rid)).toEqual([kept]);
      }),
    );

    test(
      'continues while there is more to remove, and stops when it is aborted',
      withStore(open, async ({ store, account }) => {
        const { accountId } = await account();
        const scope = { accountId, tokenType: 'normal' } as const;
        for (let n = 0; n < 12; n++) {
          const records = Array.from({ length: 100 }, () =>
            makeRecord({ rid: newId(), url: 'https://a.test/' }),
          );
          await Promise.all(
            records.map((record) => store.results.put(scope, record, at(0), at(10))),
          );
        }
        await store.maintain(at(20), AbortSignal.abort());
        const left = await store.results.count(scope);
        expect(left).toBeGreaterThan(0);
        await store.maintain(at(20));
        expect(await store.results.count(scope)).toBe(0);
      }),
    );

    test(
      'answers pings before and after',
      withStore(open, async ({ store }) => {
        await store.ping();
        await store.maintain(at(0));
        await store.ping();
      }),
    );
  });

  describe('after a crash', () => {
    test(
      'everything acknowledged is there, and what was under way is due when its lease is gone',
      withStore(open, async (bench) => {
        const { crawler, push, running, counters } = bench;
        const made = await crawler({ delivery: 'webhook' });
        const { crawlerId, accountId } = made;
        const { lease, jobs } = await running(made, 3);
        const [crawling, posting, done] = jobs;
        if (!crawling || !posting || !done) throw new Error('three jobs were pushed');
        const ends = [
          toDelivery(posting, {}, { held: true }),
          toDelivery(done, {}, { held: true }),
        ];
        await finishJobs(bench.store, ends, at(0), lease);
        const settled = toSettlement({ ...done, attempt: 1 }, 'delivered');
        await settleDeliveries(bench.store, [settled], at(0));
        const waiting = makeJobs(made, 5);
        const request = { crawlerId, accountId, jobs: waiting.slice(2), requestId: 'once' };
        await push(waiting.slice(0, 2));
        const first = await bench.store.queue.push(
          request,
          { crawlerQueue: 99, accountQueue: 99 },
          at(0),
        );

        await bench.crash();
        const { store } = bench;
        const again = await store.queue.push(
          request,
          { crawlerQueue: 99, accountQueue: 99 },
          at(1),
        );
        expect(again?.outcomes).toEqual(first?.outcomes);
        const now = at(TTL_MS + 1);
        expect(await store.queue.crawlersWithWorkDue(now, 9)).toEqual([crawlerId]);
        const next = await bench.lease(made, now, 'next');
        expect(next.epoch).toBeGreaterThan(lease.epoch);
        const claimed = (await claimJobs(store, next, 9, now)).jobs;
        const rids = [crawling, ...waiting].map(({ rid }) => rid).sort();
        expect(claimed.map(({ rid }) => rid).sort()).toEqual(rids);
        const taken = claimed.find(({ rid }) => rid === crawling.rid);
        expect(taken).toMatchObject({ retry: 0, attempt: 2, firstTriedAt: at(0) });
        const delivery = only(await claimDeliveries(store, next, 9, 1e9, now));
        expect(delivery).toMatchObject({ rid: posting.rid, attempt: 2 });
        const late = toSettlement({ ...posting, attempt: 1 }, 'delivered');
        expect(await finishJobs(store, [toStored(crawling)], now, lease)).toMatchObject({
          verdicts: ['lost'],
        });
        expect(await settleDeliveries(store, [late], now)).toEqual(['lost']);
        const counted = { pushed: 8, running: 6, completed: 2, deliveriesPending: 1 };
        expect(await counters(made)).toMatchObject(counted);
      }),
    );
  });
}
