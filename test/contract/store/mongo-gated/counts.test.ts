import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
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
  settleDeliveries,
  TTL_MS,
} from '../store-harness.ts';
import { isCommit, withProcesses } from './gated.ts';

const MINUTE = 60_000;

describe.skipIf(mongodbUri === '')('counters', () => {
  test(
    'count the removal of a job once, at the same time as the release of its crawler',
    withProcesses(async ({ bench, stopped, pusher, gate, c }) => {
      const crawler = await bench.crawler();
      const { crawlerId } = crawler;
      await bench.push(makeJobs(crawler, 1));
      const lease = await stopped.queue.acquire(crawlerId, 'stopped', TTL_MS, at(0));
      if (lease === undefined) throw new Error('no lease');
      const job = await c.jobs.findOne({ crawlerId });
      const commit = gate.hold(isCommit);
      const removal = pusher.queue.deleteJob(crawlerId, job?._id ?? '', at(1));
      await commit.reached;
      await stopped.queue.release(lease, at(2));
      commit.release();
      expect(await removal).toBe(true);
      expect(await bench.counters(crawler)).toMatchObject({ waiting: 0, pushed: 1, deleted: 1 });
    }),
  );

  test(
    'take the expiry of a delivery off the pending ones once',
    withProcesses(async ({ bench, stopped, gate }) => {
      const crawler = await bench.crawler({ delivery: 'webhook' });
      const { lease, jobs } = await bench.running(crawler, 2);
      const [old, young] = jobs;
      if (old === undefined || young === undefined) throw new Error('no jobs');
      const ends = [toDelivery(old, {}, { expiresAt: at(MINUTE) }), toDelivery(young)];
      await finishJobs(bench.store, ends, at(0), lease);
      const count = gate.hold(commandOn('update', 'counts', 'deliveriesPending'));
      const maintained = stopped.maintain(at(2 * MINUTE));
      await count.reached;
      await bench.lease(crawler, at(2 * MINUTE), 'next');
      expect(await bench.counters(crawler)).toMatchObject({ deliveriesPending: 2 });
      count.release();
      await maintained;
      expect(await bench.counters(crawler)).toMatchObject({ deliveriesPending: 1 });
    }),
  );

  test(
    'of a day have no URL as purged and as deleted',
    withProcesses(async ({ bench, stopped, pusher, gate }) => {
      const crawler = await bench.crawler();
      const { crawlerId } = crawler;
      const { outcomes } = await bench.push(makeJobs(crawler, 2));
      const [pushed] = outcomes;
      if (pushed === undefined || !('rid' in pushed)) throw new Error('no rid');
      const sweep = gate.hold(commandOn('delete', 'jobs'));
      const enlisting = gate.hold(commandOn('update', 'counts'));
      const deleting = stopped.queue.deleteJob(crawlerId, pushed.rid, at(1));
      await enlisting.reached;
      const purging = pusher.queue.purge(crawlerId, at(1));
      await sweep.reached;
      enlisting.release();
      expect(await deleting).toBe(false);
      sweep.release();
      expect(await purging).toBe(2);
      const days = await bench.store.stats.history([crawlerId], {});
      expect(days.get(crawlerId)).toMatchObject([{ pushed: 2, purged: 2, deleted: 0 }]);
      expect(await bench.counters(crawler)).toMatchObject({ pushed: 2, purged: 2, deleted: 0 });
    }),
  );

  test(
    'of an account have what its process is writing when they are read',
    withProcesses(async ({ bench, stopped, gate }) => {
      const crawler = await bench.crawler();
      const { accountId, crawlerId } = crawler;
      const { outcomes } = await bench.push(makeJobs(crawler, 1));
      expect((await bench.store.accounts.usage(accountId))?.queued).toBe(1);
      const [pushed] = outcomes;
      if (pushed === undefined || !('rid' in pushed)) throw new Error('no rid');
      const write = gate.hold(commandOn('update', 'accounts'));
      await stopped.queue.deleteJob(crawlerId, pushed.rid, at(1));
      const first = stopped.accounts.usage(accountId);
      await write.reached;
      const second = stopped.accounts.usage(accountId);
      expect((await bench.store.accounts.usage(accountId))?.queued).toBe(1);
      write.release();
      expect(await Promise.all([first, second])).toMatchObject([{ queued: 0 }, { queued: 0 }]);
    }),
  );

  test(
    'of an account have what its process is writing when a push takes room',
    withProcesses(async ({ bench, stopped, gate }) => {
      const crawler = await bench.crawler();
      const { accountId, crawlerId } = crawler;
      const limits = { ...LIMITS, accountQueue: 1 };
      const push = async (count: number) => {
        const request = { crawlerId, accountId, jobs: makeJobs(crawler, count) };
        const { outcomes } = await stopped.queue.push(request, limits, at(1));
        return { outcomes, rids: request.jobs.map(({ rid }) => ({ rid })) };
      };
      await push(2);
      const write = gate.hold(commandOn('update', 'accounts'));
      await stopped.queue.purge(crawlerId, at(1));
      const usage = stopped.accounts.usage(accountId);
      await write.reached;
      const pushing = push(2);
      // Without the wait it would be refused by now.
      await Promise.race([pushing, sleep(300)]);
      write.release();
      const { outcomes, rids } = await pushing;
      expect(outcomes).toEqual(rids);
      await usage;
    }),
  );

  test(
    'know nothing of a turn that fails, and a clean-up that fails fails nobody',
    withProcesses(async ({ bench, stopped, gate, c }) => {
      const crawler = await bench.crawler({ delivery: 'webhook' });
      await bench.push(makeJobs(crawler, 2));
      const lease = await stopped.queue.acquire(crawler.crawlerId, 'stopped', TTL_MS, at(0));
      if (lease === undefined) throw new Error('no lease');
      const { jobs } = await claimJobs(stopped, lease, 2, at(0));
      const ends = jobs.map((job) => toDelivery(job));
      const back = gate.refuse(commandOn('insert', 'deliveries'));
      await expect(finishJobs(stopped, ends, at(0), lease)).rejects.toMatchObject({
        kind: 'unavailable',
      });
      back();
      expect(await bench.counters(crawler)).toMatchObject({ running: 2, deliveriesPending: 0 });
      const cleansUp = commandOn('update', 'accounts');
      let failed = 0;
      const away = gate.refuse((command) => cleansUp(command) && (failed += 1) > 0);
      expect(await finishJobs(stopped, ends, at(0), lease)).toMatchObject({
        verdicts: ['won', 'won'],
      });
      // The driver sends it twice.
      await eventually(() => expect(failed).toBeGreaterThanOrEqual(2));
      away();
      expect(await claimDeliveries(stopped, lease, 9, 1e9, at(0))).toHaveLength(2);
      const counted = { completed: 2, deliveriesPending: 2 };
      expect(await bench.counters(crawler)).toMatchObject(counted);
      expect(await c.jobs.countDocuments()).toBe(0);
    }),
  );

  for (const times of [1, 2, 6]) {
    test(
      `count a turn once whose commit is not answered ${times} times`,
      withProcesses(async ({ bench, stopped, gate }) => {
        const crawler = await bench.crawler();
        await bench.push(makeJobs(crawler, 2));
        const lease = await stopped.queue.acquire(crawler.crawlerId, 'stopped', TTL_MS, at(0));
        if (lease === undefined) throw new Error('no lease');
        const { jobs } = await stopped.queue.turn(lease, { look: { limit: 9 } }, at(0));
        const [first, second] = jobs;
        if (first === undefined || second === undefined) throw new Error('two jobs were pushed');
        const started = [{ rid: first.rid, attempt: 1, startedAt: at(0) }];
        const ended = [{ ...toStored({ ...second, attempt: 1 }), startedAt: at(0) }];
        for (let n = 0; n < times; n++) gate.loseAnswer(isCommit);
        const turn = await stopped.queue
          .turn(lease, { started, ended }, at(0))
          .catch(() => undefined);
        // The run takes a turn again that the database does not answer.
        if (turn === undefined) {
          expect((await stopped.queue.turn(lease, { started }, at(0))).lost).toEqual([]);
        } else expect(turn).toMatchObject({ lost: [], verdicts: ['won'] });
        const counted = { running: 1, waiting: 0, completed: 1, pushed: 2 };
        expect(await bench.counters(crawler)).toMatchObject(counted);
        const job = { ...first, attempt: 1 };
        expect(await finishJobs(stopped, [toStored(job)], at(0), lease)).toMatchObject({
          verdicts: ['won'],
        });
        await eventually(async () =>
          expect((await bench.store.accounts.usage(crawler.accountId))?.queued).toBe(0),
        );
      }),
    );
  }

  for (const [first, second] of [
    [false, true],
    [true, false],
  ] as const) {
    test(
      `have one delivery that was ${first ? 'held' : 'due'} in a turn that failed and is ${second ? 'held' : 'due'} in the next one`,
      withProcesses(async ({ bench, stopped, gate }) => {
        const crawler = await bench.crawler({ delivery: 'webhook' });
        await bench.push(makeJobs(crawler, 1));
        const lease = await stopped.queue.acquire(crawler.crawlerId, 'stopped', TTL_MS, at(0));
        if (lease === undefined) throw new Error('no lease');
        const job = only((await claimJobs(stopped, lease, 1, at(0))).jobs);
        const back = gate.refuse(commandOn('update', 'counts', '"tx"'));
        const failed = finishJobs(stopped, [toDelivery(job, {}, { held: first })], at(1), lease);
        await expect(failed).rejects.toMatchObject({ kind: 'unavailable' });
        back();
        const end = toDelivery(job, {}, { held: second });
        const { verdicts, held } = await finishJobs(stopped, [end], at(2), lease);
        expect(verdicts).toEqual(['won']);
        const claimed = await claimDeliveries(stopped, lease, 9, 1e9, at(3));
        const delivery = only([...held, ...claimed]);
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
});
