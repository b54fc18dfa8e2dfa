import { describe, expect, test } from 'vitest';
import type { JobOutcome, Lease, Store } from '../../../../src/store/store.ts';
import { eventually } from '../../../support/eventually.ts';
import { commandOn } from '../../../support/mongo-gate.ts';
import { mongodbUri } from '../../../support/mongodb.ts';
import { toDelivery, toSettlement, toStored } from '../outcomes.ts';
import {
  at,
  claimDeliveries,
  claimJobs,
  finishJobs,
  LIMITS,
  makeJobs,
  only,
  renewLease,
  settleDeliveries,
  TTL_MS,
} from '../store-harness.ts';
import { type Processes, withProcesses } from './gated.ts';

const LATER = at(TTL_MS + 1);

/** Makes a process the lead of a crawler. */
async function leadOf(process: Store, crawlerId: string): Promise<Lease> {
  const lease = await process.queue.acquire(crawlerId, 'stopped', TTL_MS, at(0));
  if (lease === undefined) throw new Error('no lease');
  return lease;
}

/** Has the process `stopped` read jobs of a new crawler ahead, of which it starts the first. */
async function readAhead({ bench, stopped }: Processes, count: number) {
  const crawler = await bench.crawler();
  await bench.push(makeJobs(crawler, count));
  const lease = await leadOf(stopped, crawler.crawlerId);
  const { jobs } = await stopped.queue.turn(lease, { look: { limit: count } }, at(0));
  const [job, ...others] = jobs;
  if (job === undefined) throw new Error('nothing was found');
  const end = { ...toStored({ ...job, attempt: 1 }), startedAt: at(0) };
  return { crawler, lease, job, others, end };
}

/**
 * Has the process `stopped` end a crawl. It sleeps before it writes the result, and dies after that;
 * `meanwhile` is done while it sleeps.
 */
async function bringAndDie(
  { stopped, gate, c }: Processes,
  lease: Lease,
  end: JobOutcome,
  meanwhile: () => Promise<void>,
): Promise<void> {
  const insert = gate.hold(commandOn('insert', 'results'));
  const ending = finishJobs(stopped, [end], at(1), lease).catch(() => undefined);
  await insert.reached;
  await meanwhile();
  gate.refuse((command) => command.update === 'jobs' || command.delete !== undefined);
  insert.release();
  await ending;
  expect(await c.results.countDocuments()).toBe(1);
}

describe.skipIf(mongodbUri === '')('a process that is stopped while it has a crawler', () => {
  for (const mode of ['storage', 'webhook'] as const) {
    test(
      `while it gives its jobs back, leaves its successor's records alone: ${mode}`,
      withProcesses(async ({ bench, stopped, gate, c }) => {
        const { store, counters } = bench;
        const crawler = await bench.crawler({ delivery: mode });
        const { crawlerId } = crawler;
        await bench.push(makeJobs(crawler, 1));
        const lease = await leadOf(stopped, crawlerId);
        await claimJobs(stopped, lease, 1, at(0));
        const held = gate.hold(commandOn('delete', mode === 'storage' ? 'results' : 'deliveries'));
        const released = stopped.queue.release(lease, at(1));
        await held.reached;
        const next = await bench.lease(crawler, LATER, 'next');
        const job = only((await claimJobs(store, next, 1, LATER)).jobs);
        const end = mode === 'storage' ? toStored(job) : toDelivery(job);
        expect(await finishJobs(store, [end], LATER, next)).toMatchObject({ verdicts: ['won'] });
        held.release();
        await released;
        const records = mode === 'storage' ? c.results : c.deliveries;
        expect(await records.countDocuments({ _id: job.rid })).toBe(1);
        expect(await counters(crawler)).toMatchObject({
          running: 0,
          waiting: 0,
          completed: 1,
          deliveriesPending: mode === 'storage' ? 0 : 1,
        });
        await eventually(async () =>
          expect(await bench.store.accounts.queued(crawler.accountId)).toBe(0),
        );
      }),
    );
  }

  for (const mode of ['storage', 'webhook'] as const) {
    for (const winner of ['successor', 'stopped'] as const) {
      test(
        `while it ends a crawl that its successor crawls too, leaves the one record: ${mode}, the end of the ${winner} counts`,
        withProcesses(async ({ bench, stopped, pusher, gate, c }) => {
          const { counters } = bench;
          const crawler = await bench.crawler({ delivery: mode });
          const { crawlerId } = crawler;
          await bench.push(makeJobs(crawler, 1));
          const first = await leadOf(stopped, crawlerId);
          const job = only((await stopped.queue.turn(first, { look: { limit: 9 } }, at(0))).jobs);
          // Neither has written the start: both crawls are the first attempt.
          const crawled = { ...job, attempt: 1 };
          const end = {
            ...(mode === 'storage' ? toStored(crawled) : toDelivery(crawled, {}, { held: true })),
            startedAt: at(0),
          };
          const records = mode === 'storage' ? 'results' : 'deliveries';
          const insert = gate.hold(commandOn('insert', records));
          const update = gate.hold(commandOn('update', 'jobs', '"ended"'));
          const stale = finishJobs(stopped, [end], at(1), first);
          await insert.reached;
          const next = await bench.lease(crawler, LATER, 'next');
          insert.release();
          await update.reached;
          const own = gate.hold(commandOn('update', 'jobs', '"ended"'));
          const ending = finishJobs(pusher, [end], LATER, next);
          await own.reached;
          const inOrder = [
            { finished: ending, held: own },
            { finished: stale, held: update },
          ];
          if (winner === 'stopped') inOrder.reverse();
          const verdicts = [];
          for (const { finished, held } of inOrder) {
            held.release();
            verdicts.push(...(await finished).verdicts);
          }
          expect(verdicts).toEqual(['won', 'lost']);
          expect(await c[records].countDocuments({ _id: job.rid })).toBe(1);
          expect(await counters(crawler)).toMatchObject({ running: 0, waiting: 0, completed: 1 });
        }),
      );
    }
  }

  test(
    'between a delivery and the end of its crawl, does not end the job when its successor has removed the delivery',
    withProcesses(async ({ bench, stopped, gate, c }) => {
      const { store, counters } = bench;
      const crawler = await bench.crawler({ delivery: 'webhook' });
      await bench.push(makeJobs(crawler, 1));
      const first = await leadOf(stopped, crawler.crawlerId);
      const job = only((await stopped.queue.turn(first, { look: { limit: 9 } }, at(0))).jobs);
      const end = toDelivery({ ...job, attempt: 1 }, {}, { held: true });
      const update = gate.hold(commandOn('update', 'jobs', '"ended"'));
      const stale = finishJobs(stopped, [{ ...end, startedAt: at(0) }], at(1), first);
      await update.reached;
      expect(await c.deliveries.countDocuments({ _id: job.rid })).toBe(1);
      const next = await bench.lease(crawler, LATER, 'next');
      expect(await c.deliveries.countDocuments({ _id: job.rid })).toBe(0);
      update.release();
      expect(await stale).toMatchObject({ verdicts: ['lost'], held: [] });
      const again = only((await claimJobs(store, next, 9, LATER)).jobs);
      expect(await finishJobs(store, [toDelivery(again)], LATER, next)).toMatchObject({
        verdicts: ['won'],
      });
      expect(await claimDeliveries(store, next, 9, 1e9, LATER)).toMatchObject([{ rid: job.rid }]);
      expect(await counters(crawler)).toMatchObject({ completed: 1, deliveriesPending: 1 });
    }),
  );

  test(
    'has its jobs purged if the queue is purged while its successor makes them due again',
    withProcesses(async ({ bench, stopped, gate, c }) => {
      const { store } = bench;
      const crawler = await bench.crawler();
      const { crawlerId, accountId } = crawler;
      await bench.push(makeJobs(crawler, 4));
      await claimJobs(store, await bench.lease(crawler, at(0), 'dead'), 3, at(0));
      const held = gate.hold(commandOn('update', 'jobs', '"crashes"'));
      const acquired = stopped.queue.acquire(crawlerId, 'next', TTL_MS, LATER);
      await held.reached;
      expect(await store.queue.purge(crawlerId, LATER)).toBe(1);
      held.release();
      const next = await acquired;
      if (next === undefined) throw new Error('no lease');
      expect((await claimJobs(stopped, next, 9, LATER)).jobs).toEqual([]);
      await stopped.queue.release(next, LATER);
      expect(await bench.counters(crawler)).toMatchObject({
        pushed: 4,
        purged: 4,
        waiting: 0,
        running: 0,
      });
      const days = (await store.stats.history([crawlerId], {})).get(crawlerId);
      expect(days).toMatchObject([{ pushed: 4, purged: 4 }]);
      await store.maintain(at(10 * TTL_MS));
      expect(await c.jobs.countDocuments()).toBe(0);
      expect(await store.accounts.queued(accountId)).toBe(0);
    }),
  );

  for (const fate of ['goes on late', 'dies', 'loses its database for a moment']) {
    test(
      `before it has counted its starts leaves nothing for a purge to count twice: ${fate}`,
      withProcesses(async ({ bench, stopped, gate, c }) => {
        const { store } = bench;
        const crawler = await bench.crawler();
        const { crawlerId, accountId } = crawler;
        await bench.push(makeJobs(crawler, 4));
        const lease = await leadOf(stopped, crawlerId);
        const isCount = commandOn('findAndModify', 'crawlers', '"running"');
        const losesDatabase = fate === 'loses its database for a moment';
        const held = losesDatabase ? undefined : gate.hold(isCount);
        const restore = losesDatabase ? gate.refuse(isCount) : undefined;
        const claimed = claimJobs(stopped, lease, 3, at(0)).catch(() => undefined);
        await (held?.reached ?? claimed);
        expect(await c.jobs.countDocuments({ state: 'running' })).toBe(3);
        expect(await store.queue.purge(crawlerId, at(1))).toBe(4);
        restore?.();
        if (losesDatabase) {
          expect((await claimJobs(stopped, lease, 3, at(2))).jobs).toEqual([]);
        }
        const next = await bench.lease(crawler, LATER, 'next');
        if (fate === 'dies') gate.refuse((command) => command.update !== undefined);
        held?.release();
        await claimed;
        expect((await claimJobs(store, next, 9, LATER)).jobs).toEqual([]);
        await bench.push(makeJobs(crawler, 1), LATER);
        await store.queue.release(next, LATER);
        await c.crawlers.updateOne({ _id: crawlerId }, { $set: { miscounted: true } });
        const last = await bench.lease(crawler, at(3 * TTL_MS), 'last');
        await store.queue.release(last, at(3 * TTL_MS));
        expect(await bench.counters(crawler)).toMatchObject({
          pushed: 5,
          purged: 4,
          waiting: 1,
          running: 0,
        });
        await eventually(async () => expect(await store.accounts.queued(accountId)).toBe(1));
      }),
    );
  }

  for (const overtaken of [false, true]) {
    test(
      `leaves no result of a crawl whose job was purged ${overtaken ? 'while it was made due again' : 'before that was taken back'}`,
      withProcesses(async ({ bench, stopped, pusher, gate, c }) => {
        const { store } = bench;
        const crawler = await bench.crawler();
        const { crawlerId, accountId, tokenType } = crawler;
        await bench.push(makeJobs(crawler, 1));
        const lease = await bench.lease(crawler, at(0), 'dead');
        const job = only((await claimJobs(store, lease, 1, at(0))).jobs);
        // Its record is written, its end is not.
        const end = gate.hold(commandOn('update', 'jobs', '"ended"'));
        const ending = finishJobs(stopped, [toStored(job)], at(1), lease);
        await end.reached;
        expect(await c.results.countDocuments()).toBe(1);
        if (!overtaken) await store.queue.purge(crawlerId, at(2));
        const back = overtaken ? gate.hold(commandOn('find', 'jobs', '"mark"')) : undefined;
        const acquired = pusher.queue.acquire(crawlerId, 'next', TTL_MS, LATER);
        if (back !== undefined) {
          await back.reached;
          await store.queue.purge(crawlerId, LATER);
          back.release();
        }
        expect(await acquired).toBeDefined();
        expect(await store.results.get({ accountId, tokenType }, job.rid)).toBeUndefined();
        expect(await c.results.countDocuments()).toBe(0);
        end.release();
        expect((await ending).verdicts).toEqual(['lost']);
      }),
    );
  }

  for (const removal of ['purged', 'deleted'] as const) {
    test(
      `leaves no result of a crawl whose job was ${removal} before its start and end were written`,
      withProcesses(async (processes) => {
        const { stopped, gate, c } = processes;
        const { store } = processes.bench;
        const { crawler, lease, job, end } = await readAhead(processes, 2);
        const { crawlerId, accountId, tokenType } = crawler;
        // The record is written, and the process dies.
        const refused = gate.refuse(commandOn('update', 'jobs', '"ended"'));
        await expect(finishJobs(stopped, [end], at(1), lease)).rejects.toThrow();
        refused();
        expect(await c.results.countDocuments()).toBe(1);
        if (removal === 'purged') await store.queue.purge(crawlerId, at(2));
        else expect(await store.queue.deleteJob(crawlerId, job.rid, at(2))).toBe(true);
        expect(await store.results.get({ accountId, tokenType }, job.rid)).toBeUndefined();
        await store.maintain(LATER);
        expect(await c.results.countDocuments()).toBe(0);
      }),
    );
  }

  for (const removal of ['purged', 'deleted'] as const) {
    test(
      `leaves no result that it brought after its job was ${removal}, though it died then`,
      withProcesses(async (processes) => {
        const { bench, c } = processes;
        const { store } = bench;
        const { crawler, lease, job, end } = await readAhead(processes, 2);
        const { crawlerId } = crawler;
        await bringAndDie(processes, lease, end, async () => {
          if (removal === 'purged') await store.queue.purge(crawlerId, at(2));
          else expect(await store.queue.deleteJob(crawlerId, job.rid, at(2))).toBe(true);
        });
        await store.maintain(LATER);
        await store.maintain(at(TTL_MS + 90_000));
        expect(await c.results.countDocuments()).toBe(0);
        expect(await c.removals.countDocuments()).toBe(0);
      }),
    );
  }

  test(
    'leaves no result that it brought after its job was deleted, also while others are deleted all the time',
    withProcesses(async (processes) => {
      const { bench, c } = processes;
      const { store } = bench;
      const { crawler, lease, job, others, end } = await readAhead(processes, 10);
      const { crawlerId } = crawler;
      await bringAndDie(processes, lease, end, async () => {
        expect(await store.queue.deleteJob(crawlerId, job.rid, at(2))).toBe(true);
      });
      for (const [n, { rid }] of others.entries()) {
        const now = at(20_000 * (n + 1));
        expect(await store.queue.deleteJob(crawlerId, rid, now)).toBe(true);
        await store.maintain(now);
      }
      expect(await c.results.countDocuments()).toBe(0);
    }),
  );

  test(
    'leaves no result that it brought after its running job was taken back as purged, though it died then',
    withProcesses(async (processes) => {
      const { bench, stopped, pusher, c } = processes;
      const { store } = bench;
      const crawler = await bench.crawler();
      const { crawlerId } = crawler;
      await bench.push(makeJobs(crawler, 1));
      const lease = await leadOf(stopped, crawlerId);
      const job = only((await claimJobs(stopped, lease, 1, at(0))).jobs);
      await bringAndDie(processes, lease, toStored(job), async () => {
        await store.queue.purge(crawlerId, at(2));
        expect(await pusher.queue.acquire(crawlerId, 'next', TTL_MS, LATER)).toBeDefined();
      });
      await store.maintain(at(TTL_MS + 90_000));
      await store.maintain(at(TTL_MS + 180_000));
      expect(await c.results.countDocuments()).toBe(0);
    }),
  );

  test(
    'leaves no result of a job that a process deleted, which died before it removed the result',
    withProcesses(async ({ bench, stopped, pusher, gate, c }) => {
      const { store } = bench;
      const crawler = await bench.crawler();
      const { crawlerId } = crawler;
      await bench.push(makeJobs(crawler, 1));
      const lease = await leadOf(stopped, crawlerId);
      const job = only((await claimJobs(stopped, lease, 1, at(0))).jobs);
      const end = gate.hold(commandOn('update', 'jobs', '"ended"'));
      const ending = finishJobs(stopped, [toStored(job)], at(1), lease).catch(() => undefined);
      await end.reached;
      gate.refuse(commandOn('delete', 'results'));
      await expect(pusher.queue.deleteJob(crawlerId, job.rid, at(2))).rejects.toThrow();
      // Both processes die.
      gate.refuse(() => true);
      end.release();
      await ending;
      expect(await c.results.countDocuments()).toBe(1);
      await store.maintain(at(TTL_MS + 90_000));
      await store.maintain(at(TTL_MS + 180_000));
      expect(await c.results.countDocuments()).toBe(0);
      expect(await bench.counters(crawler)).toMatchObject({ deleted: 1, running: 0 });
    }),
  );

  test(
    'brings most likely what a purge has removed first, so that is kept in mind however long the queue was',
    withProcesses(async ({ bench, c }) => {
      const { store } = bench;
      const crawler = await bench.crawler();
      const limits = { ...LIMITS, crawlerQueue: 100_000, accountQueue: 100_000 };
      await bench.push(makeJobs(crawler, 6_000), at(0), limits);
      const [first] = await c.jobs.find().sort({ due: 1, _id: 1 }).limit(1).toArray();
      await store.queue.purge(crawler.crawlerId, at(1));
      await store.maintain(at(2));
      expect(await c.jobs.countDocuments()).toBe(0);
      const [entry] = await c.removals.find({ rids: { $exists: true } }).toArray();
      expect(entry?.rids).toContain(first?._id);
      expect(entry?.rids?.length).toBeLessThanOrEqual(5_000);
    }),
  );

  test(
    'before it counts what it gave back, does not count what its successor has counted',
    withProcesses(async ({ bench, stopped, gate }) => {
      const crawler = await bench.crawler();
      await bench.push(makeJobs(crawler, 3));
      const lease = await leadOf(stopped, crawler.crawlerId);
      await claimJobs(stopped, lease, 3, at(0));
      const held = gate.hold(commandOn('find', 'jobs', '"mark"'));
      const released = stopped.queue.release(lease, at(1));
      await held.reached;
      const next = await bench.lease(crawler, LATER, 'next');
      const { jobs } = await claimJobs(bench.store, next, 2, LATER);
      expect(jobs).toHaveLength(2);
      held.release();
      await released;
      expect(await bench.counters(crawler)).toMatchObject({ running: 2, waiting: 1 });
    }),
  );

  test(
    'while it claims deliveries, leaves none in sending: its successor takes them back',
    withProcesses(async ({ bench, stopped, gate }) => {
      const { store } = bench;
      const crawler = await bench.crawler({ delivery: 'webhook' });
      const { lease, jobs } = await bench.running(crawler, 1);
      await finishJobs(store, [toDelivery(only(jobs))], at(0), lease);
      await store.queue.release(lease, at(0));
      const first = await leadOf(stopped, crawler.crawlerId);
      const held = gate.hold(commandOn('update', 'deliveries', '"sending"'));
      const claimed = claimDeliveries(stopped, first, 9, 1e9, at(1));
      await held.reached;
      const next = await bench.lease(crawler, LATER, 'next');
      held.release();
      await claimed;
      expect(await claimDeliveries(store, next, 9, 1e9, LATER)).toEqual([]);
      expect(await renewLease(store, next, TTL_MS, LATER)).toBe(true);
      expect(await claimDeliveries(store, next, 9, 1e9, LATER)).toHaveLength(1);
      expect(await bench.counters(crawler)).toMatchObject({ deliveriesPending: 1 });
    }),
  );

  test(
    'after it has settled deliveries, does not count what its successor has counted',
    withProcesses(async ({ bench, stopped, gate }) => {
      const { store } = bench;
      const crawler = await bench.crawler({ delivery: 'webhook' });
      const { lease, jobs } = await bench.running(crawler, 3);
      await finishJobs(
        store,
        jobs.map((job) => toDelivery(job)),
        at(0),
        lease,
      );
      await store.queue.release(lease, at(0));
      const first = await leadOf(stopped, crawler.crawlerId);
      const claimed = await claimDeliveries(stopped, first, 2, 1e9, at(1));
      const held = gate.hold(commandOn('findAndModify', 'crawlers', 'deliveriesPending'));
      const outcomes = claimed.map((each) => toSettlement(each, 'delivered'));
      const settled = settleDeliveries(stopped, outcomes, at(1));
      await held.reached;
      await bench.lease(crawler, LATER, 'next');
      expect(await bench.counters(crawler)).toMatchObject({ deliveriesPending: 1 });
      held.release();
      expect(await settled).toEqual(['won', 'won']);
      expect(await bench.counters(crawler)).toMatchObject({ deliveriesPending: 1 });
    }),
  );

  test(
    'while it claims, and dies before it gives that back, has taken nothing from the counters',
    withProcesses(async ({ bench, stopped, gate }) => {
      const { store } = bench;
      const crawler = await bench.crawler();
      await bench.push(makeJobs(crawler, 2));
      const first = await leadOf(stopped, crawler.crawlerId);
      const held = gate.hold(commandOn('update', 'jobs', '"running"'));
      const claimed = claimJobs(stopped, first, 2, at(1)).catch(() => undefined);
      await held.reached;
      const next = await bench.lease(crawler, LATER, 'next');
      // It dies as soon as its claim is written: nothing that it sends after that arrives.
      gate.refuse((command) => command.update === 'crawlers' || command.update === 'jobs');
      held.release();
      await claimed;
      expect((await claimJobs(store, next, 9, LATER)).jobs).toEqual([]);
      await renewLease(store, next, TTL_MS, LATER);
      expect(await bench.counters(crawler)).toMatchObject({ running: 0, waiting: 2 });
      await eventually(async () => expect(await store.accounts.queued(crawler.accountId)).toBe(2));
      expect((await claimJobs(store, next, 9, LATER)).jobs).toHaveLength(2);
      expect(await bench.counters(crawler)).toMatchObject({ running: 2, waiting: 0 });
    }),
  );

  test(
    'keeps its lease while a takeover recounts slowly, and returns until when',
    withProcesses(async ({ bench, stopped, gate, c }) => {
      const crawler = await bench.crawler({ delivery: 'webhook' });
      const { crawlerId } = crawler;
      await bench.running(crawler, 1);
      const slow = gate.hold(commandOn('aggregate', 'deliveries'));
      const ttl = 300;
      const acquired = stopped.queue.acquire(crawlerId, 'slow', ttl, LATER);
      await slow.reached;
      const bound = new Date(LATER.getTime() + ttl);
      await eventually(async () => {
        const found = await c.crawlers.findOne({ _id: crawlerId });
        expect(found?.leaseUntil.getTime()).toBeGreaterThan(bound.getTime());
      });
      slow.release();
      const lease = await acquired;
      expect(lease?.until?.getTime()).toBeGreaterThan(bound.getTime());
    }),
  );
});
