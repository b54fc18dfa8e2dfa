import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { describe, expect, test } from 'vitest';
import {
  type Batch,
  BatchService,
  BatchState,
} from '../../gen/queuedcrawler/v1/batch_service_pb.ts';
import { NORMAL } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { mongodbUri, testDatabase } from '../support/mongodb.ts';
import { startProcess } from '../support/service-process.ts';
import { startSite } from '../support/site.ts';

describe.skipIf(mongodbUri === '')('a batch on two processes', () => {
  test('is watched at one while it is pushed, crawled and closed through the other, until it is done', async () => {
    await using database = testDatabase();
    await using site = await startSite();
    // The second has no part in the crawls, so all that it tells has come through the database.
    await using worker = await startProcess({ MONGODB_URI: database.uri });
    await using watcher = await startProcess({ MONGODB_URI: database.uri, ROLE: 'api' });
    const shop = await createCrawler(worker, 'shop', { max_retries: 0 });
    const urlsOf = (from: number, count: number) =>
      Array.from({ length: count }, (_, n) => `${site.url}/page/${from + n}?delay=100`);
    const push = (urls: readonly string[]) =>
      shop.post('push_batch', { items: urls.map((url) => ({ url, batch: 'list' })) });
    await push([...urlsOf(0, 20), `${site.url}/status/500`]);

    const client = createClient(BatchService, createGrpcTransport({ baseUrl: watcher.url }));
    const told: Batch[] = [];
    const watched = (async () => {
      for await (const { batch } of client.watchBatch({
        token: NORMAL,
        name: 'shop',
        batch: 'list',
      })) {
        if (batch !== undefined) told.push(batch);
      }
    })();
    // A batch that nobody has closed is not done, although nothing is left of it.
    await eventually(() => {
      expect(told.at(-1)).toMatchObject({ state: BatchState.OPEN, completed: 20n, failed: 1n });
    });
    await push(urlsOf(20, 20));
    await shop.post('batches/list/close');
    await watched;
    expect(told.at(-1)).toMatchObject({
      state: BatchState.COMPLETED,
      accepted: 41n,
      completed: 40n,
      failed: 1n,
      failures: [{ reason: 'target_error', count: 1n }],
      percent: 100,
    });
    for (const each of told) {
      const { waiting, retrying, running, completed, failed, removed } = each;
      expect(waiting + retrying + running + completed + failed + removed).toBe(each.accepted);
    }
    expect(site.hits()).toBe(41);
  });
});
