import { describe, expect, test } from 'vitest';
import { at, makeJob, type OpenStore, withStore } from './store-harness.ts';

/** What a push says of when and how often its URL is crawled. */
export function pushControlsContract(open: OpenStore): void {
  describe('a job for later', () => {
    test(
      'waits for its time, counted as scheduled, and is found by a look then',
      withStore(open, async ({ store, crawler, push, lease, counters }) => {
        const made = await crawler();
        const { crawlerId } = made;
        const later = makeJob(made, { notBefore: at(60_000), queueDeadline: at(120_000) });
        const now = makeJob(made);
        await push([later, now]);
        expect(await counters(made)).toMatchObject({ pushed: 2, waiting: 2 });
        expect(await store.queue.countScheduled(crawlerId, at(59_999))).toBe(1);
        expect(await store.queue.countScheduled(crawlerId, at(60_000))).toBe(0);
        expect(await store.queue.find(crawlerId, later.rid)).toMatchObject({
          notBefore: at(60_000),
          state: 'waiting',
        });
        const held = await lease(made);
        const look = { limit: 5 };
        const hosts = { perHost: 5, rest: 5, after: '', closed: [], full: [] };
        for (const wanted of [look, { ...look, hosts }]) {
          const { jobs, nextDueAt } = await store.queue.turn(held, { look: wanted }, at(1));
          expect(jobs.map(({ rid }) => rid)).toEqual([now.rid]);
          expect(nextDueAt).toEqual(at(60_000));
        }
        const again = await store.queue.acquire(crawlerId, 'other', 1_000, at(60_000));
        if (again === undefined) throw new Error('the lease was refused');
        const { jobs } = await store.queue.turn(again, { look }, at(60_000));
        expect(jobs.map(({ rid }) => rid)).toEqual([now.rid, later.rid]);
      }),
    );

    test(
      'is listed by itself, removed, purged and kept by a restart like any other',
      withStore(open, async (bench) => {
        const { crawler, push } = bench;
        const made = await crawler();
        const { crawlerId } = made;
        const laters = [30, 20, 10].map((n) => makeJob(made, { notBefore: at(n * 1_000) }));
        const [third, second, first] = laters.map(({ rid }) => rid);
        await push([makeJob(made), ...laters]);
        const listed = async (after: Date) => {
          const state = { scheduledAfter: after };
          const part = { limit: 10 };
          const { rows } = await bench.store.listings.jobs(crawlerId, state, part);
          return rows.map(({ rid }) => rid);
        };
        const scheduled = (now: Date) => bench.store.queue.countScheduled(crawlerId, now);
        expect(await listed(at(0))).toEqual([first, second, third]);
        expect(await listed(at(10_000))).toEqual([second, third]);
        expect(await bench.store.queue.deleteJob(crawlerId, second ?? '', at(1))).toBe(true);
        expect(await scheduled(at(1))).toBe(2);
        await bench.crash();
        expect(await listed(at(0))).toEqual([first, third]);
        expect(await bench.store.queue.purge(crawlerId, at(2))).toBe(3);
        expect(await scheduled(at(2))).toBe(0);
        expect(await bench.counters(made)).toMatchObject({ waiting: 0, deleted: 1, purged: 3 });
      }),
    );
  });
}
