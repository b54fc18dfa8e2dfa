import type { Db } from 'mongodb';
import { describe, expect, test } from 'vitest';
import { type Collections, toCollections } from '../../../src/store/mongo/collections.ts';
import { toJobDocument } from '../../../src/store/mongo/job-document.ts';
import { migrate } from '../../../src/store/mongo/migrations.ts';
import { openMongoStore } from '../../../src/store/mongo/mongo-store.ts';
import { deliveryDocument } from '../../../src/store/mongo/records.ts';
import { createTransactions } from '../../../src/store/mongo/transactions.ts';
import { createRecordingLogger, silentLogger } from '../../support/loggers.ts';
import { mongodbUri, testDatabase } from '../../support/mongodb.ts';
import { EXPIRES, makeRecord, toDelivery, toStored } from './outcomes.ts';
import {
  at,
  createBench,
  finishJobs,
  makeJobs,
  makeScreenshot,
  only,
  type StoreBench,
} from './store-harness.ts';

const MINUTE = 60_000;

const transactionsOf = (db: Db) =>
  createTransactions(() => db.client.startSession(), db.client.db('admin'));

/** A store, and the documents behind it as a process that died may have left them. */
function withDocuments(use: (bench: StoreBench, c: Collections, db: Db) => Promise<void>) {
  return async () => {
    await using database = testDatabase();
    const { store, db } = await openMongoStore({ uri: database.uri, logger: silentLogger });
    await using _closing = { [Symbol.asyncDispose]: () => store.close() };
    await use(createBench({ store }), toCollections(db), db);
  };
}

describe.skipIf(mongodbUri === '')('what a process that died left in MongoDB', () => {
  test(
    'a removal it did not finish is finished, and a total it left wrong is put right',
    withDocuments(async ({ store, account, crawler, push }, c) => {
      const { accountId } = await account();
      const [gone, kept] = [await crawler({ accountId }), await crawler({ accountId })];
      await push(makeJobs(gone, 3));
      await push(makeJobs(kept, 2));
      await c.removals.insertOne({ _id: gone.crawlerId });
      await c.crawlers.deleteOne({ _id: gone.crawlerId });
      await store.maintain(at(0));
      expect(await c.jobs.countDocuments({})).toBe(2);
      // What a stopped process brings after that goes, too.
      await c.jobs.insertMany(makeJobs(gone, 2).map((job) => toJobDocument(job)));
      await store.maintain(at(2 * MINUTE));
      expect(await c.jobs.countDocuments({})).toBe(2);
      expect(await c.removals.countDocuments()).toBe(0);
      expect((await store.accounts.usage(accountId))?.queued).toBe(2);
    }),
  );

  test(
    'an account that it removed keeps no cookies and no proxies',
    withDocuments(async ({ store, account }, c) => {
      const { accountId } = await account();
      const scope = { accountId, tokenType: 'javascript' } as const;
      await store.proxyPools.replace(accountId, 0, 'sealed');
      await store.cookieSessions.change(scope, 's', [{ set: [], removed: [] }], at(0));
      await c.removedAccounts.insertOne({ _id: accountId, removedAt: at(0) });
      await c.accounts.deleteOne({ _id: accountId });
      expect(await c.cookieSessions.countDocuments()).toBe(1);
      await store.maintain(at(1));
      expect(await c.proxyPools.countDocuments()).toBe(0);
      expect(await c.cookieSessions.countDocuments()).toBe(0);
    }),
  );

  test(
    'counters of an account that a crash left wrong are put right',
    withDocuments(async ({ store, account, crawler, running, push }, c) => {
      const { accountId } = await account();
      const made = await crawler({ accountId, concurrency: 7 });
      await crawler({ accountId, name: '.async-normal' });
      const hook = await crawler({ accountId, delivery: 'webhook', concurrency: 2 });
      const { lease, jobs } = await running(made, 3);
      await finishJobs(store, [toStored(only(jobs.slice(0, 1)))], at(1), lease);
      const hooked = await running(hook, 1);
      await finishJobs(store, [toDelivery(only(hooked.jobs))], at(1), hooked.lease);
      await push(makeJobs(made, 2));
      await store.screenshots.put(makeScreenshot(accountId, 100));
      const right = await store.accounts.usage(accountId);
      expect(right).toMatchObject({ crawlers: 2, concurrency: 9 });
      const wrong = { crawlers: 5, concurrency: -3, storedBytes: 1e12, queuedBytes: 77, queued: 4 };
      await c.accounts.updateOne({ _id: accountId }, { $inc: wrong });
      await store.maintain(at(2));
      expect(await store.accounts.usage(accountId)).toEqual(right);
      expect((await store.accounts.usage(accountId))?.queued).toBe(2);
    }),
  );
});

describe.skipIf(mongodbUri === '')('a database in MongoDB of an earlier program', () => {
  test(
    'has what was half done settled: uncounted ends and pushes, early records, staged deliveries, days',
    withDocuments(async ({ store, crawler, push, running, counters }, c, db) => {
      const made = await crawler({ delivery: 'webhook' });
      const { crawlerId, accountId } = made;
      const { jobs, lease } = await running(made, 4);
      const [ended, counted, early, released] = jobs;
      if (ended === undefined || counted === undefined) throw new Error('four jobs were pushed');
      if (early === undefined || released === undefined) throw new Error('four jobs were pushed');
      await push(makeJobs(made, 2));
      const old = {
        live: 5,
        liveBytes: 0,
        running: 3,
        runningBytes: 0,
        retrying: 0,
        purges: 0,
        completed: 1,
        failed: 0,
        deleted: 2,
        purged: 3,
        deliveriesPending: 1,
        applied: { done: 7 },
        pending: [{ id: 'dead.1', n: 1 }],
        moves: 9,
        recounts: 1,
        days: { '2040-05-17': { pushed: 11, deleted: 2, purged: 3, success: 1 } },
        moving: { '2040-05-01': { id: 'move', counts: { pushed: 5 } } },
      };
      await c.crawlers.updateOne({ _id: crawlerId }, { $set: old as object });
      await c.counts.deleteMany({});
      await c.jobs.updateMany({}, { $unset: { host: '', priority: '' } });
      const tombstone = { state: 'ended', from: 'running', end: 'completed', cbStatus: 200 };
      const jobsOf = db.collection<{ _id: string }>('jobs');
      const end = (rid: string, by: string) =>
        jobsOf.updateOne({ _id: rid }, { $set: { ...tombstone, by, seq: 7, endedAt: at(0) } });
      await end(ended.rid, 'dead');
      await end(counted.rid, 'done');
      const made2 = (job: typeof early, state: string) => ({
        ...deliveryDocument({
          crawlerId,
          record: makeRecord(job),
          callbackHeaders: [],
          due: at(0),
          keptAt: at(0),
          expiresAt: EXPIRES,
          epoch: undefined,
        }),
        state,
      });
      await c.deliveries.insertMany([made2(ended, 'staged'), made2(early, 'sending')] as never);
      await db.collection('push_requests').insertOne({ crawlerId, rids: ['a'], outcomes: null });
      await c.jobs.createIndex({ endedAt: 1 }, { name: 'ended' });
      const meta = db.collection<{ _id: string; version: number }>('meta');
      await meta.updateOne({ _id: 'schema' }, { $set: { version: 4 } });
      const logger = createRecordingLogger();
      await migrate(db, c, transactionsOf(db), logger, async () => undefined);
      const message =
        'the database is upgraded; a large one takes minutes, and a stop waits for the step';
      expect(logger.lines).toEqual([
        { level: 'info', fields: { version: 5, of: 7 }, message },
        { level: 'info', fields: { version: 7, of: 7 }, message },
      ]);
      expect(await counters(made)).toMatchObject({
        waiting: 2,
        running: 2,
        completed: 2,
        deleted: 2,
        purged: 3,
        deliveriesPending: 1,
        pushed: 11,
      });
      expect(await c.deliveries.find().toArray()).toMatchObject([{ _id: ended.rid, state: 'due' }]);
      expect(await c.jobs.countDocuments()).toBe(4);
      expect(await c.jobs.indexExists('ended')).toBe(false);
      const host = new URL(released.url).host;
      expect(await c.jobs.findOne({ _id: released.rid })).toMatchObject({ host, priority: 5 });
      expect(await c.pushRequests.countDocuments()).toBe(0);
      const days = (await store.stats.history([crawlerId], {})).get(crawlerId);
      expect(days?.map(({ date, pushed, success }) => [date, pushed, success])).toContainEqual([
        '2040-05-01',
        5,
        0,
      ]);
      // Running jobs continue.
      await finishJobs(store, [toDelivery(released)], at(1), lease);
      expect(await counters(made)).toMatchObject({ running: 1, completed: 3 });
      await store.queue.purge(crawlerId, at(2));
      expect(await counters(made)).toMatchObject({ waiting: 0, purged: 5 });
      await store.maintain(at(3));
      expect((await store.accounts.usage(accountId))?.queued).toBe(0);
    }),
  );
});
