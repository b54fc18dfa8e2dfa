import { describe, expect, test } from 'vitest';
import { eventually } from '../../../support/eventually.ts';
import { type Command, commandOn } from '../../../support/mongo-gate.ts';
import { mongodbUri } from '../../../support/mongodb.ts';
import { toDelivery, toRetry, toSettlement, toStored } from '../outcomes.ts';
import {
  at,
  claimDeliveries,
  claimJobs,
  finishJobs,
  LIMITS,
  makeJobs,
  only,
  settleDeliveries,
  TTL_MS,
} from '../store-harness.ts';
import { withProcesses } from './gated.ts';

const MINUTE = 60_000;

/** The write of a recount. */
const isRecount = (command: Command): boolean =>
  (command.update === 'crawlers' || command.findAndModify === 'crawlers') &&
  JSON.stringify(command).includes('"$set":{"running"');

describe.skipIf(mongodbUri === '')('a recount', () => {
  test(
    'beside the removal of a job leaves no ghost of it',
    withProcesses(async ({ bench, stopped, pusher, gate, c }) => {
      const crawler = await bench.crawler();
      const { crawlerId } = crawler;
      await bench.push(makeJobs(crawler, 1));
      const lease = await stopped.queue.acquire(crawlerId, 'stopped', TTL_MS, at(0));
      if (lease === undefined) throw new Error('no lease');
      const job = await c.jobs.findOne({ crawlerId });
      // The job is gone from the queue and its end is not counted yet. Releasing the crawler counts
      // what is there.
      const settle = gate.hold(commandOn('findAndModify', 'crawlers', '"deleted"'));
      const removal = pusher.queue.deleteJob(crawlerId, job?._id ?? '', at(1));
      await settle.reached;
      const write = gate.hold(isRecount);
      const released = stopped.queue.release(lease, at(2));
      await write.reached;
      settle.release();
      expect(await removal).toBe(true);
      write.release();
      await released;
      expect(await bench.counters(crawler)).toMatchObject({ waiting: 0, pushed: 1, deleted: 1 });
    }),
  );

  test(
    'beside a push does not let the crawler take more than its limit',
    withProcesses(async ({ bench, stopped, gate, c }) => {
      const crawler = await bench.crawler();
      const { crawlerId } = crawler;
      const limits = { ...LIMITS, crawlerQueue: 10 };
      const lease = await stopped.queue.acquire(crawlerId, 'stopped', TTL_MS, at(0));
      if (lease === undefined) throw new Error('no lease');
      // A crash left one too many in the counters, so releasing the crawler recounts it.
      await c.crawlers.updateOne({ _id: crawlerId }, { $inc: { live: 1 } });
      const write = gate.hold(isRecount);
      const released = stopped.queue.release(lease, at(1));
      await write.reached;
      expect((await bench.push(makeJobs(crawler, 9), at(1), limits)).outcomes).toHaveLength(9);
      write.release();
      await released;
      expect(await bench.counters(crawler)).toMatchObject({ waiting: 9, pushed: 9 });
      const { outcomes } = await bench.push(makeJobs(crawler, 5), at(1), limits);
      expect(outcomes.filter((each) => 'rid' in each)).toHaveLength(1);
    }),
  );

  test(
    'while a batch of ends is on its way counts each of them once, the late ones too',
    withProcesses(async ({ bench, c }) => {
      const { store } = bench;
      const crawler = await bench.crawler({ delivery: 'webhook' });
      const { jobs } = await bench.running(crawler, 3);
      const tombstone = { from: 'running', end: 'completed', billed: true, cbStatus: 200 } as const;
      const endOne = (n: number) =>
        c.jobs.updateOne(
          { _id: jobs[n]?.rid ?? '' },
          { $set: { ...tombstone, state: 'ended', endedAt: at(0), by: 'slow', seq: 7 } },
        );
      await endOne(0);
      await store.maintain(at(2 * MINUTE));
      expect(await bench.counters(crawler)).toMatchObject({ completed: 1, running: 2 });
      await endOne(1);
      await endOne(2);
      await store.maintain(at(4 * MINUTE));
      expect(await bench.counters(crawler)).toMatchObject({ completed: 3, running: 0, pushed: 3 });
      await store.maintain(at(6 * MINUTE));
      expect(await bench.counters(crawler)).toMatchObject({ completed: 3, running: 0, pushed: 3 });
      expect(await c.jobs.countDocuments()).toBe(0);
    }),
  );

  test(
    'by another process while a batch is written leaves nothing for its own process to count twice',
    withProcesses(async ({ bench, stopped, gate }) => {
      const { store } = bench;
      const crawler = await bench.crawler();
      await bench.push(makeJobs(crawler, 3));
      const lease = await stopped.queue.acquire(crawler.crawlerId, 'stopped', TTL_MS, at(0));
      if (lease === undefined) throw new Error('no lease');
      const { jobs } = await claimJobs(stopped, lease, 3, at(0));
      const [a, b, d] = jobs;
      if (a === undefined || b === undefined || d === undefined) throw new Error('no jobs');
      const settle = gate.hold(commandOn('findAndModify', 'crawlers', '"completed"'));
      const outcomes = [toStored(a), toStored(b), toRetry(d, at(1))];
      const finished = finishJobs(stopped, outcomes, at(0), lease);
      await settle.reached;
      await store.maintain(at(2 * MINUTE));
      const next = await bench.lease(crawler, at(2 * MINUTE), 'next');
      settle.release();
      expect(await finished).toMatchObject({ verdicts: ['won', 'won', 'won'] });
      const counted = { completed: 2, running: 0, retrying: 1, pushed: 3 };
      expect(await bench.counters(crawler)).toMatchObject(counted);
      await eventually(async () => expect(await store.accounts.queued(crawler.accountId)).toBe(1));
      expect((await claimJobs(store, next, 9, at(2 * MINUTE))).jobs).toHaveLength(1);
    }),
  );

  test(
    'beside the expiry of a delivery takes it off the pending ones once',
    withProcesses(async ({ bench, stopped, gate }) => {
      const crawler = await bench.crawler({ delivery: 'webhook' });
      const { lease, jobs } = await bench.running(crawler, 2);
      const [old, young] = jobs;
      if (old === undefined || young === undefined) throw new Error('no jobs');
      const ends = [toDelivery(old, {}, { expiresAt: at(MINUTE) }), toDelivery(young)];
      await finishJobs(bench.store, ends, at(0), lease);
      const count = gate.hold(commandOn('findAndModify', 'crawlers', 'deliveriesPending'));
      const maintained = stopped.maintain(at(2 * MINUTE));
      await count.reached;
      // The holder has died, so the next one recounts.
      await bench.lease(crawler, at(2 * MINUTE), 'next');
      expect(await bench.counters(crawler)).toMatchObject({ deliveriesPending: 2 });
      count.release();
      await maintained;
      expect(await bench.counters(crawler)).toMatchObject({ deliveriesPending: 1 });
    }),
  );

  test(
    'leaves out a delivery that a former holder makes of a job it has lost',
    withProcesses(async ({ bench, stopped, pusher, gate }) => {
      const crawler = await bench.crawler({ delivery: 'webhook' });
      const { crawlerId } = crawler;
      await bench.push(makeJobs(crawler, 1));
      const lease = await stopped.queue.acquire(crawlerId, 'stopped', TTL_MS, at(0));
      if (lease === undefined) throw new Error('no lease');
      const { jobs } = await claimJobs(stopped, lease, 1, at(0));
      const record = gate.hold(commandOn('insert', 'deliveries'));
      const end = toDelivery(only(jobs), {}, { held: true });
      const finished = finishJobs(stopped, [end], at(1), lease);
      await record.reached;
      // The next holder has put the job back, and is about to count.
      const look = gate.hold(commandOn('find', 'crawlers', '"fenced"'));
      const next = pusher.queue.acquire(crawlerId, 'next', TTL_MS, at(MINUTE));
      await look.reached;
      const write = gate.hold(commandOn('update', 'jobs', '"ended"'));
      record.release();
      await write.reached;
      look.release();
      expect(await next).toBeDefined();
      write.release();
      expect(await finished).toMatchObject({ verdicts: ['lost'] });
      expect(await bench.counters(crawler)).toMatchObject({ waiting: 1, deliveriesPending: 0 });
    }),
  );

  test(
    'a clean-up that fails fails nobody, and is done later',
    withProcesses(async ({ bench, stopped, gate, c }) => {
      const crawler = await bench.crawler({ delivery: 'webhook' });
      await bench.push(makeJobs(crawler, 2));
      const lease = await stopped.queue.acquire(crawler.crawlerId, 'stopped', TTL_MS, at(0));
      if (lease === undefined) throw new Error('no lease');
      const { jobs } = await claimJobs(stopped, lease, 2, at(0));
      const removes = gate.refuse(commandOn('delete', 'jobs'));
      const away = [
        gate.refuse(commandOn('update', 'deliveries', '"staged"')),
        gate.refuse(commandOn('update', 'accounts')),
      ];
      const ends = jobs.map((job) => toDelivery(job));
      expect(await finishJobs(stopped, ends, at(0), lease)).toMatchObject({
        verdicts: ['won', 'won'],
      });
      for (const back of away) back();
      expect(await claimDeliveries(stopped, lease, 9, 1e9, at(0))).toHaveLength(2);
      const counted = { completed: 2, deliveriesPending: 2 };
      expect(await bench.counters(crawler)).toMatchObject(counted);
      await stopped.maintain(at(0));
      expect(await c.jobs.countDocuments({ state: 'ended' })).toBe(2);
      removes();
      await stopped.maintain(at(0));
      expect(await c.jobs.countDocuments()).toBe(0);
      expect(await bench.counters(crawler)).toMatchObject(counted);
    }),
  );

  test(
    'a start whose answer was lost is counted once when the turn is taken again',
    withProcesses(async ({ bench, stopped, gate }) => {
      const crawler = await bench.crawler();
      await bench.push(makeJobs(crawler, 1));
      const lease = await stopped.queue.acquire(crawler.crawlerId, 'stopped', TTL_MS, at(0));
      if (lease === undefined) throw new Error('no lease');
      const { jobs } = await stopped.queue.turn(lease, { look: { limit: 9 } }, at(0));
      const { rid, attempt } = only(jobs);
      const started = [{ rid, attempt: attempt + 1, startedAt: at(0) }];
      // The driver repeats the write once by itself.
      for (let n = 0; n < 2; n++) gate.loseAnswer(commandOn('update', 'jobs', '"running"'));
      const lost = stopped.queue.turn(lease, { started }, at(0));
      await expect(lost).rejects.toMatchObject({ kind: 'unavailable' });
      expect((await stopped.queue.turn(lease, { started }, at(0))).lost).toEqual([]);
      expect(await bench.counters(crawler)).toMatchObject({ running: 1, waiting: 0 });
      const job = { ...only(jobs), attempt: attempt + 1 };
      expect(await finishJobs(stopped, [toStored(job)], at(0), lease)).toMatchObject({
        verdicts: ['won'],
      });
      await eventually(async () =>
        expect(await bench.store.accounts.queued(crawler.accountId)).toBe(0),
      );
    }),
  );

  for (const [first, second] of [
    [false, true],
    [true, false],
  ] as const) {
    test(
      `a delivery that was ${first ? 'held' : 'staged'} by a turn that failed is ${second ? 'held' : 'due'} by the next one`,
      withProcesses(async ({ bench, stopped, gate }) => {
        const crawler = await bench.crawler({ delivery: 'webhook' });
        await bench.push(makeJobs(crawler, 1));
        const lease = await stopped.queue.acquire(crawler.crawlerId, 'stopped', TTL_MS, at(0));
        if (lease === undefined) throw new Error('no lease');
        const job = only((await claimJobs(stopped, lease, 1, at(0))).jobs);
        // The record is written, the end is not.
        const back = gate.refuse(commandOn('update', 'jobs', '"ended"'));
        const failed = finishJobs(stopped, [toDelivery(job, {}, { held: first })], at(1), lease);
        await expect(failed).rejects.toMatchObject({ kind: 'unavailable' });
        back();
        const end = toDelivery(job, {}, { held: second });
        const { verdicts, held } = await finishJobs(stopped, [end], at(2), lease);
        expect(verdicts).toEqual(['won']);
        const claimed = await claimDeliveries(stopped, lease, 9, 1e9, at(3));
        const [delivery] = [...held, ...claimed];
        if (delivery === undefined) throw new Error('the delivery was lost');
        const settled = await settleDeliveries(
          stopped,
          [toSettlement(delivery, 'delivered')],
          at(4),
        );
        expect(settled).toEqual(['won']);
        expect(await bench.counters(crawler)).toMatchObject({ completed: 1, deliveriesPending: 0 });
      }),
    );
  }

  test(
    'of a crawler that never stands still is left to the holder of its lease',
    withProcesses(async ({ bench, stopped, gate, c }) => {
      const crawler = await bench.crawler();
      const { crawlerId } = crawler;
      await bench.push(makeJobs(crawler, 2));
      const lease = await bench.lease(crawler);
      // Its counters move whenever the other process is about to write what it has counted.
      const back = gate.refuse(commandOn('findAndModify', 'jobs'));
      await expect(stopped.queue.deleteJob(crawlerId, 'none', at(0))).rejects.toThrow();
      back();
      await c.crawlers.updateOne({ _id: crawlerId }, { $inc: { running: 7 } });
      const moves = async (): Promise<void> => {
        const held = gate.hold(isRecount);
        await held.reached;
        await c.crawlers.updateOne({ _id: crawlerId }, { $inc: { moves: 1 } });
        held.release();
      };
      const removal = stopped.queue.deleteJob(crawlerId, 'none', at(0));
      for (let n = 0; n < 5; n++) await moves();
      expect(await removal).toBe(false);
      expect(await bench.counters(crawler)).toMatchObject({ running: 7 });
      expect((await claimJobs(bench.store, lease, 1, at(0))).jobs).toHaveLength(1);
      expect(await bench.counters(crawler)).toMatchObject({ running: 1, waiting: 1, pushed: 2 });
    }),
  );
});
