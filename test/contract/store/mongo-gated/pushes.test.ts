import { describe, expect, test } from 'vitest';
import type { Crawler } from '../../../../src/domain/crawler.ts';
import type { PushRequest, Store } from '../../../../src/store/store.ts';
import { eventually } from '../../../support/eventually.ts';
import { commandOn } from '../../../support/mongo-gate.ts';
import { mongodbUri } from '../../../support/mongodb.ts';
import { toStored } from '../outcomes.ts';
import { at, claimJobs, finishJobs, LIMITS, makeJobs, only } from '../store-harness.ts';
import { type Processes, withProcesses } from './gated.ts';

const MINUTE = 60_000;
const LATER = at(2 * MINUTE);

const confirms = commandOn('findAndModify', 'crawlers', 'wakes');

function makeRequest(crawler: Crawler, requestId?: string): PushRequest {
  const { crawlerId, accountId } = crawler;
  const jobs = makeJobs(crawler, 3);
  return { crawlerId, accountId, jobs, ...(requestId === undefined ? {} : { requestId }) };
}

async function pushed(store: Store, request: PushRequest, now = at(0)) {
  return only(await store.queue.push([request], LIMITS, now)).outcomes;
}

/** The stopped process pushes, and dies when its jobs are in. */
async function dieBeforeCount({ stopped, gate }: Processes, request: PushRequest) {
  const held = gate.hold(confirms);
  const push = stopped.queue.push([request], LIMITS, at(0)).catch(() => undefined);
  await held.reached;
  gate.refuse(() => true);
  return async () => {
    held.release();
    await push;
  };
}

describe.skipIf(mongodbUri === '')('a push whose process dies before its jobs are counted', () => {
  for (const crawled of [false, true]) {
    test(
      `returns the same outcomes when it is repeated, with its URLs ${crawled ? 'crawled' : 'queued'} meanwhile`,
      withProcesses(async (processes) => {
        const { bench, c } = processes;
        const { store } = bench;
        const crawler = await bench.crawler();
        const request = makeRequest(crawler, 'once');
        await dieBeforeCount(processes, request);
        await store.maintain(LATER);
        expect(await bench.counters(crawler)).toMatchObject({ pushed: 3, waiting: 3 });
        if (crawled) {
          const lease = await bench.lease(crawler, LATER);
          const { jobs } = await claimJobs(store, lease, 9, LATER);
          await finishJobs(
            store,
            jobs.map((job) => toStored(job)),
            LATER,
            lease,
          );
        }
        // The first call has not come to its end, so the repetition takes over from it.
        await c.pushRequests.updateMany({}, { $set: { claim: 'given up' } });
        const again = await pushed(store, { ...request, jobs: makeJobs(crawler, 3) }, LATER);
        expect(again).toEqual(request.jobs.map(({ rid }) => ({ rid })));
        expect(await bench.counters(crawler)).toMatchObject({
          pushed: 3,
          waiting: crawled ? 0 : 3,
          completed: crawled ? 3 : 0,
        });
      }),
    );
  }

  test(
    'keeps the results of its repetition, although the queue was purged between the two',
    withProcesses(async ({ bench, stopped, gate, c }) => {
      const { store } = bench;
      const crawler = await bench.crawler();
      const request = makeRequest(crawler, 'once');
      gate.refuse(commandOn('update', 'push_requests'));
      await expect(stopped.queue.push([request], LIMITS, at(0))).rejects.toThrow();
      expect(await c.jobs.countDocuments()).toBe(3);
      await store.queue.purge(crawler.crawlerId, at(1));
      expect(await c.jobs.countDocuments()).toBe(0);
      await c.pushRequests.updateMany({}, { $set: { claim: 'given up' } });
      await pushed(store, { ...request, jobs: makeJobs(crawler, 3) }, LATER);
      const lease = await bench.lease(crawler, LATER);
      const { jobs } = await claimJobs(store, lease, 9, LATER);
      const ends = jobs.map((job) => toStored(job));
      await finishJobs(store, ends, LATER, lease);
      await store.maintain(LATER);
      await store.maintain(new Date(LATER.getTime() + 70_000));
      expect(await c.removals.countDocuments()).toBe(0);
      expect(await c.results.countDocuments()).toBe(3);
    }),
  );

  test(
    'has its URLs counted and claimable as soon as a repetition acknowledges them',
    withProcesses(async (processes) => {
      const { bench } = processes;
      const crawler = await bench.crawler();
      const request = makeRequest(crawler, 'once');
      const die = await dieBeforeCount(processes, request);
      const again = await pushed(bench.store, { ...request, jobs: makeJobs(crawler, 3) });
      expect(again).toEqual(request.jobs.map(({ rid }) => ({ rid })));
      expect(await bench.counters(crawler)).toMatchObject({ pushed: 3, waiting: 3 });
      const lease = await bench.lease(crawler);
      expect((await claimJobs(bench.store, lease, 9, at(0))).jobs).toHaveLength(3);
      await die();
      expect(await bench.counters(crawler)).toMatchObject({ pushed: 3, running: 3 });
    }),
  );

  test(
    'does not lose one of its URLs, nor count one twice, when its insert lands after the repetition',
    withProcesses(async ({ bench, stopped, gate, c }) => {
      const crawler = await bench.crawler();
      const request = makeRequest(crawler, 'once');
      const held = gate.hold(commandOn('insert', 'jobs'));
      const first = stopped.queue.push([request], LIMITS, at(0));
      await held.reached;
      await c.pushRequests.updateMany({}, { $set: { claim: 'given up' } });
      const repeated = { ...request, jobs: makeJobs(crawler, 3) };
      const rids = request.jobs.map(({ rid }) => ({ rid }));
      expect(await pushed(bench.store, repeated)).toEqual(rids);
      held.release();
      expect(only(await first).outcomes).toEqual(rids);
      expect(await pushed(bench.store, repeated)).toEqual(rids);
      expect(await bench.counters(crawler)).toMatchObject({ pushed: 3, waiting: 3 });
    }),
  );

  test(
    'has its URLs in the statistics and wakes its crawler when its insert lands before the repetition’s',
    withProcesses(async ({ bench, stopped, pusher, gate, c }) => {
      const { store } = bench;
      const crawler = await bench.crawler();
      const { crawlerId } = crawler;
      const request = makeRequest(crawler, 'once');
      const rids = request.jobs.map(({ rid }) => ({ rid }));
      const early = gate.hold(commandOn('insert', 'jobs'));
      const first = stopped.queue.push([request], LIMITS, at(0));
      await early.reached;
      await c.pushRequests.updateMany({}, { $set: { claim: 'given up' } });
      const late = gate.hold(commandOn('insert', 'jobs'));
      const repeated = pusher.queue.push(
        [{ ...request, jobs: makeJobs(crawler, 3) }],
        LIMITS,
        at(0),
      );
      await late.reached;
      early.release();
      await eventually(async () => expect(await c.jobs.countDocuments()).toBe(3));
      late.release();
      expect(only(await repeated).outcomes).toEqual(rids);
      // It waits for the repetition, to know which of its URLs that counts on.
      expect(only(await first).outcomes).toEqual(rids);
      expect(await bench.counters(crawler)).toMatchObject({ pushed: 3, waiting: 3 });
      const days = (await store.stats.history([crawlerId], {})).get(crawlerId);
      expect(days).toMatchObject([{ pushed: 3 }]);
      expect(await store.queue.crawlersWithWorkDue(at(1), 9)).toEqual([crawlerId]);
    }),
  );

  for (const end of ['crawled', 'purged'] as const) {
    test(
      `takes its URLs back when they land after the repetition’s have been ${end}`,
      withProcesses(async ({ bench, stopped, gate, c }) => {
        const { store } = bench;
        const crawler = await bench.crawler();
        const { crawlerId, accountId } = crawler;
        const request = makeRequest(crawler, 'once');
        const rids = request.jobs.map(({ rid }) => ({ rid }));
        const held = gate.hold(commandOn('insert', 'jobs'));
        const first = stopped.queue.push([request], LIMITS, at(0));
        await held.reached;
        await c.pushRequests.updateMany({}, { $set: { claim: 'given up' } });
        const repeated = { ...request, jobs: makeJobs(crawler, 3) };
        expect(await pushed(store, repeated)).toEqual(rids);
        if (end === 'purged') await store.queue.purge(crawlerId, at(1));
        else {
          const lease = await bench.lease(crawler);
          const { jobs } = await claimJobs(store, lease, 9, at(1));
          const ends = jobs.map((job) => toStored(job));
          await finishJobs(store, ends, at(1), lease);
        }
        await eventually(async () => expect(await c.jobs.countDocuments()).toBe(0));
        held.release();
        expect(only(await first).outcomes).toEqual(rids);
        expect(await c.jobs.countDocuments()).toBe(0);
        const counters = await bench.counters(crawler);
        expect(counters).toMatchObject({
          pushed: 3,
          waiting: 0,
          ...(end === 'purged' ? { purged: 3 } : { completed: 3 }),
        });
        await eventually(async () => expect(await store.accounts.queued(accountId)).toBe(0));
      }),
    );
  }

  test(
    'is left alone by queue_timeout until it is counted',
    withProcesses(async (processes) => {
      const { bench } = processes;
      const { store } = bench;
      const crawler = await bench.crawler();
      const request = {
        ...makeRequest(crawler),
        jobs: makeJobs(crawler, 3, { queueDeadline: at(MINUTE) }),
      };
      await dieBeforeCount(processes, request);
      const counted = await bench.push(makeJobs(crawler, 1, { queueDeadline: at(MINUTE) }));
      expect(counted.outcomes).toHaveLength(1);
      const overdue = await store.queue.overdue(at(MINUTE), 3);
      expect(overdue).toHaveLength(1);
      await store.maintain(LATER);
      expect(await store.queue.overdue(LATER, 9)).toHaveLength(4);
      const ends = overdue.map((job) => toStored(job, { cbStatus: 699 }, { timedOut: true }));
      await store.queue.finish(ends, LATER);
      expect(await bench.counters(crawler)).toMatchObject({ pushed: 4, waiting: 3, failed: 1 });
    }),
  );
});

describe.skipIf(mongodbUri === '')('a push beside what else happens to its crawler', () => {
  test(
    'is not started before it is counted',
    withProcesses(async ({ bench, stopped, pusher, gate }) => {
      const { store } = bench;
      const crawler = await bench.crawler();
      await bench.push(makeJobs(crawler, 1));
      const { crawlerId } = crawler;
      const lease = await stopped.queue.acquire(crawlerId, 'claimer', MINUTE, at(0));
      if (lease === undefined) throw new Error('no lease');
      // The turn has looked at the pushes under way, and looks for jobs next.
      const look = gate.hold(commandOn('find', 'jobs', '"queued"'));
      const claimed = claimJobs(stopped, lease, 9, at(1));
      await look.reached;
      const counting = gate.hold(confirms);
      const pushing = pusher.queue.push([makeRequest(crawler)], LIMITS, at(0));
      await counting.reached;
      look.release();
      const { jobs } = await claimed;
      expect(jobs).toHaveLength(1);
      expect(await bench.counters(crawler)).toMatchObject({ running: 1, waiting: 0, pushed: 1 });
      counting.release();
      await pushing;
      expect(await bench.counters(crawler)).toMatchObject({ running: 1, waiting: 3, pushed: 4 });
      expect((await store.queue.find(crawlerId, jobs[0]?.rid ?? ''))?.state).toBe('running');
    }),
  );

  test(
    'takes no room in the account when its crawler has gone',
    withProcesses(async ({ bench, stopped, gate, c }) => {
      const { store } = bench;
      const crawler = await bench.crawler();
      const held = gate.hold(commandOn('insert', 'jobs'));
      const push = stopped.queue.push([makeRequest(crawler)], LIMITS, at(0));
      await held.reached;
      await store.crawlers.remove(crawler.crawlerId);
      held.release();
      const refused = { refused: 'crawler_not_found' };
      expect(only(await push).outcomes).toEqual([refused, refused, refused]);
      await eventually(async () => expect(await store.accounts.queued(crawler.accountId)).toBe(0));
      expect(await c.jobs.countDocuments()).toBe(0);
    }),
  );

  test(
    'takes no room in the account when the reservation at its crawler failed',
    withProcesses(async ({ bench, stopped, gate }) => {
      const crawler = await bench.crawler();
      const pass = gate.refuse(commandOn('findAndModify', 'crawlers', 'pending'));
      await expect(stopped.queue.push([makeRequest(crawler)], LIMITS, at(0))).rejects.toMatchObject(
        {
          kind: 'unavailable',
        },
      );
      pass();
      await eventually(async () =>
        expect(await bench.store.accounts.queued(crawler.accountId)).toBe(0),
      );
    }),
  );
});

describe.skipIf(mongodbUri === '')(
  'an insert that the driver sends again, for want of an answer',
  () => {
    const inserts = [
      { collection: 'jobs', requestId: undefined },
      { collection: 'jobs', requestId: 'once' },
      { collection: 'push_requests', requestId: 'once' },
    ];
    for (const { collection, requestId } of inserts) {
      test(
        `finds its ${collection} there, and the push goes on, ${requestId === undefined ? 'without' : 'with'} a request_id`,
        withProcesses(async ({ bench, stopped, gate }) => {
          const crawler = await bench.crawler();
          const request = makeRequest(crawler, requestId);
          const { lost } = gate.loseAnswer(commandOn('insert', collection));
          const outcomes = await pushed(stopped, request);
          await lost;
          expect(outcomes).toEqual(request.jobs.map(({ rid }) => ({ rid })));
          expect(await bench.counters(crawler)).toMatchObject({ pushed: 3, waiting: 3 });
          const lease = await bench.lease(crawler);
          expect((await claimJobs(bench.store, lease, 9, at(1))).jobs).toHaveLength(3);
        }),
      );
    }
  },
);
