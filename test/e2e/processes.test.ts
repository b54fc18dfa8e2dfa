import { MongoClient } from 'mongodb';
import { describe, expect, test } from 'vitest';
import { NORMAL } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { isLong } from '../support/length.ts';
import { mongodbUri, testDatabase } from '../support/mongodb.ts';
import { startReceiver } from '../support/receiver.ts';
import { readMetric, type ServiceProcess, startProcess } from '../support/service-process.ts';
import { startSite } from '../support/site.ts';

async function push(service: ServiceProcess, name: string, urls: string[]): Promise<string[]> {
  const items = urls.map((url) => ({ url }));
  const reply = await service.rest('POST', `/crawler/${NORMAL}/${name}/push_batch`, { items });
  return reply.json.results.map((result: { rid: string }) => result.rid);
}

async function stats(service: ServiceProcess) {
  const { json } = await service.rest('GET', `/crawler/${NORMAL}/stats`);
  return json;
}

/** Crawls that a process has ended with a result. */
const crawled = (service: ServiceProcess) => readMetric(service, 'queued_crawler_crawls_total');

/** Waits until each of two processes has looked for others since both were there. */
async function untilAcquainted(databaseUri: string): Promise<void> {
  await using client = await MongoClient.connect(databaseUri);
  const processes = client.db().collection('agenda_processes');
  let both: Date | undefined;
  await eventually(async () => {
    expect(await processes.countDocuments()).toBe(2);
    both ??= new Date();
    expect(await processes.countDocuments({ at: { $gt: both } })).toBe(2);
  });
}

describe.skipIf(mongodbUri === '')('processes on one database', () => {
  test('share the work: pushes to any, each crawler at its concurrency in total, the same numbers from each', async () => {
    await using database = testDatabase();
    await using receiver = await startReceiver();
    await using one = await startSite();
    await using two = await startSite();
    const env = { MONGODB_URI: database.uri };
    await using first = await startProcess(env);
    await using second = await startProcess(env);
    await using third = await startProcess(env);
    const services = [first, second, third];
    const crawlers = { store: one, hook: two };
    await first.rest('POST', `/crawler/${NORMAL}`, { name: 'store', concurrency: 4 });
    await second.rest('POST', `/crawler/${NORMAL}`, {
      name: 'hook',
      callback_url: receiver.url,
      concurrency: 3,
    });
    const pushed = new Map<string, string[]>();
    for (const [name, site] of Object.entries(crawlers)) {
      const rids = await Promise.all(
        services.map((service, n) =>
          push(
            service,
            name,
            Array.from({ length: 60 }, (_, i) => `${site.url}/page/${n}-${i}?delay=15`),
          ),
        ),
      );
      pushed.set(name, rids.flat());
    }
    await eventually(async () => {
      expect(await stats(third)).toMatchObject({
        completed: 360,
        failed: 0,
        queue: { waiting: 0, retrying: 0 },
        concurrency: { running: 0 },
      });
      expect(new Set(receiver.deliveries.map((post) => post.rid))).toEqual(
        new Set(pushed.get('hook')),
      );
    });
    expect(one.maxConcurrent).toBe(4);
    expect(two.maxConcurrent).toBe(3);
    expect(one.hits() + two.hits()).toBe(360);
    const rids = await second.rest('GET', `/storage/rids?token=${NORMAL}&limit=10000`);
    expect(new Set(rids.json)).toEqual(new Set(pushed.get('store')));
    // The last delivery is written a moment after its receiver has it.
    await eventually(async () => {
      // Each process adds up the bytes of its accounts once a minute.
      const all = await Promise.all(services.map(stats));
      const [a, b, c] = all.map((each) => ({ ...each, stored: undefined }));
      expect(b).toEqual(a);
      expect(c).toEqual(a);
    });
  });

  test.runIf(isLong)('spread many crawlers over them', async () => {
    await using database = testDatabase();
    await using site = await startSite();
    const env = { MONGODB_URI: database.uri };
    await using first = await startProcess(env);
    await using second = await startProcess(env);
    const names = Array.from({ length: 60 }, (_, n) => `crawler-${n}`);
    for (const name of names) {
      await first.rest('POST', `/crawler/${NORMAL}`, { name, concurrency: 1 });
    }
    await untilAcquainted(database.uri);
    // All pushed through one of them.
    for (const name of names) {
      await push(
        first,
        name,
        [0, 1, 2].map((n) => `${site.url}/page/${name}-${n}?delay=700`),
      );
    }
    const completed = names.length * 3;
    await eventually(async () => expect(await stats(second)).toMatchObject({ completed }));
    const shares = await Promise.all([first, second].map(crawled));
    expect(shares[0]! + shares[1]!).toBe(completed);
    expect(Math.min(...shares)).toBeGreaterThan(completed / 6);
  });

  test('split into roles: what an api process takes in, a worker starts within a second', async () => {
    await using database = testDatabase();
    await using site = await startSite();
    await using api = await startProcess({ MONGODB_URI: database.uri, ROLE: 'api' });
    await using worker = await startProcess({ MONGODB_URI: database.uri, ROLE: 'worker' });
    expect((await worker.rest('GET', `/crawler/${NORMAL}/stats`)).status).toBe(404);
    expect((await worker.rest('GET', '/readyz')).status).toBe(200);
    await api.rest('POST', `/crawler/${NORMAL}`, { name: 'store' });
    // Idle crawlers cost the polling nothing.
    for (let n = 0; n < 50; n++)
      await api.rest('POST', `/crawler/${NORMAL}`, { name: `idle-${n}` });
    const dispatched = () => readMetric(worker, 'queued_crawler_active', 'kind="crawlers"');
    for (let n = 0; n < 3; n++) {
      // The worker has let go of the crawler, so that the push finds it idle.
      await eventually(async () => expect(await dispatched()).toBe(0));
      const at = Date.now();
      await push(api, 'store', [`${site.url}/page/${n}`]);
      let slowestMs = 0;
      await eventually(async () => {
        const startedAt = performance.now();
        await stats(api);
        slowestMs = Math.max(slowestMs, performance.now() - startedAt);
        expect(site.hits(`/page/${n}`)).toBe(1);
      });
      const seenAt = Number(site.seen.find((seen) => seen.path === `/page/${n}`)?.at);
      // Between the push and the crawl are some ten calls of the database; a busy machine takes long for each.
      expect(seenAt - at).toBeLessThan(1_000 + 20 * slowestMs);
    }
    await eventually(async () => expect(await crawled(worker)).toBe(3));
  });

  test.runIf(isLong)('hold a token to its rate together', async () => {
    await using database = testDatabase();
    await using site = await startSite();
    const env = { MONGODB_URI: database.uri, PUSH_RATE_PER_SECOND: '30' };
    await using first = await startProcess(env);
    await using second = await startProcess(env);
    await first.rest('POST', `/crawler/${NORMAL}`, { name: 'store' });
    const startedAt = Date.now();
    const replies = await Promise.all(
      Array.from({ length: 200 }, (_, n) =>
        (n % 2 === 0 ? first : second).rest(
          'GET',
          `/?token=${NORMAL}&crawler=store&callback=true&url=${encodeURIComponent(`${site.url}/page/${n}`)}`,
        ),
      ),
    );
    const seconds = (Date.now() - startedAt) / 1_000;
    const accepted = replies.filter((reply) => reply.status === 200);
    expect(accepted.length).toBeGreaterThanOrEqual(30);
    expect(accepted.length).toBeLessThanOrEqual(30 * (1 + seconds) + 1);
    const refused = replies.find((reply) => reply.status === 429);
    expect(refused?.headers.get('retry-after')).toBe('1');
  });

  test('apply a pause, a changed concurrency and a deletion wherever they are asked for', async () => {
    await using database = testDatabase();
    await using site = await startSite();
    const env = { MONGODB_URI: database.uri };
    await using first = await startProcess(env);
    await using second = await startProcess(env);
    await first.rest('POST', `/crawler/${NORMAL}`, { name: 'store', concurrency: 1 });
    await push(
      first,
      'store',
      Array.from({ length: 500 }, (_, n) => `${site.url}/page/${n}?delay=100`),
    );
    await eventually(() => expect(site.hits()).toBeGreaterThan(2));
    await second.rest('PUT', `/crawler/${NORMAL}/store`, { concurrency: 5 });
    await eventually(() => expect(site.concurrent).toBe(5));
    await second.rest('POST', `/crawler/${NORMAL}/store/pause`);
    await eventually(() => expect(site.concurrent).toBe(0));
    const hits = site.hits();
    await second.rest('POST', `/crawler/${NORMAL}/store/unpause`);
    await eventually(() => expect(site.hits()).toBeGreaterThan(hits));
    expect((await second.rest('POST', `/crawler/${NORMAL}/store/delete`)).status).toBe(200);
    await eventually(() => expect(site.concurrent).toBe(0));
    // A process writes what it gathers of an account's totals a moment later.
    await eventually(async () => {
      const [a, b] = await Promise.all([stats(first), stats(second)]);
      expect({ ...a, stored: undefined }).toEqual({ ...b, stored: undefined });
      expect(a.crawlers).toEqual([]);
    });
  });
});
