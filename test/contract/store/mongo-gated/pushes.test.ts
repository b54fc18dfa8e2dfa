import { describe, expect, test } from 'vitest';
import type { Crawler } from '../../../../src/domain/crawler.ts';
import type { PushRequest, Store } from '../../../../src/store/store.ts';
import { eventually } from '../../../support/eventually.ts';
import { commandOn } from '../../../support/mongo-gate.ts';
import { mongodbUri } from '../../../support/mongodb.ts';
import { at, claimJobs, LIMITS, makeJobs } from '../store-harness.ts';
import { isCommit, type Processes, withProcesses } from './gated.ts';

const wakes = commandOn('findAndModify', 'crawlers', 'wakes');
const insertsJobs = commandOn('insert', 'jobs');

function makeRequest(crawler: Crawler, requestId?: string): PushRequest {
  const { crawlerId, accountId } = crawler;
  const jobs = makeJobs(crawler, 3);
  return { crawlerId, accountId, jobs, ...(requestId === undefined ? {} : { requestId }) };
}

async function pushed(store: Store, request: PushRequest, now = at(0), limits = LIMITS) {
  return (await store.queue.push(request, limits, now)).outcomes;
}

/** The stopped process pushes, and dies when it is about to send a command that matches. */
async function dieBefore(
  { stopped, gate }: Processes,
  request: PushRequest,
  matches: Parameters<typeof gate.hold>[0],
): Promise<void> {
  const held = gate.hold(matches);
  void stopped.queue.push(request, LIMITS, at(0)).catch(() => undefined);
  await held.reached;
  gate.refuse(() => true);
}

const ridsOf = (request: PushRequest) => request.jobs.map(({ rid }) => ({ rid }));

describe.skipIf(mongodbUri === '')('a push whose process dies', () => {
  test(
    'before its commit leaves nothing, and does not stop its repetition',
    withProcesses(async (processes) => {
      const { bench, c } = processes;
      const crawler = await bench.crawler();
      const request = makeRequest(crawler, 'once');
      await dieBefore(processes, request, isCommit);
      const again = { ...request, jobs: makeJobs(crawler, 3) };
      expect(await pushed(bench.store, again)).toEqual(ridsOf(again));
      expect(await bench.counters(crawler)).toMatchObject({ pushed: 3, waiting: 3 });
      expect(await c.jobs.countDocuments()).toBe(3);
    }),
  );

  for (const woken of ['its repetition', 'maintenance'] as const) {
    test(
      `after its commit has its URLs counted, and its crawler woken by ${woken}`,
      withProcesses(async (processes) => {
        const { bench } = processes;
        const { store } = bench;
        const crawler = await bench.crawler();
        const { crawlerId } = crawler;
        const request = makeRequest(crawler, 'once');
        await dieBefore(processes, request, wakes);
        expect(await bench.counters(crawler)).toMatchObject({ pushed: 3, waiting: 3 });
        if (woken === 'maintenance') await store.maintain(at(1));
        else {
          const again = { ...request, jobs: makeJobs(crawler, 3) };
          expect(await pushed(store, again)).toEqual(ridsOf(request));
        }
        expect(await store.queue.crawlersWithWorkDue(at(1), 9)).toEqual([crawlerId]);
        const lease = await bench.lease(crawler);
        expect((await claimJobs(store, lease, 9, at(1))).jobs).toHaveLength(3);
        const days = (await store.stats.history([crawlerId], {})).get(crawlerId);
        expect(days).toMatchObject([{ pushed: 3 }]);
        if (woken === 'maintenance') {
          const again = { ...request, jobs: makeJobs(crawler, 3) };
          expect(await pushed(store, again)).toEqual(ridsOf(request));
          expect(await bench.counters(crawler)).toMatchObject({ pushed: 3, running: 3 });
        }
      }),
    );
  }
});

describe.skipIf(mongodbUri === '')(
  'a push at the same time as other changes of its crawler',
  () => {
    test(
      'is not seen before it is counted',
      withProcesses(async ({ bench, stopped, gate }) => {
        const crawler = await bench.crawler();
        await bench.push(makeJobs(crawler, 1));
        const lease = await bench.lease(crawler);
        const committing = gate.hold(isCommit);
        const pushing = pushed(stopped, makeRequest(crawler));
        await committing.reached;
        expect((await claimJobs(bench.store, lease, 9, at(1))).jobs).toHaveLength(1);
        expect(await bench.counters(crawler)).toMatchObject({ running: 1, waiting: 0, pushed: 1 });
        committing.release();
        await pushing;
        expect(await bench.counters(crawler)).toMatchObject({ running: 1, waiting: 3, pushed: 4 });
      }),
    );

    test(
      'has the same outcomes as a repetition that overtakes it, and queues its URLs once',
      withProcesses(async ({ bench, stopped, gate }) => {
        const crawler = await bench.crawler();
        const request = makeRequest(crawler, 'once');
        const held = gate.hold(commandOn('insert', 'push_requests'));
        const first = pushed(stopped, request);
        await held.reached;
        const again = { ...request, jobs: makeJobs(crawler, 3) };
        expect(await pushed(bench.store, again)).toEqual(ridsOf(again));
        held.release();
        expect(await first).toEqual(ridsOf(again));
        expect(await bench.counters(crawler)).toMatchObject({ pushed: 3, waiting: 3 });
      }),
    );

    for (const step of ['before its insert', 'before its commit'] as const) {
      test(
        `is in the queue or purged when the queue is purged ${step}`,
        withProcesses(async ({ bench, stopped, gate, c }) => {
          const { store } = bench;
          const crawler = await bench.crawler();
          const { crawlerId, accountId } = crawler;
          await bench.push(makeJobs(crawler, 2));
          const held = gate.hold(step === 'before its insert' ? insertsJobs : isCommit);
          const pushing = pushed(stopped, makeRequest(crawler));
          await held.reached;
          const purged = await store.queue.purge(crawlerId, at(1));
          expect(purged).toBe(2);
          held.release();
          expect(await pushing).toHaveLength(3);
          expect(await bench.counters(crawler)).toMatchObject({ pushed: 5, waiting: 3, purged: 2 });
          const lease = await bench.lease(crawler);
          expect((await claimJobs(store, lease, 9, at(2))).jobs).toHaveLength(3);
          await eventually(async () =>
            expect((await store.accounts.usage(accountId))?.queued).toBe(0),
          );
          expect(await c.jobs.countDocuments()).toBe(3);
        }),
      );
    }

    for (const step of ['insert', 'commit'] as const) {
      test(
        `takes no room in the account when its crawler goes before its ${step}`,
        withProcesses(async ({ bench, stopped, gate, c }) => {
          const { store } = bench;
          const crawler = await bench.crawler();
          const held = gate.hold(step === 'insert' ? insertsJobs : isCommit);
          const push = pushed(stopped, makeRequest(crawler));
          await held.reached;
          await store.crawlers.remove(crawler.crawlerId);
          const next = await bench.crawler({ accountId: crawler.accountId, name: crawler.name });
          held.release();
          const refused = { refused: 'crawler_not_found' };
          expect(await push).toEqual([refused, refused, refused]);
          await eventually(async () =>
            expect((await store.accounts.usage(crawler.accountId))?.queued).toBe(0),
          );
          await store.maintain(at(0));
          expect(await c.jobs.countDocuments()).toBe(0);
          expect(await bench.counters(next)).toMatchObject({ pushed: 0, waiting: 0 });
        }),
      );
    }

    test(
      'takes no room in the account when its insert fails',
      withProcesses(async ({ bench, stopped, gate }) => {
        const crawler = await bench.crawler();
        const pass = gate.refuse(insertsJobs);
        await expect(pushed(stopped, makeRequest(crawler))).rejects.toMatchObject({
          kind: 'unavailable',
        });
        pass();
        await eventually(async () =>
          expect((await bench.store.accounts.usage(crawler.accountId))?.queued).toBe(0),
        );
        expect(await bench.counters(crawler)).toMatchObject({ pushed: 0 });
      }),
    );

    for (const step of ['insert', 'commit'] as const) {
      test(
        `leaves a full queue exactly full, however late its ${step} comes`,
        withProcesses(async ({ bench, stopped, pusher, gate }) => {
          const crawler = await bench.crawler();
          const limits = { ...LIMITS, crawlerQueue: 10 };
          await pushed(stopped, makeRequest(crawler), at(0), limits);
          await pushed(pusher, makeRequest(crawler), at(0), limits);
          const held = gate.hold(step === 'insert' ? insertsJobs : isCommit);
          const late = pushed(stopped, makeRequest(crawler), at(0), limits);
          await held.reached;
          const others = await pushed(bench.store, makeRequest(crawler), at(0), limits);
          held.release();
          const taken = [...others, ...(await late)].filter((each) => 'rid' in each);
          expect(taken).toHaveLength(4);
          expect(await bench.counters(crawler)).toMatchObject({ waiting: 10, pushed: 10 });
        }),
      );
    }
  },
);

describe.skipIf(mongodbUri === '')('a push that loses an answer', () => {
  const lost = { insert: insertsJobs, commit: isCommit };
  for (const step of ['insert', 'commit'] as const) {
    for (const requestId of [undefined, 'once']) {
      test(
        `is written once when it is that of its ${step}, ${requestId === undefined ? 'without' : 'with'} a request_id`,
        withProcesses(async ({ bench, stopped, gate }) => {
          const crawler = await bench.crawler();
          const request = makeRequest(crawler, requestId);
          const answer = gate.loseAnswer(lost[step]);
          const outcomes = await pushed(stopped, request);
          await answer.lost;
          expect(outcomes).toEqual(ridsOf(request));
          expect(await bench.counters(crawler)).toMatchObject({ pushed: 3, waiting: 3 });
          const lease = await bench.lease(crawler);
          expect((await claimJobs(bench.store, lease, 9, at(1))).jobs).toHaveLength(3);
          await eventually(async () =>
            expect((await bench.store.accounts.usage(crawler.accountId))?.queued).toBe(0),
          );
        }),
      );
    }
  }
});

describe.skipIf(mongodbUri === '')('a push by another process while a lease is given back', () => {
  test(
    'is held back no longer than the holder has seen the work of the crawler',
    withProcesses(async ({ bench, pusher }) => {
      const { store } = bench;
      const crawler = await bench.crawler();
      await bench.push(makeJobs(crawler, 1));
      const lease = await bench.lease(crawler, at(1));
      const held = { job: at(15_000), seenWork: lease.work };
      await pushed(pusher, makeRequest(crawler), at(2));
      const { wakeAt } = await store.queue.release(lease, at(3), held);
      expect(wakeAt?.getTime()).toBeLessThanOrEqual(at(3).getTime());
      const again = await bench.lease(crawler, at(4));
      expect(await store.queue.release(again, at(5), { ...held, seenWork: again.work })).toEqual({
        wakeAt: at(15_000),
      });
    }),
  );
});
