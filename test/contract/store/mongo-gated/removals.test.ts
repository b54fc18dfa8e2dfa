import { describe, expect, test } from 'vitest';
import { commandOn } from '../../../support/mongo-gate.ts';
import { mongodbUri } from '../../../support/mongodb.ts';
import { toDelivery, toSettlement, toStored } from '../outcomes.ts';
import { at, claimDeliveries, finishJobs, makeJobs, settleDeliveries } from '../store-harness.ts';
import { withProcesses } from './gated.ts';

const isDelete = commandOn('delete', 'jobs');

describe.skipIf(mongodbUri === '')('a purge that is stopped while it removes jobs', () => {
  for (const mode of ['storage', 'webhook'] as const) {
    test(
      `leaves what crawls that ended during it have brought: ${mode}`,
      withProcesses(async ({ bench, stopped, gate, c }) => {
        const { store } = bench;
        const crawler = await bench.crawler({ delivery: mode });
        const { crawlerId } = crawler;
        await bench.push(makeJobs(crawler, 3));
        const lease = await bench.lease(crawler);
        const { jobs } = await store.queue.turn(lease, { look: { limit: 9 } }, at(0));
        const removing = gate.hold(isDelete);
        const purging = stopped.queue.purge(crawlerId, at(1));
        await removing.reached;
        const ends = jobs.map((job) => {
          const crawled = { ...job, attempt: 1 };
          const end = mode === 'storage' ? toStored(crawled) : toDelivery(crawled);
          return { ...end, startedAt: at(0) };
        });
        const { verdicts } = await finishJobs(store, ends, at(1), lease);
        await store.maintain(at(2));
        removing.release();
        await purging;
        await store.maintain(at(3));
        const won = verdicts.filter((each) => each === 'won').length;
        const records = mode === 'storage' ? c.results : c.deliveries;
        expect(await records.countDocuments()).toBe(won);
        expect(await bench.counters(crawler)).toMatchObject({
          pushed: 3,
          completed: won,
          purged: 3 - won,
          waiting: 0,
          deliveriesPending: mode === 'storage' ? 0 : won,
        });
        expect(await c.jobs.countDocuments()).toBe(0);
      }),
    );
  }
});

describe.skipIf(mongodbUri === '')('a replay whose process dies on the way', () => {
  for (const command of ['update', 'findAndModify'] as const) {
    test(
      `has done all of it or nothing: before its ${command} of the crawler`,
      withProcesses(async ({ bench, stopped, gate }) => {
        const { store } = bench;
        const crawler = await bench.crawler({ delivery: 'webhook' });
        const { crawlerId } = crawler;
        const { lease, jobs } = await bench.running(crawler, 3);
        await finishJobs(
          store,
          jobs.map((job) => toDelivery(job)),
          at(0),
          lease,
        );
        const claimed = await claimDeliveries(store, lease, 9, 1e9, at(0));
        await settleDeliveries(
          store,
          claimed.map((each) => toSettlement(each, 'failed')),
          at(0),
        );
        await store.queue.release(lease, at(0));
        expect(await bench.counters(crawler)).toMatchObject({ deliveriesPending: 0 });
        const which = { rids: jobs.map(({ rid }) => rid) };
        const refused = gate.refuse(
          (sent) => sent[command] !== undefined && sent[command] !== 'deliveries',
        );
        await stopped.deliveries.replay(crawlerId, which, at(1)).catch(() => undefined);
        refused();
        const states = await Promise.all(
          jobs.map(async ({ rid }) => (await store.deliveries.get(crawlerId, rid))?.state),
        );
        const pending = states.filter((each) => each === 'pending').length;
        expect(await bench.counters(crawler)).toMatchObject({ deliveriesPending: pending });
        const due = await store.queue.crawlersWithWorkDue(at(2), 9);
        expect(due).toEqual(pending === 0 ? [] : [crawlerId]);
        expect(await store.deliveries.replay(crawlerId, which, at(3))).toBe(3);
        const next = await bench.lease(crawler, at(4));
        const again = await claimDeliveries(store, next, 9, 1e9, at(4));
        await settleDeliveries(
          store,
          again.map((each) => toSettlement(each, 'delivered')),
          at(4),
        );
        expect(await bench.counters(crawler)).toMatchObject({ deliveriesPending: 0 });
      }),
    );
  }
});
