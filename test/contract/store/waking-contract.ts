import { describe, expect, test } from 'vitest';
import type { Lease } from '../../../src/store/store.ts';
import { toDelivery, toRetry, toSettlement, toStored } from './outcomes.ts';
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
  TTL_MS,
  withStore,
} from './store-harness.ts';

/** Removal of jobs, and when a crawler has something to do. */
export function wakingContract(open: OpenStore): void {
  describe('removal', () => {
    test(
      'of one job works in every state, once, and for its own crawler only',
      withStore(open, async ({ store, crawler, push, running, counters }) => {
        const made = await crawler();
        const { lease, jobs } = await running(made, 2);
        const [runs, retries] = jobs;
        if (runs === undefined || retries === undefined) throw new Error('two jobs were pushed');
        await finishJobs(store, [toRetry(retries, at(9_000))], at(0), lease);
        const waits = only(makeJobs(made, 1));
        await push([waits]);
        const { deleteJob } = store.queue;
        expect(await deleteJob(newId(), waits.rid, at(1))).toBe(false);
        for (const { rid } of [runs, retries, waits]) {
          expect(await deleteJob(made.crawlerId, rid, at(1))).toBe(true);
          expect(await deleteJob(made.crawlerId, rid, at(1))).toBe(false);
          expect(await store.queue.find(made.crawlerId, rid)).toBeUndefined();
        }
        const none = { waiting: 0, running: 0, retrying: 0 };
        expect(await counters(made)).toMatchObject({ ...none, pushed: 3, deleted: 3 });
        expect((await store.accounts.usage(made.accountId))?.queued).toBe(0);
      }),
    );

    test(
      'of all that waits spares what is being crawled and other crawlers',
      withStore(open, async ({ store, account, crawler, push, running, counters }) => {
        const { accountId } = await account();
        const [made, other] = [await crawler({ accountId }), await crawler({ accountId })];
        const { lease, jobs } = await running(made, 2);
        const [runs, retries] = jobs;
        if (runs === undefined || retries === undefined) throw new Error('two jobs were pushed');
        await finishJobs(store, [toRetry(retries, at(9_000))], at(0), lease);
        await push(makeJobs(made, 3));
        await push(makeJobs(other, 2));
        expect(await store.queue.purge(made.crawlerId, at(1))).toBe(4);
        expect(await store.queue.purge(made.crawlerId, at(1))).toBe(0);
        expect(await store.queue.purge(newId(), at(1))).toBe(0);
        const counted = { waiting: 0, retrying: 0, running: 1, purged: 4, pushed: 5 };
        expect(await counters(made)).toMatchObject(counted);
        expect((await store.accounts.usage(accountId))?.queued).toBe(2);
        expect(await finishJobs(store, [toStored(runs)], at(2), lease)).toMatchObject({
          verdicts: ['won'],
        });
        expect((await counters(other)).waiting).toBe(2);
      }),
    );
  });

  describe('the next wake', () => {
    test(
      'is the earliest job or delivery, less what is paused',
      withStore(open, async ({ store, crawler, lease, running }) => {
        const made = await crawler({ delivery: 'webhook' });
        const { crawlerId } = made;
        const release = (held: Lease) => store.queue.release(held, at(3));
        expect(await release(await lease(made))).toEqual({ wakeAt: undefined });

        const first = await running(made, 2);
        const [job, crawled] = first.jobs;
        if (job === undefined || crawled === undefined) throw new Error('two jobs were pushed');
        await finishJobs(store, [toRetry(job, at(100)), toDelivery(crawled)], at(0), first.lease);
        expect(await release(first.lease)).toEqual({ wakeAt: at(0) });

        const second = await lease(made, at(3));
        const delivery = only(await claimDeliveries(store, second, 9, 1e9, at(3)));
        const retry = toSettlement(delivery, 'retry', { dueAt: at(200) });
        await settleDeliveries(store, [retry], at(3));
        expect(await release(second)).toEqual({ wakeAt: at(100) });

        await store.crawlers.setPaused(crawlerId, 'user_pause', at(3));
        expect(await release(await lease(made, at(3)))).toEqual({ wakeAt: at(200) });
        await store.crawlers.setPaused(crawlerId, 'monitor_pause', at(3));
        expect(await release(await lease(made, at(3)))).toEqual({ wakeAt: undefined });
        await store.crawlers.setPaused(crawlerId, 'user_unpause', at(3));
        expect(await release(await lease(made, at(3)))).toEqual({ wakeAt: at(100) });
      }),
    );
  });

  test(
    'work that is held back is due later, unless more arrives',
    withStore(open, async ({ store, crawler, running, push, lease }) => {
      const made = await crawler({ delivery: 'webhook' });
      const due = (ms: number) => store.queue.crawlersWithWorkDue(at(ms), 9);
      const { lease: first } = await running(made, 1);
      expect(await store.queue.release(first, at(3), { job: at(5_000) })).toEqual({
        wakeAt: at(5_000),
      });
      expect(await due(4_999)).toEqual([]);
      expect(await due(5_000)).toEqual([made.crawlerId]);
      await push(makeJobs(made, 1), at(4_000));
      expect(await due(4_000)).toEqual([made.crawlerId]);
      const held = await lease(made, at(6_000));
      const { wakeAt } = await store.queue.release(held, at(6_001), { job: at(5_000) });
      expect(wakeAt?.getTime()).toBeLessThanOrEqual(at(5_000).getTime());
      const third = await lease(made, at(6_002));
      const [job] = (await claimJobs(store, third, 1, at(6_002))).jobs;
      if (job === undefined) throw new Error('two jobs wait');
      await finishJobs(store, [toDelivery(job)], at(6_002), third);
      const both = { job: at(9_000), delivery: at(8_000) };
      expect(await store.queue.release(third, at(6_002), both)).toEqual({ wakeAt: at(8_000) });
      await store.queue.purge(made.crawlerId, at(6_002));
      const fourth = await lease(made, at(8_000));
      await settleDeliveries(
        store,
        [toSettlement(only(await claimDeliveries(store, fourth, 9, 1e9, at(8_000))), 'delivered')],
        at(8_000),
      );
      await store.queue.release(fourth, at(8_000));
      const last = await lease(made, at(6_003));
      expect(await store.queue.release(last, at(6_004), { job: at(9_000) })).toEqual({
        wakeAt: undefined,
      });
    }),
  );

  describe('crawlersWithWorkDue', () => {
    test(
      'are crawlers with due work that nobody dispatches',
      withStore(open, async ({ store, account, crawler, push, lease }) => {
        const { accountId } = await account();
        const made = await crawler({ accountId });
        for (let n = 0; n < 3; n++) await crawler({ accountId });
        const crawlersWithWorkDue = (ms: number) => store.queue.crawlersWithWorkDue(at(ms), 9);
        expect(await crawlersWithWorkDue(0)).toEqual([]);
        await push(makeJobs(made, 1));
        expect(await crawlersWithWorkDue(0)).toEqual([made.crawlerId]);
        const held = await lease(made);
        expect(await crawlersWithWorkDue(1)).toEqual([]);
        expect(await crawlersWithWorkDue(TTL_MS + 1)).toEqual([made.crawlerId]);
        const job = only((await claimJobs(store, held, 1, at(1))).jobs);
        await finishJobs(store, [toRetry(job, at(500))], at(2), held);
        await store.queue.release(held, at(3));
        expect(await crawlersWithWorkDue(499)).toEqual([]);
        expect(await crawlersWithWorkDue(500)).toEqual([made.crawlerId]);
        const next = await lease(made, at(500));
        const again = only((await claimJobs(store, next, 1, at(500))).jobs);
        await finishJobs(store, [toStored(again)], at(501), next);
        await store.queue.release(next, at(502));
        expect(await crawlersWithWorkDue(999_999)).toEqual([]);
      }),
    );

    test(
      'are not those whose work is paused or purged',
      withStore(open, async ({ store, crawler, push }) => {
        const made = await crawler({ delivery: 'webhook' });
        const { crawlerId } = made;
        const crawlersWithWorkDue = () => store.queue.crawlersWithWorkDue(at(5), 9);
        await push(makeJobs(made, 1));
        for (const by of ['user_pause', 'monitor_pause'] as const) {
          await store.crawlers.setPaused(crawlerId, by, at(1));
          expect(await crawlersWithWorkDue()).toEqual([]);
          await push(makeJobs(made, 1), at(2));
          expect(await crawlersWithWorkDue()).toEqual([]);
          await store.crawlers.setPaused(crawlerId, 'user_unpause', at(3));
          expect(await crawlersWithWorkDue()).toEqual([crawlerId]);
        }
        await store.queue.purge(crawlerId, at(4));
        expect(await crawlersWithWorkDue()).toEqual([]);
      }),
    );

    test(
      'are those whose user paused them while deliveries continue',
      withStore(open, async ({ store, crawler, running }) => {
        const made = await crawler({ delivery: 'webhook' });
        const { crawlerId } = made;
        const { lease, jobs } = await running(made, 1);
        await store.crawlers.setPaused(crawlerId, 'user_pause', at(1));
        await finishJobs(store, [toDelivery(only(jobs))], at(2), lease);
        await store.queue.release(lease, at(2));
        expect(await store.queue.crawlersWithWorkDue(at(2), 9)).toEqual([crawlerId]);
        await store.crawlers.setPaused(crawlerId, 'monitor_pause', at(3));
        expect(await store.queue.crawlersWithWorkDue(at(3), 9)).toEqual([]);
        await store.crawlers.setPaused(crawlerId, 'monitor_resume', at(4));
        expect(await store.queue.crawlersWithWorkDue(at(4), 9)).toEqual([crawlerId]);
      }),
    );

    test(
      'are given up to a limit',
      withStore(open, async ({ store, account, crawler, push }) => {
        const { accountId } = await account();
        for (let n = 0; n < 5; n++) await push(makeJobs(await crawler({ accountId }), 1));
        expect(await store.queue.crawlersWithWorkDue(at(0), 3)).toHaveLength(3);
        expect(await store.queue.crawlersWithWorkDue(at(0), 9)).toHaveLength(5);
      }),
    );
  });
}
