import { describe, expect, test } from 'vitest';
import type { JobOutcome, Lease, ListingPart, Store } from '../../../src/store/store.ts';
import { toRelease, toRetry } from './outcomes.ts';
import {
  at,
  claimJobs,
  finishJobs,
  makeJob,
  makeJobs,
  type OpenStore,
  only,
  TTL_MS,
  withStore,
} from './store-harness.ts';

/** Hosts of the jobs that looks by hosts find, one list for each look. */
async function lookByHosts(
  store: Store,
  lease: Lease,
  options: { readonly limit: number; readonly full?: string[]; readonly closed?: string[] },
  looks: number,
): Promise<string[][]> {
  const found: string[][] = [];
  let after = '';
  const { limit, full = [], closed = [] } = options;
  for (let n = 0; n < looks; n += 1) {
    const hosts = { perHost: 2, rest: limit, after, closed, full };
    const receipt = await store.queue.turn(lease, { look: { limit, hosts } }, at(10));
    found.push(receipt.jobs.map(({ url }) => new URL(url).host));
    after = receipt.lastHost ?? '';
    expect(receipt.seesAllHosts ?? false).toBe(receipt.lastHost === undefined);
  }
  return found;
}

/** Which jobs a claim takes. */
export function claimsContract(open: OpenStore): void {
  describe('a claim', () => {
    test(
      'takes the oldest due jobs, as many as asked for',
      withStore(open, async ({ store, crawler, push, lease, counters }) => {
        const made = await crawler();
        const jobs = [3, 1, 2, 0].map((ms) => makeJob(made, { createdAt: at(ms) }));
        for (const job of jobs) await push([job], job.createdAt);
        const held = await lease(made, at(10));
        const first = await claimJobs(store, held, 3, at(10));
        expect(first.leaseLost).toBe(false);
        expect(first.jobs.map(({ createdAt }) => createdAt)).toEqual([at(0), at(1), at(2)]);
        expect(first.jobs[0]).toMatchObject({
          ...jobs[3],
          state: 'running',
          retry: 0,
          attempt: 1,
          crashes: 0,
          firstTriedAt: at(10),
        });
        expect(await counters(made)).toMatchObject({ waiting: 1, running: 3, pushed: 4 });
        expect((await claimJobs(store, held, 3, at(10))).jobs).toHaveLength(1);
        expect(await claimJobs(store, held, 3, at(10))).toEqual({ jobs: [], leaseLost: false });
        const found = await store.queue.find(made.crawlerId, jobs[3]?.rid ?? '');
        expect(first.jobs[0]).toMatchObject(found ?? {});
      }),
    );

    test(
      'goes from host to host, and back to the first',
      withStore(open, async ({ store, crawler, push, lease }) => {
        const made = await crawler();
        const counts = { a: 9, b: 1, c: 3, d: 2, e: 5 };
        for (const [host, count] of Object.entries(counts)) {
          await push(makeJobs(made, count, { url: `http://${host}/`, createdAt: at(0) }));
        }
        const held = await lease(made, at(10));
        const look = (options: Parameters<typeof lookByHosts>[2], looks = 1) =>
          lookByHosts(store, held, options, looks);
        expect(await look({ limit: 4 }, 4)).toEqual([
          ['a', 'a', 'b', 'c'],
          ['d', 'd', 'e', 'e'],
          ['a', 'a', 'b', 'c'],
          ['d', 'd', 'e', 'e'],
        ]);
        const [open = []] = await look({ limit: 4, closed: ['a', 'd'] });
        expect([...new Set(open)]).toEqual(['b', 'c', 'e']);
        // Hosts that have enough come last, and with all that there is room for.
        const [some = []] = await look({ limit: 9, full: ['a', 'e'] });
        expect(some.slice(0, 3)).toEqual(expect.arrayContaining(['b', 'c']));
        expect(new Set(some.slice(-3))).toEqual(new Set(['a']));
        const [all = []] = await look({ limit: 99, closed: ['e'] });
        expect(all.toSorted().join('')).toBe('aaaaaaaaabcccdd');
      }),
    );

    test(
      'that goes from host to host finds what is due, and when the next is',
      withStore(open, async ({ store, crawler, push, lease }) => {
        const made = await crawler();
        const now = makeJob(made, { url: 'http://now/', createdAt: at(0) });
        const later = makeJob(made, { url: 'http://later/', createdAt: at(0) });
        await push([now, later]);
        const held = await lease(made, at(10));
        await claimJobs(store, held, 9, at(10));
        await finishJobs(store, [toRetry({ ...later, attempt: 1 }, at(500))], at(10), held);
        await finishJobs(store, [toRelease({ ...now, attempt: 1 }, at(10))], at(10), held);
        const hosts = { perHost: 2, rest: 9, after: '', closed: [], full: [] };
        const receipt = await store.queue.turn(held, { look: { limit: 9, hosts } }, at(10));
        expect(receipt.jobs.map(({ rid }) => rid)).toEqual([now.rid]);
        expect(receipt).toMatchObject({ hasMore: false, nextDueAt: at(500), seesAllHosts: true });
        const except = [now.rid];
        const again = await store.queue.turn(held, { look: { limit: 9, hosts, except } }, at(10));
        expect(again.jobs).toEqual([]);
      }),
    );

    test.each([
      {
        of: 'a host of which it reads some',
        jobs: { a: 3, b: 2 },
        has: ['b', 2],
        perHost: 2,
        limit: 3,
        hasMore: false,
      },
      {
        of: 'a host of which the run has some',
        jobs: { a: 50 },
        has: ['a', 20],
        perHost: 40,
        limit: 20,
        hasMore: true,
      },
    ] as const)(
      'that goes from host to host forgets none of $of',
      ({ jobs: counts, has: [host, had], perHost, limit, hasMore }) =>
        withStore(open, async ({ store, crawler, push, lease }) => {
          const made = await crawler();
          const except: string[] = [];
          for (const [name, count] of Object.entries(counts)) {
            const jobs = makeJobs(made, count, { url: `http://${name}/`, createdAt: at(0) });
            await push(jobs);
            if (name === host) except.push(...jobs.slice(0, had).map(({ rid }) => rid));
          }
          const held = await lease(made, at(10));
          const hosts = { perHost, rest: limit, after: '', closed: [], full: [] };
          const { queue } = store;
          const found = await queue.turn(held, { look: { limit, hosts, except } }, at(10));
          expect(found.jobs).toHaveLength(limit);
          expect(found.hasMore).toBe(hasMore);
        })(),
    );

    test(
      'that goes from host to host passes over all hosts that it is to leave out',
      withStore(open, async ({ store, crawler, push, lease }) => {
        const made = await crawler();
        const closed = Array.from({ length: 2_500 }, (_, n) => `h${n}.example`);
        await push(
          [...closed, 'z.example'].map((host) =>
            makeJob(made, { url: `http://${host}/`, createdAt: at(0) }),
          ),
        );
        const held = await lease(made, at(10));
        const look = (after: string, leftOut: readonly string[]) => {
          const hosts = { perHost: 1, rest: 0, after, closed: leftOut, full: [] };
          return store.queue.turn(held, { look: { limit: 5, hosts } }, at(10));
        };
        let receipt = await look('', closed);
        expect(receipt.jobs.map(({ host }) => host)).toEqual(['z.example']);
        // A slow server has not been asked for what is behind it.
        const { seesAllHosts = false, lastHost = '' } = receipt;
        if (!seesAllHosts) receipt = await look(lastHost, [...closed, 'z.example']);
        expect(receipt).toMatchObject({ seesAllHosts: true, hasMore: false });
      }),
    );

    test(
      'that goes from host to host takes no more bytes than asked for',
      withStore(open, async ({ store, crawler, push, lease }) => {
        const made = await crawler();
        const body = new Uint8Array(100_000);
        const jobs = Array.from({ length: 12 }, (_, n) =>
          makeJob(made, { url: `http://h${n}/`, method: 'POST', body, createdAt: at(0) }),
        );
        await push(jobs);
        const held = await lease(made, at(10));
        const found: string[] = [];
        for (let after: string | undefined = ''; after !== undefined; ) {
          const hosts = { perHost: 2, rest: 9, after, closed: [], full: [] };
          const look = { limit: 9, maxBytes: 350_000, hosts, except: [...found] };
          const receipt = await store.queue.turn(held, { look }, at(10));
          expect(receipt.jobs.length).toBeLessThanOrEqual(4);
          found.push(...receipt.jobs.map(({ rid }) => rid));
          after = found.length < jobs.length ? (receipt.lastHost ?? '') : undefined;
          expect(receipt.jobs.length).toBeGreaterThan(0);
        }
        expect(new Set(found).size).toBe(jobs.length);
      }),
    );

    test(
      'takes no more bytes than asked for, but at least one job',
      withStore(open, async ({ store, crawler, push, lease, counters }) => {
        const made = await crawler();
        const body = new Uint8Array(1_000);
        for (let n = 0; n < 5; n++)
          await push([makeJob(made, { method: 'POST', body, createdAt: at(n) })]);
        const held = await lease(made, at(10));
        const sizes: number[] = [];
        for (const maxBytes of [2_500, 10, undefined]) {
          sizes.push((await claimJobs(store, held, 9, at(10), maxBytes)).jobs.length);
        }
        expect(sizes).toEqual([2, 1, 2]);
        expect(await counters(made)).toMatchObject({ waiting: 0, running: 5 });
      }),
    );

    test(
      'takes no more bytes of what else jobs carry than asked for',
      withStore(open, async ({ store, crawler, push, lease }) => {
        const made = await crawler();
        const long = 'x'.repeat(1_000);
        const heavy = [
          { url: `https://example.com/${long}` },
          { parameters: { request_headers: `a:${long}` } },
          { callbackHeaders: [['a', long]] as const },
        ];
        for (const each of heavy) await push([makeJob(made, each)]);
        const held = await lease(made, at(10));
        expect((await claimJobs(store, held, 9, at(10), 2_500)).jobs).toHaveLength(2);
      }),
    );

    test(
      'leaves other crawlers’ jobs alone',
      withStore(open, async ({ store, account, crawler, push, lease }) => {
        const { accountId } = await account();
        const [first, second] = [await crawler({ accountId }), await crawler({ accountId })];
        await push(makeJobs(first, 2));
        expect((await claimJobs(store, await lease(second), 9, at(0))).jobs).toEqual([]);
      }),
    );

    test(
      'takes nothing while either has paused the crawler, without losing the lease',
      withStore(open, async ({ store, crawler, push, lease }) => {
        const made = await crawler({ delivery: 'webhook' });
        const { crawlerId } = made;
        await push(makeJobs(made, 1));
        const held = await lease(made);
        const nothing = { jobs: [], leaseLost: false };
        for (const by of ['user_pause', 'monitor_pause'] as const) {
          await store.crawlers.setPaused(crawlerId, by, at(1));
          expect(await claimJobs(store, held, 9, at(1))).toEqual(nothing);
          await push(makeJobs(made, 1), at(1));
          await store.crawlers.setPaused(crawlerId, 'user_unpause', at(1));
        }
        expect((await claimJobs(store, held, 9, at(1))).jobs).toHaveLength(3);
        expect(await claimJobs(store, held, 9, at(TTL_MS + 1))).toEqual({
          jobs: [],
          leaseLost: true,
        });
      }),
    );

    test(
      'waits for a retry’s moment and counts the retry',
      withStore(open, async ({ store, crawler, running, counters }) => {
        const made = await crawler();
        const { lease, jobs } = await running(made, 1);
        const job = only(jobs);
        expect(await finishJobs(store, [toRetry(job, at(500))], at(1), lease)).toMatchObject({
          verdicts: ['won'],
        });
        expect(await counters(made)).toMatchObject({ running: 0, waiting: 0, retrying: 1 });
        const waits = { state: 'retrying', retry: 1, attempt: 1, firstTriedAt: at(0) };
        expect(await store.queue.find(made.crawlerId, job.rid)).toMatchObject(waits);
        expect((await claimJobs(store, lease, 9, at(499))).jobs).toEqual([]);
        const again = only((await claimJobs(store, lease, 9, at(500))).jobs);
        expect(again).toMatchObject({ rid: job.rid, retry: 1, attempt: 2, firstTriedAt: at(0) });
        expect(await counters(made)).toMatchObject({ running: 1, retrying: 0 });
      }),
    );

    test(
      'keeps the rungs that have blocked it until a retry that does not climb',
      withStore(open, async ({ store, crawler, running }) => {
        const made = await crawler();
        const { lease, jobs } = await running(made, 1);
        let job = only(jobs);
        expect(job.climbed).toBeUndefined();
        const end = async (outcome: JobOutcome) => {
          await finishJobs(store, [outcome], at(1), lease);
          const { rows } = await store.listings.jobs(made.crawlerId, undefined, { limit: 1 });
          job = only((await claimJobs(store, lease, 1, at(1))).jobs);
          expect(only(rows).climbed).toBe(job.climbed);
          return job.climbed;
        };
        const climbed = 'direct forbidden, pool:a captcha';
        expect(await end({ ...toRetry(job, at(1)), climbed } as JobOutcome)).toBe(climbed);
        expect(await end(toRelease(job))).toBe(climbed);
        expect(await end(toRetry(job, at(1)))).toBeUndefined();
        const days = await store.stats.history([made.crawlerId], {});
        expect(days.get(made.crawlerId)).toMatchObject([{ retries: 2, climbs: 1 }]);
      }),
    );

    test(
      'counts the crawls that ended with their thread',
      withStore(open, async ({ store, crawler, running }) => {
        const made = await crawler();
        const { lease, jobs } = await running(made, 1);
        let job = only(jobs);
        for (const crashed of [true, false, true]) {
          const outcome = { ...toRetry(job, at(1)), crashed } as JobOutcome;
          expect(await finishJobs(store, [outcome], at(1), lease)).toMatchObject({
            verdicts: ['won'],
          });
          job = only((await claimJobs(store, lease, 1, at(1))).jobs);
        }
        expect(job).toMatchObject({ retry: 3, crashes: 2 });
      }),
    );

    test(
      'of a job given back untried is as the first one: no retry, no first try',
      withStore(open, async ({ store, crawler, running, counters }) => {
        const made = await crawler();
        const { lease, jobs } = await running(made, 2);
        const [soon, later] = jobs;
        if (soon === undefined || later === undefined) throw new Error('two jobs were pushed');
        const outcomes = [toRelease(soon), toRelease(later, at(500))];
        expect(await finishJobs(store, outcomes, at(100), lease)).toMatchObject({
          verdicts: ['won', 'won'],
        });
        expect(await counters(made)).toMatchObject({ running: 0, waiting: 2, retrying: 0 });
        const fresh = { state: 'waiting', retry: 0, firstTriedAt: undefined };
        expect(await store.queue.find(made.crawlerId, soon.rid)).toMatchObject(fresh);
        const first = only((await claimJobs(store, lease, 9, at(200))).jobs);
        expect(first).toMatchObject({ rid: soon.rid, retry: 0, firstTriedAt: at(200) });
        expect(first.attempt).toBeGreaterThan(soon.attempt);
        expect((await claimJobs(store, lease, 9, at(499))).jobs).toEqual([]);
        expect(only((await claimJobs(store, lease, 9, at(500))).jobs).rid).toBe(later.rid);
      }),
    );

    test(
      'of a retry given back untried still remembers when it was first tried',
      withStore(open, async ({ store, crawler, running, counters }) => {
        const made = await crawler();
        const { lease, jobs } = await running(made, 1);
        await finishJobs(store, [toRetry(only(jobs), at(10))], at(1), lease);
        const second = only((await claimJobs(store, lease, 1, at(10))).jobs);
        await finishJobs(store, [toRelease(second)], at(11), lease);
        expect(await counters(made)).toMatchObject({ retrying: 1, waiting: 0 });
        const third = only((await claimJobs(store, lease, 1, at(12))).jobs);
        expect(third).toMatchObject({ retry: 1, attempt: 3, firstTriedAt: at(0) });
      }),
    );

    test(
      'can be foreseen: what waits is listed in the order it is due, page by page',
      withStore(open, async ({ store, crawler, push, lease }) => {
        const made = await crawler();
        const jobs = [3, 1, 1, 0, 2].map((ms) => makeJob(made, { createdAt: at(ms) }));
        for (const job of jobs) await push([job], job.createdAt);
        await push(makeJobs(await crawler(), 3));
        const { crawlerId } = made;
        const listed: string[] = [];
        let part: ListingPart | undefined = { limit: 2 };
        while (part !== undefined) {
          const { rows, cursor } = await store.listings.jobs(crawlerId, undefined, part);
          listed.push(...rows.map(({ rid }) => rid));
          part = cursor === undefined ? undefined : { limit: 2, cursor };
        }
        expect(listed).toEqual([3, 1, 2, 4, 0].map((index) => jobs[index]?.rid));
        const held = await lease(made, at(5));
        await claimJobs(store, held, 4, at(5));
        const { rows } = await store.listings.jobs(crawlerId, undefined, { limit: 9 });
        const { rid, url } = jobs[0] ?? makeJob(made);
        expect(rows).toEqual([
          expect.objectContaining({ rid, url, retry: 0, createdAt: at(3), dueAt: at(3) }),
        ]);
      }),
    );
  });
}
