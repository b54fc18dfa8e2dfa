import { describe, expect, test } from 'vitest';
import { toRetry } from './outcomes.ts';
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

  describe('priorities', () => {
    const HOUR = 3_600_000;
    const hosts = { perHost: 9, rest: 9, after: '', closed: [], full: [] };

    test(
      'order the jobs of a host, each step by an hour of waiting, through retries and restarts',
      withStore(open, async (bench) => {
        const { crawler, push } = bench;
        const made = await crawler();
        const ages = [
          { hours: 0, priority: 5 },
          { hours: 3.9, priority: 9 },
          { hours: 4.1, priority: 9 },
          { hours: 1, priority: 4 },
          { hours: 5, priority: 5 },
          { hours: 0, priority: 0 },
        ];
        const jobs = ages.map(({ hours, priority }) =>
          makeJob(made, { createdAt: at(hours * HOUR), priority }),
        );
        for (const job of jobs) await push([job], job.createdAt);
        const order = [1, 0, 2, 3, 4, 5].map((n) => jobs[n]?.rid);
        const now = at(5 * HOUR);
        const held = await bench.lease(made, now);
        const looks = [{ limit: 9 }, { limit: 9, hosts }, { limit: 9, hosts, byAge: true }];
        for (const look of looks) {
          const receipt = await bench.store.queue.turn(held, { look }, now);
          expect(receipt.jobs.map(({ rid }) => rid)).toEqual(order);
        }
        const few = { limit: 2, hosts };
        const { jobs: two } = await bench.store.queue.turn(held, { look: few }, now);
        expect(two.map(({ rid }) => rid)).toEqual(order.slice(0, 2));
        const [first] = two;
        if (first === undefined) throw new Error('no job was found');
        const started = [{ rid: first.rid, attempt: 1, startedAt: now }];
        await bench.store.queue.turn(held, { started }, now);
        const ended = [toRetry({ ...first, attempt: 1 }, at(8 * HOUR))];
        await bench.store.queue.turn(held, { ended }, now);
        await bench.crash();
        const later = at(9 * HOUR);
        const again = await bench.store.queue.acquire(made.crawlerId, 'next', 1_000, later);
        if (again === undefined) throw new Error('the lease was refused');
        const receipt = await bench.store.queue.turn(again, { look: { limit: 9, hosts } }, later);
        const retried = [0, 2, 3, 1, 4, 5].map((n) => jobs[n]?.rid);
        expect(receipt.jobs.map(({ rid }) => rid)).toEqual(retried);
      }),
    );

    test(
      'of jobs that are not due yet are passed over',
      withStore(open, async ({ store, crawler, push, lease }) => {
        const made = await crawler();
        const url = 'https://other.example/';
        const due = [
          makeJob(made, { priority: 0 }),
          makeJob(made, { priority: 5, createdAt: at(1) }),
          makeJob(made, { url }),
        ];
        const later = makeJob(made, { priority: 9, notBefore: at(HOUR) });
        await push([later, ...due]);
        const held = await lease(made);
        const look = { limit: 9, hosts, byAge: true };
        const receipt = await store.queue.turn(held, { look }, at(2));
        const found = receipt.jobs.map(({ rid }) => rid);
        expect(found).toEqual([due[1]?.rid, due[0]?.rid, due[2]?.rid]);
        expect(receipt).toMatchObject({ hasMore: false, nextDueAt: at(HOUR) });
      }),
    );
  });
}
