import { describe, expect, test } from 'vitest';
import type { Crawler } from '../../../src/domain/crawler.ts';
import type { Job } from '../../../src/domain/job.ts';
import { toRetry, toStored } from './outcomes.ts';
import {
  at,
  claimJobs,
  finishJobs,
  LIMITS,
  makeJob,
  type OpenStore,
  only,
  withStore,
} from './store-harness.ts';

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
      'above the default bring their hosts to the front of a look, and leave room for the others',
      withStore(open, async ({ store, crawler, push, lease }) => {
        const made = await crawler();
        const url = (host: string) => `https://${host}.example/`;
        const others = ['a', 'b', 'c', 'd', 'e'].map((host) => makeJob(made, { url: url(host) }));
        const urgent = [7, 9, 9].map((priority, n) =>
          makeJob(made, { url: url(`z${n}`), priority }),
        );
        const known = makeJob(made, { url: url('z9'), priority: 8 });
        const closed = makeJob(made, { url: url('zz'), priority: 8 });
        await push([...others, ...urgent, known, closed]);
        const held = await lease(made);
        const look = {
          limit: 5,
          except: [known.rid],
          hosts: { perHost: 1, rest: 0, after: '', closed: ['zz.example'], full: [] },
        };
        const receipt = await store.queue.turn(held, { look }, at(1));
        const found = receipt.jobs.map(({ rid }) => rid);
        const first = urgent.map(({ rid }) => rid);
        expect(found.slice(0, 3).toSorted()).toEqual(first.toSorted());
        expect(found.slice(3)).toEqual(others.slice(0, 2).map(({ rid }) => rid));
        expect(receipt).toMatchObject({ hasMore: true, lastHost: 'b.example' });
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

  describe('a unique key', () => {
    const keyed = (crawler: Crawler, key: string, more: Partial<Job> = {}) =>
      makeJob(crawler, { unique: { key }, ...more });

    test(
      'is answered with the first rid while its job waits, is crawled or retried, and not after it',
      withStore(open, async (bench) => {
        const { crawler, push, counters } = bench;
        const made = await crawler();
        const first = keyed(made, 'a');
        const same = keyed(made, 'a');
        const other = keyed(made, 'b');
        const receipt = await push([first, same, other, makeJob(made), keyed(made, 'a')]);
        expect(receipt.outcomes).toEqual([
          { rid: first.rid },
          { rid: first.rid, duplicate: true },
          { rid: other.rid },
          { rid: expect.not.stringMatching(first.rid) },
          { rid: first.rid, duplicate: true },
        ]);
        expect(await counters(made)).toMatchObject({ pushed: 3, waiting: 3 });
        expect(await bench.store.queue.find(made.crawlerId, same.rid)).toBeUndefined();
        const again = async (key = 'a') => only((await push([keyed(made, key)])).outcomes);
        const duplicate = { rid: first.rid, duplicate: true };
        await bench.crash();
        expect(await again()).toEqual(duplicate);
        const held = await bench.lease(made);
        const { jobs } = await claimJobs(bench.store, held, 1, at(0));
        expect(jobs.map(({ rid }) => rid)).toEqual([first.rid]);
        expect(await again()).toEqual(duplicate);
        const [job] = jobs;
        if (job === undefined) throw new Error('no job was found');
        await finishJobs(bench.store, [toRetry(job, at(1))], at(0), held);
        expect(await again()).toEqual(duplicate);
        const more = await claimJobs(bench.store, held, 9, at(1));
        const retried = more.jobs.find(({ rid }) => rid === first.rid);
        if (retried === undefined) throw new Error('the retry was not found');
        await finishJobs(bench.store, [toStored(retried)], at(2), held);
        const next = await again();
        expect(next).toEqual({ rid: expect.not.stringMatching(first.rid) });
        expect(await again()).toEqual({ ...next, duplicate: true });
        // The next purge and removal free it, too.
        await bench.store.queue.deleteJob(made.crawlerId, 'rid' in next ? next.rid : '', at(3));
        expect(await again()).not.toHaveProperty('duplicate');
        await bench.store.queue.purge(made.crawlerId, at(4));
        expect(await again()).not.toHaveProperty('duplicate');
        expect(await again()).toHaveProperty('duplicate');
        const elsewhere = await crawler();
        expect((await push([keyed(elsewhere, 'a')])).outcomes[0]).not.toHaveProperty('duplicate');
      }),
    );

    test(
      'with a time holds until then, also after the end of its job',
      withStore(open, async (bench) => {
        const { crawler, push } = bench;
        const made = await crawler();
        const until = (ms: number) => ({ unique: { key: 'a', until: at(ms) } });
        const first = makeJob(made, until(10_000));
        await push([first]);
        const held = await bench.lease(made);
        const { jobs } = await claimJobs(bench.store, held, 1, at(0));
        await finishJobs(
          bench.store,
          jobs.map((job) => toStored(job)),
          at(1),
          held,
        );
        const pushAt = async (ms: number) =>
          only((await push([makeJob(made, until(ms + 10_000))], at(ms))).outcomes);
        expect(await pushAt(9_999)).toEqual({ rid: first.rid, duplicate: true });
        const second = await pushAt(10_000);
        expect(second).not.toHaveProperty('duplicate');
        await bench.crash();
        expect(await pushAt(19_999)).toEqual({ ...second, duplicate: true });
        await bench.store.queue.purge(made.crawlerId, at(19_999));
        const third = await pushAt(19_999);
        expect(third).not.toHaveProperty('duplicate');
        await bench.store.maintain(at(29_998));
        expect(await pushAt(29_998)).toEqual({ ...third, duplicate: true });
        await bench.store.maintain(at(30_000));
        expect(await pushAt(30_000)).not.toHaveProperty('duplicate');
      }),
    );

    test(
      'is answered the same when its request is repeated, also if that had only duplicates',
      withStore(open, async ({ store, crawler, push }) => {
        const made = await crawler();
        const { crawlerId, accountId } = made;
        const first = keyed(made, 'a');
        await push([first]);
        const send = (crawlerQueue: number) => {
          const jobs = [keyed(made, 'a'), keyed(made, 'b')];
          const limits = { ...LIMITS, crawlerQueue };
          const request = { crawlerId, accountId, jobs, requestId: 'same', places: [1, 3] };
          return store.queue.push(request, limits, at(0));
        };
        const outcomes = [
          { rid: first.rid, duplicate: true },
          { refused: 'crawler_queue_full' },
        ] as const;
        expect(await send(1)).toMatchObject({ outcomes });
        expect(await send(9)).toMatchObject({ outcomes, places: [1, 3] });
      }),
    );

    test(
      'takes no room, and a key of a refused job is not taken',
      withStore(open, async ({ crawler, push }) => {
        const made = await crawler();
        const limits = { ...LIMITS, crawlerQueue: 1 };
        const first = keyed(made, 'a');
        const batch = [first, keyed(made, 'b'), keyed(made, 'a'), keyed(made, 'b')];
        const receipt = await push(batch, at(0), limits);
        expect(receipt.outcomes).toEqual([
          { rid: first.rid },
          { refused: 'crawler_queue_full' },
          { rid: first.rid, duplicate: true },
          { refused: 'crawler_queue_full' },
        ]);
        const later = keyed(made, 'b');
        expect((await push([later])).outcomes).toEqual([{ rid: later.rid }]);
      }),
    );

    test(
      'lets one of many pushes at once through, and a repeated request answers as before',
      withStore(open, async ({ store, crawler, counters }) => {
        const made = await crawler();
        const { crawlerId, accountId } = made;
        const pushOne = async (requestId?: string) => {
          const jobs = [keyed(made, 'a')];
          const request = { crawlerId, accountId, jobs };
          const named = requestId === undefined ? request : { ...request, requestId };
          const receipt = await store.queue.push(named, LIMITS, at(0));
          return only(receipt?.outcomes ?? []);
        };
        const ids = Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? undefined : `call ${n}`));
        const outcomes = await Promise.all(ids.map((id) => pushOne(id)));
        expect(new Set(outcomes.map((each) => ('rid' in each ? each.rid : ''))).size).toBe(1);
        expect(outcomes.filter((each) => !('duplicate' in each))).toHaveLength(1);
        expect(await pushOne('call 7')).toEqual(outcomes[7]);
        expect(await counters(made)).toMatchObject({ pushed: 1, waiting: 1 });
      }),
    );
  });
}
