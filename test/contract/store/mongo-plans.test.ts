import type { Document } from 'mongodb';
import { describe, expect, test } from 'vitest';
import { openMongoStore } from '../../../src/store/mongo/mongo-store.ts';
import { byLength } from '../../support/length.ts';
import { silentLogger } from '../../support/loggers.ts';
import { mongodbUri, testDatabase } from '../../support/mongodb.ts';
import { EXPIRES, makeRecord, toDelivery, toRetry, toSettlement, toStored } from './outcomes.ts';
import {
  at,
  claimDeliveries,
  claimJobs,
  createBench,
  finishJobs,
  LIMITS,
  makeJobs,
  renewLease,
  settleDeliveries,
} from './store-harness.ts';

const BACKLOG = byLength(20_000, 100_000);

interface Query {
  readonly collection: string;
  readonly filter: Document;
  readonly sort: Document;
  readonly limit: number;
}

/** What a command reads by; undefined for one that reads nothing. */
function readQueries(command: Document): Query[] {
  const [name, collection] = Object.entries(command)[0] as [string, string];
  const one = (filter: Document, sort: Document = {}, limit = 0) => ({
    collection,
    filter,
    sort,
    limit,
  });
  switch (name) {
    case 'find':
      return [
        one(command.filter as Document, command.sort as Document, Number(command.limit ?? 0)),
      ];
    case 'findAndModify':
      return [one(command.query as Document, command.sort as Document, 1)];
    case 'update':
      return (command.updates as Document[]).slice(0, 1).map((each) => one(each.q as Document));
    case 'delete':
      return (command.deletes as Document[]).slice(0, 1).map((each) => one(each.q as Document));
    case 'aggregate':
      return [one((command.pipeline as Document[])[0]?.$match as Document)];
    default:
      return [];
  }
}

describe.skipIf(mongodbUri === '')('on MongoDB', () => {
  test('with a long queue, every hot query reads by an index and little more than it returns', async () => {
    await using database = testDatabase();
    const uri = `${database.uri}?monitorCommands=true`;
    const { store, db } = await openMongoStore({ uri, logger: silentLogger });
    await using _closing = { [Symbol.asyncDispose]: () => store.close() };
    const bench = createBench({ store });
    const { accountId } = await bench.account();
    const [made, hook] = [
      await bench.crawler({ accountId }),
      await bench.crawler({ accountId, delivery: 'webhook' }),
    ];
    for (let n = 0; n < BACKLOG; n += 1_000) {
      const jobs = makeJobs(made, 1_000, {
        createdAt: at(n / 1_000),
        queueDeadline: at(90_000_000),
      });
      await store.queue.push(
        { crawlerId: made.crawlerId, accountId, jobs },
        { ...LIMITS, crawlerQueue: 2 * BACKLOG },
        at(0),
      );
    }
    await bench.push(makeJobs(hook, 3));

    const seen = new Map<string, Query>();
    db.client.on('commandStarted', ({ command }) => {
      for (const query of readQueries(command)) {
        seen.set(`${query.collection} ${JSON.stringify(toShape(query.filter))}`, query);
      }
    });
    const now = at(200);
    await bench.push(makeJobs(made, 1), now, { ...LIMITS, crawlerQueue: 2 * BACKLOG });
    const lease = await bench.lease(made, now);
    await renewLease(store, lease, 15_000, now);
    const { jobs } = await claimJobs(store, lease, 5, now);
    const [a, b, c] = jobs;
    if (a === undefined || b === undefined || c === undefined) throw new Error('nothing claimed');
    await finishJobs(store, [toStored(a), toRetry(b, at(300))], now, lease);
    await store.queue.deleteJob(made.crawlerId, c.rid, now);
    await store.queue.find(made.crawlerId, b.rid);
    await store.queue.overdue(now, 100);
    await store.queue.crawlersWithWorkDue(now, 100);
    await store.queue.release(lease, now);
    const hookLease = await bench.lease(hook, now);
    const posted = await claimJobs(store, hookLease, 2, now);
    await finishJobs(
      store,
      posted.jobs.map((job) => toDelivery(job)),
      now,
      hookLease,
    );
    const deliveries = await claimDeliveries(store, hookLease, 2, 1e6, now);
    await settleDeliveries(
      store,
      deliveries.map((each) => toSettlement(each, 'delivered')),
      now,
    );
    await store.crawlers.counters([made.crawlerId]);
    await store.crawlers.findByName(accountId, made.name);
    await store.crawlers.claimProbes(now, 60_000, 10);
    const scope = { accountId, tokenType: 'normal' } as const;
    await store.results.put(scope, makeRecord(a), now, EXPIRES);
    await store.results.get(scope, a.rid);
    await store.results.newest(scope, a.url);
    await store.results.rids(scope, { limit: 10, order: 'desc' });
    await store.results.totals(scope);
    const read = await store.results.following(scope, undefined, 2);
    await store.results.following({ ...scope, crawlerId: made.crawlerId }, read.place, 2);
    await store.results.removeUpTo(scope, { ...read.place, seq: 1 }, 2);
    const cookie = {
      name: 'a',
      value: '1',
      domain: 'a',
      path: '/',
      httpOnly: false,
      secure: false,
    };
    for (const name of ['one', 'two', 'one']) {
      await store.cookieSessions.change(scope, name, [{ set: [cookie], removed: [] }], now);
      await store.cookieSessions.open(scope, name, now);
    }
    const part = { limit: 5 };
    const { listings } = store;
    const waiting = await listings.jobs(made.crawlerId, 'waiting', part);
    await listings.jobs(made.crawlerId, 'waiting', { ...part, cursor: waiting.cursor ?? '' });
    await listings.jobs(made.crawlerId, 'retrying', part);
    const range = { from: at(0), to: at(300) };
    for (const filter of [
      {},
      { state: 'pending' },
      { state: 'failed' },
      { outcome: 'failed' },
      { range },
    ] as const) {
      await listings.deliveries(hook.crawlerId, filter, part);
    }
    for (const outcome of [undefined, 'failed'] as const) {
      await listings.results(scope, outcome, part);
      await listings.results({ ...scope, crawlerId: made.crawlerId }, outcome, part);
    }
    await listings.locate(a.rid);
    await listings.crawlers([accountId], 100);
    await listings.crawlers([accountId], 100, 'a');
    await store.stats.history([made.crawlerId], {});
    await store.maintain(now);

    expect(seen.size).toBeGreaterThan(30);
    const wanting: string[] = [];
    for (const [shape, query] of seen) {
      // The handful of documents about the whole service.
      if (
        ['removals', 'removed_accounts', 'accounts', 'counts'].includes(query.collection) &&
        isEmpty(query.filter)
      )
        continue;
      if (query.collection === 'crawlers' && isEmpty(query.filter)) continue;
      const collection = db.collection(query.collection);
      const cursor = collection.find(query.filter).sort(query.sort);
      const plan = await cursor.limit(query.limit).explain('executionStats');
      // A planner that uses statistics reads a small table from end to end, as it should.
      const isSmall = (await collection.estimatedDocumentCount()) < BACKLOG / 100;
      if (isSmall && JSON.stringify(plan).includes('"Seq Scan"')) continue;
      const fault = findFault(plan, query.filter);
      if (fault !== undefined) wanting.push(`${shape}: ${fault}`);
    }
    expect(wanting).toEqual([]);
    // The check itself finds what is read without an index.
    const unindexed = await db.collection('jobs').find({ url: 'x' }).explain('executionStats');
    expect(findFault(unindexed, { url: 'x' })).toBeDefined();
  });

  test('the other crawlers of a pace group are found by an index', async () => {
    await using database = testDatabase();
    const uri = `${database.uri}?monitorCommands=true`;
    const { store, db } = await openMongoStore({ uri, logger: silentLogger });
    await using _closing = { [Symbol.asyncDispose]: () => store.close() };
    const bench = createBench({ store });
    const politeness = { maxPerHost: 0, delayMs: 1_000, robotsTxt: false, group: 'shop' };
    const made = await bench.crawler({ politeness });
    const document = await db.collection('crawlers').findOne({ name: made.name });
    const of = (n: number) => ({
      ...document,
      _id: `copy-${n}` as never,
      name: `copy-${n}`,
      ...(n % 100 === 0 ? {} : { politeness: { ...politeness, group: `group-${n}` } }),
    });
    await db.collection('crawlers').insertMany(Array.from({ length: 5_000 }, (_, n) => of(n)));
    const filters: Document[] = [];
    db.client.on('commandStarted', ({ command }) => {
      for (const { filter } of readQueries(command)) {
        if ('politeness.group' in filter) filters.push(filter);
      }
    });

    await bench.lease(made, at(0));

    expect(filters).toHaveLength(1);
    for (const filter of filters) {
      const plan = await db.collection('crawlers').find(filter).explain('executionStats');
      expect(findFault(plan, filter)).toBeUndefined();
      expect(JSON.stringify(plan)).toMatch(/"(indexName|Index Name)":"group"/);
    }
  });
});

/**
 * The fault of a plan, if any. A server that does not report what it examined is judged by its
 * index alone.
 */
function findFault(plan: Document, filter: Document): string | undefined {
  const text = JSON.stringify(plan);
  const names = [...text.matchAll(/"(?:indexName|Index Name)":"(\w+)"/g)].map((each) => each[1]);
  const byId = '_id' in filter && (names.includes('_id_') || /IDHACK|EXPRESS/.test(text));
  const byIndex = byId || names.some((name) => name !== '_id_');
  const { totalDocsExamined = 0, nReturned = 0 } = (plan.executionStats ?? {}) as Document;
  const tooMany = Number(totalDocsExamined) > 10 + 3 * Number(nReturned);
  const fine = byIndex && !/COLLSCAN|"Seq Scan"/.test(text) && !tooMany;
  return fine ? undefined : `${totalDocsExamined} examined: ${text.slice(0, 400)}`;
}

function isEmpty(filter: Document | undefined): boolean {
  return Object.keys(filter ?? {}).length === 0;
}

function toShape(filter: unknown): unknown {
  if (Array.isArray(filter)) return filter.map(toShape);
  if (typeof filter !== 'object' || filter === null || filter instanceof Date) return 0;
  return Object.fromEntries(Object.entries(filter).map(([key, value]) => [key, toShape(value)]));
}
