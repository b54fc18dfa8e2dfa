import { describe, expect, test } from 'vitest';
import { toRelease, toRetry, toStored } from './outcomes.ts';
import {
  at,
  claimJobs,
  finishJobs,
  makeJobs,
  type OpenStore,
  TTL_MS,
  withStore,
} from './store-harness.ts';

/** What a purge takes out of the queue. */
export function purgeContract(open: OpenStore): void {
  describe('a purge', () => {
    test(
      'takes what is being crawled out of the queue, too: it ends as it ends, or as purged',
      withStore(open, async ({ store, crawler, running, push, counters, lease: take }) => {
        const made = await crawler();
        const { crawlerId, accountId } = made;
        const { lease, jobs } = await running(made, 4);
        const [stored, retried, released, crashed] = jobs;
        if (!stored || !retried || !released || !crashed) throw new Error('four were pushed');
        await push(makeJobs(made, 2));
        expect(await store.queue.purge(crawlerId, at(1))).toBe(2);
        expect(await counters(made)).toMatchObject({ running: 4, waiting: 0, purged: 2 });
        await push(makeJobs(made, 1), at(1));
        const outcomes = [toStored(stored), toRetry(retried, at(2)), toRelease(released)];
        expect(await finishJobs(store, outcomes, at(2), lease)).toMatchObject({
          verdicts: ['won', 'won', 'won'],
        });
        const after = { completed: 1, purged: 4, running: 1, waiting: 1, retrying: 0 };
        expect(await counters(made)).toMatchObject(after);
        for (const { rid } of [retried, released]) {
          expect(await store.queue.find(crawlerId, rid)).toBeUndefined();
          expect(await store.queue.deleteJob(crawlerId, rid, at(2))).toBe(false);
        }
        const now = at(TTL_MS + 2);
        const next = await take(made, now, 'next');
        expect((await claimJobs(store, next, 9, now)).jobs).toHaveLength(1);
        const ended = { completed: 1, purged: 5, running: 1, waiting: 0, pushed: 7 };
        expect(await counters(made)).toMatchObject(ended);
        expect((await store.accounts.usage(accountId))?.queued).toBe(0);
        const days = (await store.stats.history([crawlerId], {})).get(crawlerId);
        expect(days).toMatchObject([{ pushed: 7, purged: 5, success: 1, retries: 1 }]);
        const { rows } = await store.listings.jobs(crawlerId, undefined, { limit: 9 });
        expect(rows).toEqual([]);
      }),
    );

    test(
      'of 20,000 URLs counts them all at once, and frees room for as many',
      withStore(open, async ({ store, crawler, push, counters, lease: take }) => {
        const made = await crawler();
        const limits = { crawlerQueue: 20_000, accountQueue: 1_000_000 };
        for (let n = 0; n < 20; n++) await push(makeJobs(made, 1_000), at(0), limits);
        const full = await push(makeJobs(made, 1), at(0), limits);
        expect(full.outcomes).toEqual([{ refused: 'crawler_queue_full' }]);
        expect(await store.queue.purge(made.crawlerId, at(1))).toBe(20_000);
        expect(await counters(made)).toMatchObject({ waiting: 0, purged: 20_000 });
        await push(makeJobs(made, 3), at(1), limits);
        const lease = await take(made, at(1));
        expect((await claimJobs(store, lease, 9, at(1))).jobs).toHaveLength(3);
        expect(await store.queue.purge(made.crawlerId, at(2))).toBe(0);
        expect(await counters(made)).toMatchObject({ running: 3, purged: 20_000, pushed: 20_003 });
        const usage = await store.accounts.usage(made.accountId);
        expect(usage?.queuedBytes).toBeLessThan(20_000);
      }),
    );
  });
}
