import type { Db } from 'mongodb';
import { describe, expect, test } from 'vitest';
import { type Collections, toCollections } from '../../../src/store/mongo/collections.ts';
import { toJobDocument } from '../../../src/store/mongo/job-document.ts';
import { migrate } from '../../../src/store/mongo/migrations.ts';
import { openMongoStore } from '../../../src/store/mongo/mongo-store.ts';
import { resultDocument } from '../../../src/store/mongo/records.ts';
import { silentLogger } from '../../support/loggers.ts';
import { mongodbUri, testDatabase } from '../../support/mongodb.ts';
import { EXPIRES, makeRecord, toDelivery, toStored } from './outcomes.ts';
import {
  at,
  claimJobs,
  createBench,
  finishJobs,
  makeJobs,
  makeScreenshot,
  only,
  renewLease,
  type StoreBench,
} from './store-harness.ts';

const MINUTE = 60_000;

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
    'a push it did not count is left alone, then counted as far as it came',
    withDocuments(async ({ store, crawler, push, lease, counters }, c) => {
      const made = await crawler();
      await push(makeJobs(made, 3));
      const jobs = makeJobs(made, 2);
      const rids = jobs.map((job) => job.rid).sort();
      const entry = { id: 'dead.1', n: 5, at: at(0), first: rids[0] ?? '', last: rids[1] ?? '' };
      await c.crawlers.updateOne({ _id: made.crawlerId }, { $push: { pending: entry } });
      await c.jobs.insertMany(jobs.map((job) => toJobDocument(job, 'dead.1')));
      const held = await lease(made);
      expect((await claimJobs(store, held, 9, at(1))).jobs).toHaveLength(3);
      await store.queue.release(held, at(1));
      expect((await store.maintain(at(MINUTE / 2))).repaired).toBe(0);
      expect((await store.maintain(at(2 * MINUTE))).repaired).toBe(1);
      expect(await counters(made)).toMatchObject({ pushed: 5, waiting: 5 });
      const next = await lease(made, at(2 * MINUTE));
      expect((await claimJobs(store, next, 9, at(2 * MINUTE))).jobs).toHaveLength(5);
    }),
  );

  test(
    'an end it did not count is counted once',
    withDocuments(async ({ store, account, crawler, running, counters }, c) => {
      const { accountId } = await account();
      const made = await crawler({ accountId });
      const { lease, jobs } = await running(made, 2);
      const [job, other] = jobs;
      if (job === undefined || other === undefined) throw new Error('two jobs were pushed');
      const ended = { state: 'ended', from: 'running', end: 'completed', cbStatus: 200 } as const;
      const tombstone = { ...ended, billed: true, endedAt: at(0), by: 'dead', seq: 7 };
      await c.jobs.updateOne({ _id: job.rid }, { $set: tombstone });
      expect(await store.queue.find(made.crawlerId, job.rid)).toBeUndefined();
      expect((await store.maintain(at(2 * MINUTE))).repaired).toBe(1);
      const counted = { completed: 1, running: 1, pushed: 2 };
      expect(await counters(made)).toMatchObject(counted);
      // As if its process had counted it, and been stopped before the tombstone went.
      await c.jobs.insertOne({ ...toJobDocument(job, ''), ...tombstone, by: 'done' });
      await c.crawlers.updateOne({ _id: made.crawlerId }, { $set: { 'applied.done': 7 } });
      await store.maintain(at(3 * MINUTE));
      expect(await counters(made)).toMatchObject(counted);
      expect(await c.jobs.countDocuments({ _id: job.rid })).toBe(0);
      const days = (await store.stats.history([made.crawlerId], {})).get(made.crawlerId);
      expect(days).toMatchObject([{ pushed: 2, success: 1, billed: 1, byCbStatus: { 200: 1 } }]);
      expect(await finishJobs(store, [toStored(other)], at(4 * MINUTE), lease)).toMatchObject({
        verdicts: ['won'],
      });
    }),
  );

  test(
    'a claim it made after its lease was gone is taken back by who holds the lease now',
    withDocuments(async ({ store, crawler, push, lease, counters }, c) => {
      const made = await crawler();
      await push(makeJobs(made, 1));
      await lease(made, at(0), 'dead');
      const now = at(MINUTE);
      const held = await lease(made, now, 'alive');
      const stray = { state: 'running', epoch: held.epoch - 1 } as const;
      await c.jobs.updateMany({}, { $set: stray, $unset: { queued: 1 }, $inc: { attempt: 1 } });
      expect((await claimJobs(store, held, 1, now)).jobs).toEqual([]);
      await renewLease(store, held, MINUTE, now);
      expect((await claimJobs(store, held, 1, now)).jobs).toHaveLength(1);
      expect(await counters(made)).toMatchObject({ running: 1, waiting: 0 });
    }),
  );

  test(
    'a page whose job has not ended is not shown, and the job’s next end replaces it',
    withDocuments(async ({ store, crawler, running }, c) => {
      const made = await crawler();
      const { lease, jobs } = await running(made, 1);
      const job = only(jobs);
      const scope = { accountId: made.accountId, tokenType: 'normal' } as const;
      const origin = { claim: 0, mark: 'dead.1.0' };
      const record = makeRecord(job, { body: new Uint8Array([9]) });
      const early = { selection: scope, record, origin, now: at(0), expiresAt: EXPIRES };
      await c.results.insertOne(resultDocument(early));
      expect(await store.results.get(scope, job.rid)).toBeUndefined();
      expect(await store.results.newestByUrl(scope, job.url)).toBeUndefined();
      expect(await store.results.getMany(scope, [job.rid])).toEqual([]);
      expect(await finishJobs(store, [toStored(job)], at(1), lease)).toMatchObject({
        verdicts: ['won'],
      });
      const shown = await store.results.get(scope, job.rid);
      expect([...(shown?.body ?? [])]).toEqual([...makeRecord(job).body]);
    }),
  );

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
      await c.jobs.insertMany(makeJobs(gone, 2).map((job) => toJobDocument(job, 'stopped.1')));
      await store.maintain(at(2 * MINUTE));
      expect(await c.jobs.countDocuments({})).toBe(2);
      expect(await c.removals.countDocuments()).toBe(0);
      expect(await store.accounts.queued(accountId)).toBe(2);
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
      expect(await store.accounts.queued(accountId)).toBe(2);
    }),
  );
});

describe.skipIf(mongodbUri === '')('a database in MongoDB of an earlier program', () => {
  test(
    'is given sizes and indexes that know them, and counters by maintenance',
    withDocuments(async ({ store, account, crawler, running }, c, db) => {
      const { accountId } = await account();
      const made = await crawler({ accountId });
      const { lease, jobs } = await running(made, 1);
      await finishJobs(store, [toStored(only(jobs))], at(1), lease);
      const right = await store.accounts.usage(accountId);
      const gone = {
        limits: '',
        crawlers: '',
        concurrency: '',
        storedBytes: '',
        queuedBytes: '',
      } as const;
      await c.accounts.updateOne({ _id: accountId }, { $unset: gone });
      await c.results.updateMany({}, { $unset: { size: '' } });
      await c.results.dropIndex('expires');
      await c.results.createIndex({ expiresAt: 1 }, { name: 'expiry', expireAfterSeconds: 0 });
      await c.results.createIndex({ scope: 1, storedAt: 1, _id: 1 }, { name: 'time' });
      await db
        .collection<{ _id: string; version: number }>('meta')
        .updateOne({ _id: 'schema' }, { $set: { version: 1 } });
      await migrate(db, c);
      expect(await c.results.indexExists(['time', 'expiry'])).toBe(false);
      expect(await c.results.indexExists(['time_size', 'expires'])).toBe(true);
      expect(await c.results.findOne({}, { projection: { size: 1 } })).toMatchObject({ size: 10 });
      await store.maintain(at(2));
      expect(await store.accounts.usage(accountId)).toEqual(right);
      expect((await store.accounts.get(accountId))?.limits).toEqual({});
    }),
  );

  test(
    'gets the number of purges of each queue, and its jobs are found by the new indexes',
    withDocuments(async ({ store, crawler, push, lease, counters }, c, db) => {
      const made = await crawler();
      await push(makeJobs(made, 3));
      const fields = { moves: '', recounts: '', purges: '', runningBytes: '' } as const;
      await c.crawlers.updateMany({}, { $unset: fields });
      await c.jobs.updateMany({}, { $unset: { gen: '' } });
      await c.jobs.createIndex({ crawlerId: 1, due: 1, _id: 1 }, { name: 'due' });
      await db
        .collection<{ _id: string; version: number }>('meta')
        .updateOne({ _id: 'schema' }, { $set: { version: 2 } });
      await migrate(db, c);
      expect(await c.jobs.indexExists('due')).toBe(false);
      const held = await lease(made);
      expect((await claimJobs(store, held, 1, at(0))).jobs).toHaveLength(1);
      expect(await store.queue.purge(made.crawlerId, at(1))).toBe(2);
      expect(await counters(made)).toMatchObject({ running: 1, waiting: 0, purged: 2 });
    }),
  );
});
