import { describe, expect, test } from 'vitest';
import { toJobDocument } from '../../../../src/store/mongo/job-document.ts';
import { deliveryDocument } from '../../../../src/store/mongo/records.ts';
import { eventually } from '../../../support/eventually.ts';
import { commandOn } from '../../../support/mongo-gate.ts';
import { mongodbUri } from '../../../support/mongodb.ts';
import { makeRecord, toRetry, toStored } from '../outcomes.ts';
import { at, claimJobs, finishJobs, makeJobs, only, TTL_MS } from '../store-harness.ts';
import { withProcesses } from './gated.ts';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

describe.skipIf(mongodbUri === '')('maintenance', () => {
  test(
    'adds what is counted late for a day that is over to that day',
    withProcesses(async ({ bench, c }) => {
      const { store } = bench;
      const crawler = await bench.crawler();
      const { lease, jobs } = await bench.running(crawler, 11);
      const last = jobs[10];
      if (last === undefined) throw new Error('eleven jobs were pushed');
      await finishJobs(
        store,
        jobs.slice(0, 10).map((job) => toStored(job)),
        at(0),
        lease,
      );
      await c.jobs.updateOne(
        { _id: last.rid },
        {
          $set: {
            state: 'ended',
            from: 'running',
            end: 'completed',
            cbStatus: 200,
            billed: true,
            endedAt: at(0),
            by: 'dead',
            seq: 1,
          },
        },
      );
      const daysNow = async () =>
        (await store.stats.history([crawler.crawlerId], {})).get(crawler.crawlerId);
      // The day has gone to the history before the late end was found.
      await c.jobs.updateOne({ _id: last.rid }, { $set: { endedAt: at(3 * DAY) } });
      await store.maintain(at(2 * DAY));
      await c.jobs.updateOne({ _id: last.rid }, { $set: { endedAt: at(0) } });
      expect(await daysNow()).toMatchObject([{ pushed: 11, success: 10, billed: 10 }]);
      const whole = { pushed: 11, success: 11, billed: 11, byCbStatus: { 200: 11 } };
      for (const days of [2, 2, 3]) {
        await store.maintain(at(days * DAY));
        expect(await daysNow()).toMatchObject([whole]);
      }
      const kept = await c.crawlers.findOne({ _id: crawler.crawlerId });
      expect(kept).toMatchObject({ days: {} });
    }),
  );

  test(
    'goes on where the process that moved a day has stopped, and adds it once',
    withProcesses(async ({ bench, stopped, gate }) => {
      const crawler = await bench.crawler();
      await bench.running(crawler, 3);
      const read = async () =>
        (await bench.store.stats.history([crawler.crawlerId], {})).get(crawler.crawlerId);
      const before = await read();
      for (const stop of [
        commandOn('update', 'history'),
        commandOn('update', 'crawlers', '"moving.'),
      ]) {
        const held = gate.hold(stop);
        const moved = stopped.maintain(at(3 * DAY));
        await held.reached;
        expect(await read()).toEqual(before);
        await bench.store.maintain(at(3 * DAY));
        expect(await read()).toEqual(before);
        held.release();
        await moved;
        expect(await read()).toEqual(before);
        await bench.push(makeJobs(crawler, 1), at(0));
        before?.splice(0, 1, { ...only(before), pushed: only(before).pushed + 1 });
      }
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
          callbackHeaders: '[]',
          origin: { claim: 1, mark: '' },
          now: at(0),
          expiresAt: at(10),
          epoch: undefined,
        }),
        state: n % 2 === 0 ? ('delivered' as const) : ('due' as const),
      }));
      await c.deliveries.insertMany(documents);
      await c.crawlers.updateOne({ _id: crawlerId }, { $set: { deliveriesPending: 1_000 } });
      expect((await bench.store.maintain(at(20))).expired).toBe(2_000);
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
      const counting = gate.hold(commandOn('findAndModify', 'crawlers', '"running"'));
      const claimed = claimJobs(stopped, lease, 9, at(0));
      await counting.reached;
      await store.crawlers.remove(gone.crawlerId);
      counting.release();
      expect((await claimed).jobs).toEqual([]);
      const orphans = makeJobs(gone, 300, { queueDeadline: at(MINUTE) });
      await c.jobs.insertMany(orphans.map((job) => toJobDocument(job, 'stopped.1')));
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
    'is one write: what else is on its way to the queue is counted for what it is',
    withProcesses(async ({ bench, stopped, pusher, gate, c }) => {
      const { store } = bench;
      const crawler = await bench.crawler();
      const { crawlerId, accountId } = crawler;
      await bench.push(makeJobs(crawler, 4));
      const lease = await stopped.queue.acquire(crawlerId, 'stopped', TTL_MS, at(0));
      if (lease === undefined) throw new Error('no lease');
      const [job] = (await claimJobs(stopped, lease, 1, at(0))).jobs;
      if (job === undefined) throw new Error('nothing was claimed');
      // A retry is back in the queue, a push has its jobs in it: neither is counted.
      const retrying = gate.hold(commandOn('findAndModify', 'crawlers', '"applied.'));
      const retried = finishJobs(stopped, [toRetry(job, at(0))], at(0), lease);
      await retrying.reached;
      const pushing = gate.hold(commandOn('findAndModify', 'crawlers', '"wakes"'));
      const jobs = makeJobs(crawler, 2);
      const request = { crawlerId, accountId, jobs };
      const pushed = pusher.queue.push([request], { crawlerQueue: 99, accountQueue: 99 }, at(0));
      await pushing.reached;
      expect(await store.queue.purge(crawlerId, at(1))).toBe(3);
      expect(await bench.counters(crawler)).toMatchObject({ purged: 3, running: 1, waiting: 0 });
      retrying.release();
      pushing.release();
      expect(await retried).toMatchObject({ verdicts: ['won'] });
      await pushed;
      const ended = { pushed: 6, purged: 6, running: 0, retrying: 0, waiting: 0 };
      expect(await bench.counters(crawler)).toMatchObject(ended);
      await eventually(async () => expect(await store.accounts.queued(accountId)).toBe(0));
      const days = (await store.stats.history([crawlerId], {})).get(crawlerId);
      expect(days).toMatchObject([{ pushed: 6, purged: 6, retries: 1 }]);
      expect((await claimJobs(stopped, lease, 9, at(1))).jobs).toEqual([]);
      await store.maintain(at(2 * MINUTE));
      await store.maintain(at(4 * MINUTE));
      expect(await c.jobs.countDocuments()).toBe(0);
    }),
  );

  test(
    'that counts a URL whose crawl ends meanwhile leaves it to that end, whose result is there',
    withProcesses(async ({ bench, stopped, gate }) => {
      const { store } = bench;
      const crawler = await bench.crawler();
      const { crawlerId, accountId, tokenType } = crawler;
      await bench.push(makeJobs(crawler, 3));
      const lease = await stopped.queue.acquire(crawlerId, 'stopped', TTL_MS, at(0));
      if (lease === undefined) throw new Error('no lease');
      const look = { limit: 9, digits: undefined };
      const [job] = (await stopped.queue.turn(lease, { look }, at(0))).jobs;
      if (job === undefined) throw new Error('nothing was found');
      const ending = gate.hold(commandOn('findAndModify', 'crawlers', '"applied.'));
      const end = { ...toStored({ ...job, attempt: 1 }), startedAt: at(0) };
      const ended = finishJobs(stopped, [end], at(0), lease);
      await ending.reached;
      // The end is written, and not counted.
      expect(await store.queue.purge(crawlerId, at(1))).toBe(3);
      ending.release();
      expect(await ended).toMatchObject({ verdicts: ['won'] });
      expect(await bench.counters(crawler)).toMatchObject({
        pushed: 3,
        purged: 2,
        completed: 1,
        waiting: 0,
      });
      const days = (await store.stats.history([crawlerId], {})).get(crawlerId);
      expect(days).toMatchObject([{ pushed: 3, purged: 2, success: 1 }]);
      expect(await store.results.get({ accountId, tokenType }, job.rid)).toBeDefined();
      await eventually(async () => expect(await store.accounts.queued(accountId)).toBe(0));
    }),
  );
});
