import { describe, expect, test } from 'vitest';
import {
  at,
  countersOf,
  delivered,
  jobOf,
  leaseOf,
  makeCrawler,
  type OpenStore,
  pushJobs,
  pushMany,
  retried,
  START,
  stored,
  WIDE,
} from './store-fixture.ts';

/** What every store's queue does. */
export function queueContract(open: OpenStore): void {
  describe('push', () => {
    test('keeps every field of a job', async () => {
      await using opened = await open();
      const { store } = opened;
      const crawler = await makeCrawler(store, 'fields');
      const job = jobOf(crawler, {
        method: 'POST',
        body: new Uint8Array([0, 255, 7]),
        contentType: 'application/json',
        parameters: { format: 'json', page_wait: 5, get_headers: true },
        callbackHeaders: [['x-one', '1']],
        queueDeadline: at(60),
      });
      expect(await pushJobs(store, crawler, [job])).toEqual([{ rid: job.rid }]);
      const found = await store.queue.find(crawler.crawlerId, job.rid);
      const body = Uint8Array.from(found?.body ?? []);
      expect({ ...found, body }).toEqual({
        ...job,
        state: 'waiting',
        retry: 0,
        attempt: 0,
        firstTriedAt: undefined,
      });
      expect(await store.queue.find('0'.repeat(24), job.rid)).toBeUndefined();
    });

    test('refuses what the crawler or the account has no room for, item by item', async () => {
      await using opened = await open();
      const { store } = opened;
      const crawler = await makeCrawler(store, 'small');
      const other = await makeCrawler(store, 'other');
      const three = [jobOf(crawler), jobOf(crawler), jobOf(crawler)];
      const outcomes = await pushJobs(store, crawler, three, { ...WIDE, crawlerQueue: 2 });
      expect(outcomes.map((each) => 'refused' in each && each.refused)).toEqual([
        false,
        false,
        'crawler_queue_full',
      ]);
      const limits = { ...WIDE, accountQueue: 3 };
      const { crawlerId, accountId } = other;
      const jobs = [jobOf(other), jobOf(other), jobOf(other)];
      const [receipt] = await store.queue.push([{ crawlerId, accountId, jobs }], limits, START);
      // Accepted while the account is not over its limit: the third and fourth in all, which takes it over.
      expect(receipt?.outcomes.map((each) => 'refused' in each && each.refused)).toEqual([
        false,
        false,
        'account_queue_full',
      ]);
      expect(receipt?.accountWentOver).toBe(true);
      const again = await store.queue.push(
        [{ crawlerId, accountId, jobs: [jobOf(other)] }],
        limits,
        START,
      );
      expect(again[0]).toMatchObject({
        outcomes: [{ refused: 'account_queue_full' }],
        accountWentOver: false,
      });
      expect(await store.accounts.queued(accountId)).toBe(4);
      await store.queue.purge(crawlerId, START);
      await store.queue.purge(crawler.crawlerId, START);
      await pushJobs(store, other, [jobOf(other), jobOf(other), jobOf(other)], limits);
      const over = await store.queue.push(
        [{ crawlerId, accountId, jobs: [jobOf(other)] }],
        limits,
        START,
      );
      expect(over[0]?.accountWentOver).toBe(true);
    });

    test('takes several requests in one call, also for a crawler that is gone', async () => {
      await using opened = await open();
      const { store } = opened;
      const first = await makeCrawler(store, 'first');
      const gone = await makeCrawler(store, 'gone');
      await store.crawlers.remove(gone.crawlerId);
      const requests = [first, gone, first].map((crawler) => ({
        crawlerId: crawler.crawlerId,
        accountId: crawler.accountId,
        jobs: [jobOf(crawler)],
      }));
      const receipts = await store.queue.push(requests, WIDE, START);
      expect(receipts.map((receipt) => 'rid' in (receipt.outcomes[0] ?? {}))).toEqual([
        true,
        false,
        true,
      ]);
      expect(receipts[1]?.outcomes).toEqual([{ refused: 'crawler_not_found' }]);
      expect((await countersOf(store, first)).waiting).toBe(2);
    });

    test('answers a repeated request_id as the first time and queues nothing', async () => {
      await using opened = await open();
      const { store } = opened;
      const crawler = await makeCrawler(store, 'repeat');
      const { crawlerId, accountId } = crawler;
      const call = async (jobs: number, requestId: string, now = START) => {
        const items = Array.from({ length: jobs }, () => jobOf(crawler));
        const [receipt] = await store.queue.push(
          [{ crawlerId, accountId, jobs: items, requestId }],
          WIDE,
          now,
        );
        return receipt?.outcomes;
      };
      expect(await call(0, 'a')).toEqual([]);
      const first = await call(2, 'a');
      expect(first).toHaveLength(2);
      expect(await call(2, 'a', at(3_600))).toEqual(first);
      expect(await call(0, 'a', at(3_600))).toEqual(first);
      expect(await call(1, 'b')).toHaveLength(1);
      expect((await countersOf(store, crawler)).pushed).toBe(3);
    });
  });

  describe('claim', () => {
    test('takes the oldest due first, up to the limit, and counts the attempt', async () => {
      await using opened = await open();
      const { store } = opened;
      const crawler = await makeCrawler(store, 'order');
      const rids = await pushMany(store, crawler, 5);
      const lease = await leaseOf(store, crawler);
      const { jobs } = await store.queue.claim(lease, 3, at(1));
      expect(jobs.map((job) => job.rid)).toEqual(rids.slice(0, 3));
      expect(jobs[0]).toMatchObject({
        state: 'running',
        attempt: 1,
        retry: 0,
        firstTriedAt: at(1),
      });
      expect(await countersOf(store, crawler)).toMatchObject({ waiting: 2, running: 3, pushed: 5 });
      expect(await store.accounts.queued(crawler.accountId)).toBe(2);
    });

    test('gives no job twice, however many claim at once', async () => {
      await using opened = await open();
      const { store } = opened;
      const crawler = await makeCrawler(store, 'race');
      const rids = await pushMany(store, crawler, 60);
      const lease = await leaseOf(store, crawler);
      const claims = await Promise.all(
        Array.from({ length: 8 }, () => store.queue.claim(lease, 10, at(1))),
      );
      const claimed = claims.flatMap(({ jobs }) => jobs.map((job) => job.rid));
      expect(new Set(claimed).size).toBe(claimed.length);
      expect(claims.every(({ jobs }) => jobs.length <= 10)).toBe(true);
      const { jobs } = await store.queue.claim(lease, 60, at(2));
      expect([...claimed, ...jobs.map((job) => job.rid)].sort()).toEqual(rids.sort());
    });

    test('takes nothing while paused, past a deadline, or before a retry is due', async () => {
      await using opened = await open();
      const { store } = opened;
      const crawler = await makeCrawler(store, 'not-now');
      await pushJobs(store, crawler, [
        jobOf(crawler, { queueDeadline: at(10) }),
        jobOf(crawler, { createdAt: at(1) }),
      ]);
      const lease = await leaseOf(store, crawler);
      await store.crawlers.setPaused(crawler.crawlerId, 'user_pause', START);
      expect(await store.queue.claim(lease, 5, at(20))).toEqual({ jobs: [], leaseLost: false });
      await store.crawlers.setPaused(crawler.crawlerId, 'user_unpause', START);
      const { jobs } = await store.queue.claim(lease, 5, at(20));
      expect(jobs).toHaveLength(1);
      const [job] = jobs;
      if (job === undefined) throw new Error('nothing was claimed');
      expect(await store.queue.finish([retried(job, at(40))], at(21), lease)).toEqual(['won']);
      expect((await store.queue.claim(lease, 5, at(30))).jobs).toEqual([]);
      const again = await store.queue.claim(lease, 5, at(41));
      expect(again.jobs[0]).toMatchObject({ rid: job.rid, retry: 1, attempt: 2 });
    });
  });

  describe('lease', () => {
    test('is held by one until it lapses; the next epoch takes over what was running', async () => {
      await using opened = await open();
      const { store } = opened;
      const crawler = await makeCrawler(store, 'lease');
      await pushMany(store, crawler, 2);
      const first = await leaseOf(store, crawler, 'one');
      const { jobs } = await store.queue.claim(first, 1, at(1));
      const { crawlerId } = crawler;
      expect(await store.queue.acquire(crawlerId, 'two', 60_000, at(30))).toBeUndefined();
      expect(await store.queue.renew(first, 60_000, at(30))).toBe(true);
      expect(await store.queue.acquire(crawlerId, 'two', 60_000, at(80))).toBeUndefined();
      const second = await leaseOf(store, crawler, 'two', at(100));
      expect(second.epoch).toBeGreaterThan(first.epoch);
      expect(await store.queue.renew(first, 60_000, at(101))).toBe(false);
      expect((await store.queue.claim(first, 5, at(101))).leaseLost).toBe(true);
      const taken = await store.queue.claim(second, 5, at(101));
      expect(taken.jobs).toHaveLength(2);
      const [job] = jobs;
      if (job === undefined) throw new Error('nothing was claimed');
      expect(taken.jobs.find((each) => each.rid === job.rid)).toMatchObject({
        attempt: 2,
        retry: 0,
      });
      expect(await store.queue.finish([stored(job)], at(102), first)).toEqual(['lost']);
      expect(await store.results.count({ ...crawler })).toBe(0);
    });

    test('release tells when there is work next, and misses no push', async () => {
      await using opened = await open();
      const { store } = opened;
      const crawler = await makeCrawler(store, 'release');
      const lease = await leaseOf(store, crawler);
      expect(await store.queue.release(lease, at(1))).toEqual({ wakeAt: undefined });
      const again = await leaseOf(store, crawler, 'process-2', at(2));
      const [ended, receipts] = await Promise.all([
        store.queue.release(again, at(3)),
        store.queue.push([{ ...crawler, jobs: [jobOf(crawler)] }], WIDE, at(3)),
      ]);
      // Whoever came second knows: the release of the job, or the push of the lease being gone.
      expect(ended.wakeAt !== undefined || receipts[0]?.leased === false).toBe(true);
      expect(await store.queue.wakeable(at(4), 10)).toEqual([crawler.crawlerId]);
    });

    test('wakeable names crawlers with due work and no live lease, as their pauses allow', async () => {
      await using opened = await open();
      const { store } = opened;
      const idle = await makeCrawler(store, 'idle');
      const busy = await makeCrawler(store, 'busy');
      const paused = await makeCrawler(store, 'paused');
      await pushMany(store, busy, 1);
      await pushMany(store, paused, 1);
      await store.crawlers.setPaused(paused.crawlerId, 'user_pause', START);
      expect(await store.queue.wakeable(at(1), 10)).toEqual([busy.crawlerId]);
      expect(await store.queue.nextWake(idle.crawlerId)).toBeUndefined();
      expect(await store.queue.nextWake(paused.crawlerId)).toBeUndefined();
      await leaseOf(store, busy, 'one', at(1));
      expect(await store.queue.wakeable(at(2), 10)).toEqual([]);
      expect(await store.queue.wakeable(at(90), 10)).toEqual([busy.crawlerId]);
      await store.crawlers.setPaused(paused.crawlerId, 'user_unpause', at(3));
      expect(await store.queue.wakeable(at(4), 10)).toContain(paused.crawlerId);
    });

    test('a restart makes due what was being worked on', async () => {
      await using opened = await open();
      const { store } = opened;
      const crawler = await makeCrawler(store, 'crash', { delivery: 'webhook' });
      await pushMany(store, crawler, 2);
      const lease = await leaseOf(store, crawler, 'dead');
      const { jobs } = await store.queue.claim(lease, 2, at(1));
      const [first] = jobs;
      if (first === undefined) throw new Error('nothing was claimed');
      await store.queue.finish([delivered(first)], at(2), lease);
      const after = await opened.reopen();
      const now = at(3_600);
      const next = await leaseOf(after, crawler, 'alive', now);
      expect((await after.queue.claim(next, 5, now)).jobs).toHaveLength(1);
      const deliveries = await after.deliveries.claim(next, 5, 1_000, now);
      expect(deliveries).toMatchObject([{ rid: first.rid, attempt: 2 }]);
    });
  });

  describe('the end of a job', () => {
    test('moves counters and history in the same write', async () => {
      await using opened = await open();
      const { store } = opened;
      const crawler = await makeCrawler(store, 'ends');
      await pushMany(store, crawler, 5);
      const lease = await leaseOf(store, crawler);
      const { jobs } = await store.queue.claim(lease, 5, at(1));
      const [a, b, c, d, e] = jobs;
      if (!a || !b || !c || !d || !e) throw new Error('not all were claimed');
      const { rid, crawlerId, attempt } = e;
      const verdicts = await store.queue.finish(
        [
          stored(a),
          stored(b, 503),
          retried(c, at(60)),
          { rid, crawlerId, attempt, kind: 'release' },
        ],
        at(2),
        lease,
      );
      expect(verdicts).toEqual(['won', 'won', 'won', 'won']);
      expect(
        await store.queue.finish([stored(a), stored({ ...d, attempt: 9 })], at(3), lease),
      ).toEqual(['lost', 'lost']);
      expect(await countersOf(store, crawler)).toMatchObject({
        waiting: 1,
        running: 1,
        retrying: 1,
        completed: 1,
        failed: 1,
        pushed: 5,
      });
      const days = await store.stats.history([crawlerId], {});
      expect(days.get(crawlerId)).toEqual([
        {
          date: '2026-03-01',
          pushed: 5,
          success: 1,
          failed: 1,
          byCbStatus: { 200: 1, 503: 1 },
          deliveries: 0,
          deliveryFailures: 0,
          billed: 1,
          retries: 1,
          timeouts: 0,
          deleted: 0,
          purged: 0,
        },
      ]);
    });

    test('is lost to a delete, a purge of the crawler, or a removal in between', async () => {
      await using opened = await open();
      const { store } = opened;
      const crawler = await makeCrawler(store, 'deleted');
      const rids = await pushMany(store, crawler, 4);
      const lease = await leaseOf(store, crawler);
      const { jobs } = await store.queue.claim(lease, 2, at(1));
      const [a, b] = jobs;
      if (!a || !b) throw new Error('not all were claimed');
      expect(await store.queue.deleteJob(crawler.crawlerId, a.rid, at(2))).toBe(true);
      expect(await store.queue.deleteJob(crawler.crawlerId, a.rid, at(2))).toBe(false);
      expect(await store.queue.finish([stored(a)], at(3), lease)).toEqual(['lost']);
      expect(await store.queue.purge(crawler.crawlerId, at(4))).toBe(2);
      expect(await store.queue.find(crawler.crawlerId, rids[3] ?? '')).toBeUndefined();
      expect(await store.queue.find(crawler.crawlerId, b.rid)).toMatchObject({ state: 'running' });
      expect(await countersOf(store, crawler)).toMatchObject({ deleted: 1, purged: 2, running: 1 });
      expect(await store.crawlers.remove(crawler.crawlerId)).toEqual({ purged: 0 });
      expect(await store.queue.finish([stored(b)], at(5), lease)).toEqual(['lost']);
      expect((await store.queue.claim(lease, 1, at(6))).leaseLost).toBe(true);
      expect(await store.accounts.queued(crawler.accountId)).toBe(0);
    });

    test('a job that waited too long ends once, if nobody has claimed it meanwhile', async () => {
      await using opened = await open();
      const { store } = opened;
      const crawler = await makeCrawler(store, 'overdue');
      await pushJobs(store, crawler, [
        jobOf(crawler, { queueDeadline: at(20) }),
        jobOf(crawler, { queueDeadline: at(10) }),
        jobOf(crawler),
      ]);
      expect(await store.queue.overdue(at(5), 10)).toEqual([]);
      const late = await store.queue.overdue(at(30), 10);
      expect(late.map((job) => job.queueDeadline)).toEqual([at(10), at(20)]);
      const outcomes = late.map((job) => ({ ...stored(job, 699), timedOut: true }));
      expect(await store.queue.finish(outcomes, at(31))).toEqual(['won', 'won']);
      expect(await store.queue.finish(outcomes, at(32))).toEqual(['lost', 'lost']);
      expect(await countersOf(store, crawler)).toMatchObject({ waiting: 1, failed: 2, pushed: 3 });
      const days = await store.stats.history([crawler.crawlerId], {});
      expect(days.get(crawler.crawlerId)?.[0]).toMatchObject({ timeouts: 2, failed: 2 });
    });
  });
}
