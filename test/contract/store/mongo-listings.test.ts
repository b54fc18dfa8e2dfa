import { describe, expect, test } from 'vitest';
import { LISTING_SCAN } from '../../../src/store/listing-store.ts';
import type { DeliveryDocument } from '../../../src/store/mongo/collections.ts';
import { toCollections } from '../../../src/store/mongo/collections.ts';
import { toJobDocument } from '../../../src/store/mongo/job-document.ts';
import { openMongoStore } from '../../../src/store/mongo/mongo-store.ts';
import { deliveryDocument, resultDocument } from '../../../src/store/mongo/records.ts';
import { silentLogger } from '../../support/loggers.ts';
import { mongodbUri, testDatabase } from '../../support/mongodb.ts';
import { EXPIRES, makeRecord } from './outcomes.ts';
import { at, createBench, makeJob } from './store-harness.ts';

const FAILED = { cbStatus: 522, details: { failure: 'timeout' } };

describe.skipIf(mongodbUri === '')('lists of many rows on MongoDB', () => {
  test('a part looks through a bounded number of rows, and through that many', async () => {
    await using database = testDatabase();
    const { store, db } = await openMongoStore({ uri: database.uri, logger: silentLogger });
    await using _closing = { [Symbol.asyncDispose]: () => store.close() };
    const bench = createBench({ store });
    const c = toCollections(db);
    const { accountId } = await bench.account();
    const made = await bench.crawler({ accountId });
    const hook = await bench.crawler({ accountId, delivery: 'webhook' });
    const rows = Array.from({ length: LISTING_SCAN }, (_, n) => n);
    const url = (n: number): string => `https://example.com/${n}`;
    const delivery = (n: number, state: DeliveryDocument['state']): DeliveryDocument => ({
      ...deliveryDocument({
        crawlerId: hook.crawlerId,
        record: makeRecord(makeJob(hook, { url: url(n) })),
        callbackHeaders: [],
        due: at(n),
        keptAt: at(n),
        epoch: undefined,
        expiresAt: EXPIRES,
      }),
      state,
    });
    const tried = rows.map((n) => {
      const job = toJobDocument(makeJob(made));
      return { ...job, state: 'retrying' as const, due: at(1_000 + n) };
    });
    const later = rows.map(() => toJobDocument(makeJob(made, { notBefore: at(900_000) })));
    await c.jobs.insertMany([...tried, ...later]);
    await c.deliveries.insertMany([
      ...rows.map((n) => delivery(n, 'due')),
      ...rows.map((n) => delivery(n, 'failed')),
    ]);
    await c.results.insertMany(
      rows.map((n) => {
        const record = makeRecord(makeJob(made), FAILED);
        return resultDocument({ selection: made, record, keptAt: at(n), expiresAt: EXPIRES });
      }),
    );

    const part = { limit: 5 };
    const { crawlerId } = made;
    const { listings } = store;
    const batch = { accountId, tokenType: 'normal', crawlerId, batchId: 'a' } as const;
    const scheduled = { scheduledAfter: at(900) };
    for (const read of [
      () => listings.jobs(crawlerId, scheduled, part),
      () =>
        listings.deliveries(hook.crawlerId, { state: 'failed', outcome: 'failed' as const }, part),
      () => listings.failedCrawls({ ...batch, delivers: false }, part),
    ]) {
      const found = await read();
      expect(found.rows).toEqual([]);
      expect(found.cursor).toBeDefined();
    }
    const { cursor = '' } = await listings.jobs(crawlerId, scheduled, part);
    expect((await listings.jobs(crawlerId, scheduled, { ...part, cursor })).rows).toHaveLength(5);
    const matches = { urlContains: url(1_500) };
    const pending = await listings.deliveries(hook.crawlerId, { state: 'pending', matches }, part);
    expect(pending.rows.map(({ pushedUrl }) => pushedUrl)).toEqual([url(1_500)]);
  });

  test('a queue is counted by host in one read of it', async () => {
    await using database = testDatabase();
    const uri = `${database.uri}?monitorCommands=true`;
    const { store, db } = await openMongoStore({ uri, logger: silentLogger });
    await using _closing = { [Symbol.asyncDispose]: () => store.close() };
    const bench = createBench({ store });
    const made = await bench.crawler();
    const urls = ['https://a.example/1', 'https://b.example/1', 'https://b.example/2'];
    await bench.push(urls.map((url) => makeJob(made, { url })));
    let reads = 0;
    db.client.on('commandStarted', ({ command }) => {
      if (command.aggregate === 'jobs') reads += 1;
    });
    const { hosts, total } = await store.hosts.longest(made.crawlerId, 1);
    expect(hosts).toEqual([{ host: 'b.example', queued: 2, nextDueAt: at(0) }]);
    expect(total).toBe(2);
    expect(reads).toBe(1);
  });
});
