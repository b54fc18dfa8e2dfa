import { describe, expect, test } from 'vitest';
import type { Lease, Store } from '../../../../src/store/store.ts';
import { eventually } from '../../../support/eventually.ts';
import { commandOn } from '../../../support/mongo-gate.ts';
import { mongodbUri } from '../../../support/mongodb.ts';
import { toDelivery, toRetry, toSettlement, toStored } from '../outcomes.ts';
import {
  at,
  claimDeliveries,
  claimJobs,
  finishJobs,
  makeJobs,
  only,
  settleDeliveries,
  TTL_MS,
} from '../store-harness.ts';
import { isCommit, withProcesses } from './gated.ts';

const LATER = at(TTL_MS + 1);
const removesJobs = commandOn('delete', 'jobs');

/** Makes a process the lead of a crawler. */
async function leadOf(process: Store, crawlerId: string): Promise<Lease> {
  const lease = await process.queue.acquire(crawlerId, 'stopped', TTL_MS, at(0));
  if (lease === undefined) throw new Error('no lease');
  return lease;
}

const modes = ['storage', 'webhook'] as const;

describe.skipIf(mongodbUri === '')('a process that is stopped while it has a crawler', () => {
  for (const mode of modes) {
    for (const step of ['first write', 'commit'] as const) {
      for (const fate of ['continues late', 'dies'] as const) {
        test(
          `before the ${step} of an end loses it to its successor, when it ${fate}: ${mode}`,
          withProcesses(async ({ bench, stopped, gate, c }) => {
            const { store, counters } = bench;
            const crawler = await bench.crawler({ delivery: mode });
            const { crawlerId, accountId } = crawler;
            await bench.push(makeJobs(crawler, 2));
            const lease = await leadOf(stopped, crawlerId);
            const { jobs } = await claimJobs(stopped, lease, 2, at(0));
            const toEnd = mode === 'storage' ? toStored : toDelivery;
            const held = gate.hold(step === 'commit' ? isCommit : removesJobs);
            const stale = finishJobs(
              stopped,
              jobs.map((job) => toEnd(job)),
              at(1),
              lease,
            ).catch(() => undefined);
            await held.reached;
            if (fate === 'dies') gate.refuse(() => true);
            const next = await bench.lease(crawler, LATER, 'next');
            expect(await counters(crawler)).toMatchObject({ running: 0, waiting: 2 });
            const again = (await claimJobs(store, next, 9, LATER)).jobs;
            expect(again).toMatchObject([{ crashes: 1 }, { crashes: 1 }]);
            if (fate === 'continues late') {
              held.release();
              expect(await stale).toMatchObject({ verdicts: ['lost', 'lost'] });
            }
            const ends = again.map((job) => toEnd(job));
            expect((await finishJobs(store, ends, LATER, next)).verdicts).toEqual(['won', 'won']);
            const records = mode === 'storage' ? c.results : c.deliveries;
            expect(await records.countDocuments()).toBe(2);
            expect(await counters(crawler)).toMatchObject({
              completed: 2,
              pushed: 2,
              running: 0,
              deliveriesPending: mode === 'storage' ? 0 : 2,
            });
            // What the process had gathered of the account's totals is lost with it.
            if (fate === 'dies') await store.maintain(LATER);
            await eventually(async () =>
              expect((await store.accounts.usage(accountId))?.queued).toBe(0),
            );
          }),
        );
      }
    }
  }

  for (const mode of modes) {
    for (const winner of ['successor', 'stopped'] as const) {
      test(
        `while it ends a crawl that its successor crawls too, leaves one record: ${mode}, the end of the ${winner} counts`,
        withProcesses(async ({ bench, stopped, pusher, gate, c }) => {
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
          const remove = gate.hold(removesJobs);
          const stale = finishJobs(stopped, [end], at(1), first);
          await remove.reached;
          const next = await bench.lease(crawler, LATER, 'next');
          const own = gate.hold(removesJobs);
          const ending = finishJobs(pusher, [end], LATER, next);
          await own.reached;
          const inOrder = [
            { finished: ending, held: own },
            { finished: stale, held: remove },
          ];
          if (winner === 'stopped') inOrder.reverse();
          const verdicts = [];
          for (const { finished, held } of inOrder) {
            held.release();
            verdicts.push(...(await finished).verdicts);
          }
          expect(verdicts).toEqual(['won', 'lost']);
          const records = mode === 'storage' ? c.results : c.deliveries;
          expect(await records.countDocuments({ _id: job.rid })).toBe(1);
          const counted = { running: 0, waiting: 0, completed: 1, pushed: 1 };
          expect(await bench.counters(crawler)).toMatchObject(counted);
        }),
      );
    }
  }

  for (const step of ['first write', 'commit'] as const) {
    test(
      `before the ${step} of its starts drops them, also when the queue is purged`,
      withProcesses(async ({ bench, stopped, gate, c }) => {
        const { store } = bench;
        const crawler = await bench.crawler();
        const { crawlerId, accountId } = crawler;
        await bench.push(makeJobs(crawler, 4));
        const lease = await leadOf(stopped, crawlerId);
        const { jobs } = await stopped.queue.turn(lease, { look: { limit: 3 } }, at(0));
        const started = jobs.map(({ rid }) => ({ rid, attempt: 1, startedAt: at(0) }));
        const held = gate.hold(step === 'commit' ? isCommit : commandOn('update', 'jobs'));
        const claimed = stopped.queue.turn(lease, { started }, at(0));
        await held.reached;
        expect(await store.queue.purge(crawlerId, at(1))).toBe(4);
        const next = await bench.lease(crawler, LATER, 'next');
        held.release();
        expect((await claimed).lost).toHaveLength(3);
        expect((await claimJobs(store, next, 9, LATER)).jobs).toEqual([]);
        await bench.push(makeJobs(crawler, 1), LATER);
        const counted = { pushed: 5, purged: 4, waiting: 1, running: 0 };
        expect(await bench.counters(crawler)).toMatchObject(counted);
        await eventually(async () =>
          expect((await store.accounts.usage(accountId))?.queued).toBe(1),
        );
        expect(await c.jobs.countDocuments()).toBe(1);
      }),
    );
  }

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
      const counted = { pushed: 4, purged: 4, waiting: 0, running: 0 };
      expect(await bench.counters(crawler)).toMatchObject(counted);
      const days = (await store.stats.history([crawlerId], {})).get(crawlerId);
      expect(days).toMatchObject([{ pushed: 4, purged: 4 }]);
      await store.maintain(at(10 * TTL_MS));
      expect(await c.jobs.countDocuments()).toBe(0);
      await eventually(async () => expect((await store.accounts.usage(accountId))?.queued).toBe(0));
    }),
  );

  for (const removal of ['purged', 'deleted'] as const) {
    for (const isStarted of [false, true]) {
      test(
        `leaves a result or an end of its job, not both, when that is ${removal} ${isStarted ? 'while it runs' : 'before its start is written'}`,
        withProcesses(async ({ bench, stopped, gate, c }) => {
          const { store } = bench;
          const crawler = await bench.crawler();
          const { crawlerId } = crawler;
          await bench.push(makeJobs(crawler, 1));
          const lease = await leadOf(stopped, crawlerId);
          const { jobs } = isStarted
            ? await claimJobs(stopped, lease, 1, at(0))
            : await stopped.queue.turn(lease, { look: { limit: 1 } }, at(0));
          const job = { ...only(jobs), attempt: 1 };
          const end = { ...toStored(job), ...(isStarted ? {} : { startedAt: at(0) }) };
          const held = gate.hold(removesJobs);
          const ending = finishJobs(stopped, [end], at(1), lease);
          await held.reached;
          if (removal === 'purged') await store.queue.purge(crawlerId, at(2));
          else expect(await store.queue.deleteJob(crawlerId, job.rid, at(2))).toBe(true);
          held.release();
          const { verdicts } = await ending;
          const won = removal === 'purged' && isStarted ? 1 : 0;
          expect(verdicts).toEqual([won === 1 ? 'won' : 'lost']);
          expect(await c.results.countDocuments()).toBe(won);
          expect(await bench.counters(crawler)).toMatchObject({
            pushed: 1,
            completed: won,
            [removal]: 1 - won,
            running: 0,
            waiting: 0,
          });
        }),
      );
    }
  }

  test(
    'while it gives its jobs back, leaves what its successor does alone',
    withProcesses(async ({ bench, stopped, gate, c }) => {
      const { store } = bench;
      const crawler = await bench.crawler();
      const { crawlerId } = crawler;
      await bench.push(makeJobs(crawler, 3));
      const lease = await leadOf(stopped, crawlerId);
      await claimJobs(stopped, lease, 3, at(0));
      const held = gate.hold(commandOn('update', 'jobs', '"queued"'));
      const released = stopped.queue.release(lease, at(1));
      await held.reached;
      const next = await bench.lease(crawler, LATER, 'next');
      const { jobs } = await claimJobs(store, next, 2, LATER);
      const [job] = jobs;
      if (job === undefined) throw new Error('nothing was found');
      await finishJobs(store, [toStored(job)], LATER, next);
      held.release();
      await released;
      const counted = { running: 1, waiting: 1, completed: 1 };
      expect(await bench.counters(crawler)).toMatchObject(counted);
      expect(await c.results.countDocuments()).toBe(1);
      expect(
        (await finishJobs(store, [toRetry(jobs[1] as never, LATER)], LATER, next)).verdicts,
      ).toEqual(['won']);
    }),
  );

  for (const step of ['first write', 'commit'] as const) {
    test(
      `while it claims deliveries, before the ${step}, leaves none in sending`,
      withProcesses(async ({ bench, stopped, gate }) => {
        const { store } = bench;
        const crawler = await bench.crawler({ delivery: 'webhook' });
        const { lease, jobs } = await bench.running(crawler, 1);
        await finishJobs(store, [toDelivery(only(jobs))], at(0), lease);
        await store.queue.release(lease, at(0));
        const first = await leadOf(stopped, crawler.crawlerId);
        const sends = commandOn('update', 'deliveries', '"sending"');
        const held = gate.hold(step === 'commit' ? isCommit : sends);
        const claimed = claimDeliveries(stopped, first, 9, 1e9, at(1));
        await held.reached;
        const next = await bench.lease(crawler, LATER, 'next');
        held.release();
        expect(await claimed).toEqual([]);
        expect(await claimDeliveries(store, next, 9, 1e9, LATER)).toHaveLength(1);
        expect(await bench.counters(crawler)).toMatchObject({ deliveriesPending: 1 });
      }),
    );
  }

  test(
    'before it commits what was delivered, loses that to its successor, who sends it again',
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
      const held = gate.hold(isCommit);
      const outcomes = claimed.map((each) => toSettlement(each, 'delivered'));
      const settled = stopped.queue.turn(first, { settled: outcomes }, at(1));
      await held.reached;
      const next = await bench.lease(crawler, LATER, 'next');
      expect(await bench.counters(crawler)).toMatchObject({ deliveriesPending: 3 });
      held.release();
      expect((await settled).settled).toEqual(['lost', 'lost']);
      const again = await claimDeliveries(store, next, 9, 1e9, LATER);
      expect(again).toHaveLength(3);
      await settleDeliveries(
        store,
        again.map((each) => toSettlement(each, 'delivered')),
        LATER,
      );
      expect(await bench.counters(crawler)).toMatchObject({ deliveriesPending: 0 });
    }),
  );

  test(
    'keeps its lease while its takeover is slow, and returns until when',
    withProcesses(async ({ bench, stopped, gate, c }) => {
      const crawler = await bench.crawler({ delivery: 'webhook' });
      const { crawlerId } = crawler;
      await bench.running(crawler, 1);
      const slow = gate.hold(commandOn('update', 'jobs', '"queued"'));
      // Renewed after 2 s. A busy machine has 4 s more to do it.
      const ttl = 6_000;
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
