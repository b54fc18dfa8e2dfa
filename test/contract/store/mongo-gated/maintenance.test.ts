import { describe, expect, test } from 'vitest';
import { chargedBytes } from '../../../../src/domain/quotas.ts';
import { toJobDocument } from '../../../../src/store/mongo/job-document.ts';
import { deliveryDocument } from '../../../../src/store/mongo/records.ts';
import { eventually } from '../../../support/eventually.ts';
import { commandOn } from '../../../support/mongo-gate.ts';
import { mongodbUri } from '../../../support/mongodb.ts';
import { makeRecord, toRetry, toStored } from '../outcomes.ts';
import { at, claimJobs, finishJobs, makeJobs, TTL_MS } from '../store-harness.ts';
import { isCommit, withProcesses } from './gated.ts';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

describe.skipIf(mongodbUri === '')('maintenance', () => {
  test(
    'adds what is counted late for a day that is over to that day',
    withProcesses(async ({ bench, c }) => {
      const { store } = bench;
      const crawler = await bench.crawler();
      const { lease, jobs } = await bench.running(crawler, 11);
      const end = (some: typeof jobs) =>
        finishJobs(
          store,
          some.map((job) => toStored(job)),
          at(0),
          lease,
        );
      await end(jobs.slice(0, 10));
      const daysNow = async () =>
        (await store.stats.history([crawler.crawlerId], {})).get(crawler.crawlerId);
      await store.maintain(at(2 * DAY));
      expect(await daysNow()).toMatchObject([{ pushed: 11, success: 10, billed: 10 }]);
      await end(jobs.slice(10));
      const whole = { pushed: 11, success: 11, billed: 11, byCbStatus: { 200: 11 } };
      for (const days of [2, 2, 3]) {
        expect(await daysNow()).toMatchObject([whole]);
        await store.maintain(at(days * DAY));
      }
      expect(await daysNow()).toMatchObject([whole]);
      expect(await c.history.countDocuments()).toBe(1);
    }),
  );

  for (const step of ['history', 'counts'] as const) {
    test(
      `moves a day and counters once, when the process that moves them is stopped at its ${step}`,
      withProcesses(async ({ bench, stopped, gate, c }) => {
        const crawler = await bench.crawler();
        await bench.running(crawler, 3);
        const read = async () =>
          (await bench.store.stats.history([crawler.crawlerId], {})).get(crawler.crawlerId);
        const before = await read();
        const counters = await bench.counters(crawler);
        const held = gate.hold(commandOn(step === 'counts' ? 'delete' : 'update', step));
        const moved = stopped.maintain(at(3 * DAY));
        await held.reached;
        expect(await read()).toEqual(before);
        expect(await bench.counters(crawler)).toEqual(counters);
        await bench.store.maintain(at(3 * DAY));
        expect(await read()).toEqual(before);
        held.release();
        await moved;
        expect(await read()).toEqual(before);
        expect(await bench.counters(crawler)).toEqual(counters);
        expect(await c.counts.countDocuments()).toBe(1);
      }),
    );
  }

  test(
    'counts once what is stored while an account is measured',
    withProcesses(async ({ bench, stopped, pusher, gate, c }) => {
      const crawler = await bench.crawler();
      const [job] = makeJobs(crawler, 1);
      if (job === undefined) throw new Error('there is no job');
      const { accountId, tokenType } = crawler;
      const counting = gate.hold(commandOn('update', 'accounts'));
      await stopped.results.put({ accountId, tokenType }, makeRecord(job), at(0), at(DAY));
      await counting.reached;
      const measuring = gate.hold(commandOn('aggregate', 'results'));
      const maintained = pusher.maintain(at(1));
      await measuring.reached;
      measuring.release();
      counting.release();
      await maintained;
      const stored = async () => (await c.accounts.findOne({ _id: accountId }))?.storedBytes;
      await eventually(async () => expect(await stored()).toBe(chargedBytes(10)));
    }),
  );

  test(
    'removes all deliveries that are past their time in one call',
    withProcesses(async ({ bench, c }) => {
      const crawler = await bench.crawler({ delivery: 'webhook' });
      const { crawlerId } = crawler;
      const documents = makeJobs(crawler, 2_000).map((job, n) => ({
        ...deliveryDocument({
          crawlerId,
          record: makeRecord(job),
          callbackHeaders: [],
          due: at(0),
          keptAt: at(0),
          expiresAt: at(10),
          epoch: undefined,
        }),
        state: n % 2 === 0 ? ('delivered' as const) : ('due' as const),
      }));
      await c.deliveries.insertMany(documents);
      await c.counts.insertOne({ _id: crawlerId, crawlerId, gen: 0, deliveriesPending: 1_000 });
      await bench.store.maintain(at(20));
      expect(await c.deliveries.countDocuments()).toBe(0);
      expect(await bench.counters(crawler)).toMatchObject({ deliveriesPending: 0 });
    }),
  );

  test(
    'of a crawler that is gone removes what a stopped process brings back, and nothing of it stops queue_timeout',
    withProcesses(async ({ bench, stopped, gate, c }) => {
      const { store } = bench;
      const gone = await bench.crawler();
      await bench.push(makeJobs(gone, 3, { queueDeadline: at(MINUTE) }));
      const lease = await stopped.queue.acquire(gone.crawlerId, 'stopped', TTL_MS, at(0));
      if (lease === undefined) throw new Error('no lease');
      const counting = gate.hold(isCommit);
      const claimed = claimJobs(stopped, lease, 9, at(0));
      await counting.reached;
      await store.crawlers.remove(gone.crawlerId);
      counting.release();
      expect((await claimed).jobs).toEqual([]);
      const orphans = makeJobs(gone, 300, { queueDeadline: at(MINUTE) });
      await c.jobs.insertMany(orphans.map((job) => toJobDocument(job)));
      const other = await bench.crawler();
      await bench.push(makeJobs(other, 5, { queueDeadline: at(MINUTE + 1) }));
      expect(await store.queue.overdue(at(2 * MINUTE), 200)).toHaveLength(5);
      await store.maintain(at(2 * MINUTE));
      await store.maintain(at(4 * MINUTE));
      expect(await c.jobs.countDocuments({ crawlerId: gone.crawlerId })).toBe(0);
      expect(await c.removals.countDocuments()).toBe(0);
    }),
  );
});

describe.skipIf(mongodbUri === '')('a purge', () => {
  test(
    'takes what is queued; what returns to the queue during the purge is purged as well',
    withProcesses(async ({ bench, stopped, gate, c }) => {
      const { store } = bench;
      const crawler = await bench.crawler();
      const { crawlerId, accountId } = crawler;
      await bench.push(makeJobs(crawler, 4));
      const lease = await stopped.queue.acquire(crawlerId, 'stopped', TTL_MS, at(0));
      if (lease === undefined) throw new Error('no lease');
      const [job] = (await claimJobs(stopped, lease, 1, at(0))).jobs;
      if (job === undefined) throw new Error('nothing was claimed');
      const retrying = gate.hold(isCommit);
      const retried = finishJobs(stopped, [toRetry(job, at(0))], at(0), lease);
      await retrying.reached;
      expect(await store.queue.purge(crawlerId, at(1))).toBe(3);
      expect(await bench.counters(crawler)).toMatchObject({ purged: 3, running: 1, waiting: 0 });
      retrying.release();
      expect(await retried).toMatchObject({ verdicts: ['won'] });
      const ended = { pushed: 4, purged: 4, running: 0, retrying: 0, waiting: 0 };
      expect(await bench.counters(crawler)).toMatchObject(ended);
      await eventually(async () => expect((await store.accounts.usage(accountId))?.queued).toBe(0));
      const days = (await store.stats.history([crawlerId], {})).get(crawlerId);
      expect(days).toMatchObject([{ pushed: 4, purged: 4, retries: 1 }]);
      expect((await claimJobs(stopped, lease, 9, at(1))).jobs).toEqual([]);
      expect(await c.jobs.countDocuments()).toBe(0);
    }),
  );

  for (const step of ['delete', 'commit'] as const) {
    test(
      `ends at the same time as a crawl as one of the two, stopped before its ${step}`,
      withProcesses(async ({ bench, stopped, gate }) => {
        const { store } = bench;
        const crawler = await bench.crawler();
        const { crawlerId, accountId, tokenType } = crawler;
        await bench.push(makeJobs(crawler, 3));
        const lease = await stopped.queue.acquire(crawlerId, 'stopped', TTL_MS, at(0));
        if (lease === undefined) throw new Error('no lease');
        const [job] = (await stopped.queue.turn(lease, { look: { limit: 9 } }, at(0))).jobs;
        if (job === undefined) throw new Error('nothing was found');
        const ending = gate.hold(step === 'commit' ? isCommit : commandOn('delete', 'jobs'));
        const end = { ...toStored({ ...job, attempt: 1 }), startedAt: at(0) };
        const ended = finishJobs(stopped, [end], at(0), lease);
        await ending.reached;
        const purged = await store.queue.purge(crawlerId, at(1));
        ending.release();
        const won = (await ended).verdicts[0] === 'won' ? 1 : 0;
        expect(purged).toBe(3 - won);
        const counted = { pushed: 3, purged: 3 - won, completed: won, waiting: 0, running: 0 };
        expect(await bench.counters(crawler)).toMatchObject(counted);
        const result = await store.results.get({ accountId, tokenType }, job.rid);
        expect(result === undefined).toBe(won === 0);
        await eventually(async () =>
          expect((await store.accounts.usage(accountId))?.queued).toBe(0),
        );
      }),
    );
  }

  test(
    'whose process dies after its first write is completed by the next writer',
    withProcesses(async ({ bench, stopped, gate }) => {
      const { store } = bench;
      const crawler = await bench.crawler();
      const { crawlerId, accountId } = crawler;
      await bench.push(makeJobs(crawler, 3));
      const counting = gate.hold(commandOn('findAndModify', 'counts'));
      void stopped.queue.purge(crawlerId, at(1)).catch(() => undefined);
      await counting.reached;
      gate.refuse(() => true);
      expect(await bench.counters(crawler)).toMatchObject({ purged: 3, waiting: 0 });
      await bench.push(makeJobs(crawler, 2));
      expect(await bench.counters(crawler)).toMatchObject({ pushed: 5, purged: 3, waiting: 2 });
      await eventually(async () => expect((await store.accounts.usage(accountId))?.queued).toBe(2));
      const lease = await bench.lease(crawler);
      expect((await claimJobs(store, lease, 9, at(2))).jobs).toHaveLength(2);
    }),
  );

  test(
    'whose process dies after its first write leaves nothing in the total of the account',
    withProcesses(async ({ bench, stopped, gate, c }) => {
      const { store } = bench;
      const crawler = await bench.crawler();
      const { crawlerId, accountId } = crawler;
      await bench.push(makeJobs(crawler, 3));
      // All that is counted is in the crawler's own part, which nobody uses.
      await store.maintain(at(2 * MINUTE));
      expect(await c.counts.countDocuments({ at: { $exists: true } })).toBe(0);
      const counting = gate.hold(commandOn('findAndModify', 'counts'));
      void stopped.queue.purge(crawlerId, at(2 * MINUTE)).catch(() => undefined);
      await counting.reached;
      gate.refuse(() => true);
      await store.maintain(at(3 * MINUTE));
      await eventually(async () => expect((await store.accounts.usage(accountId))?.queued).toBe(0));
      expect(await bench.counters(crawler)).toMatchObject({ pushed: 3, purged: 3, waiting: 0 });
    }),
  );
});
