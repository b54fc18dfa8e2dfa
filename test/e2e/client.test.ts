import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import {
  type CrawlerClient,
  createCrawlerClient,
  describeFailure,
  type Pushed,
} from '../../src/client/client.ts';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { freePort } from '../support/listen.ts';
import { shareApp } from '../support/shared-app.ts';
import { startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const clientOf = (app: Pick<TestApp, 'url'>): CrawlerClient =>
  createCrawlerClient({ baseUrl: app.url, token: NORMAL });

/** A crawler that takes URLs and crawls none. */
async function pausedCrawler(client: CrawlerClient): Promise<string> {
  await client.crawlers.createCrawler({ name: 'shop' });
  await client.crawlers.pauseCrawler({ name: 'shop' });
  return 'shop';
}

async function waitingAt(client: CrawlerClient): Promise<number> {
  const { crawler } = await client.crawlers.getCrawler({ name: 'shop' });
  return Number(crawler?.activity?.waiting);
}

const urls = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `http://a.example/${index}`);

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const collected: Item[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

const shared = shareApp();

test('URLs are pushed in order, as fast as the rate and the room in the queue permit', async () => {
  await using app = await startApp({
    env: { PUSH_RATE_PER_SECOND: '200', CRAWLER_QUEUE_LIMIT: '400' },
  });
  await using client = clientOf(app);
  const crawler = await pausedCrawler(client);
  const waits: string[] = [];
  const pushed: Pushed[] = [];
  for await (const each of client.push(crawler, urls(500), {
    batchSize: 50,
    onWait: ({ code }) => {
      if (code === 'crawler_queue_full' && !waits.includes(code)) {
        void client.crawlers.purgeCrawler({ name: crawler });
      }
      waits.push(code);
    },
  })) {
    pushed.push(each);
  }
  expect(pushed.map(({ index }) => index)).toEqual(urls(500).map((_, index) => index));
  expect(pushed.map(({ item }) => item)).toEqual(urls(500));
  expect(new Set(pushed.map(({ rid }) => rid)).size).toBe(500);
  expect(new Set(waits)).toEqual(new Set(['rate_limited', 'crawler_queue_full']));
});

test('the source is read no further than the caller takes', async () => {
  const app = shared();
  await using client = clientOf(app);
  const crawler = await pausedCrawler(client);
  let read = 0;
  const endless = function* () {
    for (; ; read += 1) yield `http://a.example/${read}`;
  };
  for await (const { index } of client.push(crawler, endless(), {
    batchSize: 10,
    concurrency: 3,
  })) {
    expect(read).toBeLessThanOrEqual(index + 1 + 3 * 10);
    if (index === 200) break;
  }
});

test('a run of the same name pushes nothing twice, even over a restart of the service', async () => {
  await using folder = await temporaryFolder();
  const port = String(await freePort());
  const options = { dataDir: folder.path, env: { PORT: port } };
  let app = await startApp(options);
  await using _current = { [Symbol.asyncDispose]: () => app.stop() };
  await using client = createCrawlerClient({
    baseUrl: app.url,
    token: NORMAL,
    retries: { attempts: 20, maxDelayMs: 500 },
  });
  const crawler = await pausedCrawler(client);
  const push = () => client.push(crawler, urls(100), { runId: 'night', batchSize: 10 });
  const first: (string | undefined)[] = [];
  for await (const { index, rid } of push()) {
    first.push(rid);
    if (index === 20) {
      await app.stop();
      app = await startApp(options);
    }
  }
  const second = await all(push());
  expect(second.map(({ rid }) => rid)).toEqual(first);
  expect(await waitingAt(client)).toBe(100);
});

test('a call is repeated until a service that restarts is there again', async () => {
  await using folder = await temporaryFolder();
  const env = { PORT: String(await freePort()) };
  let app = await startApp({ dataDir: folder.path, env });
  await using _current = { [Symbol.asyncDispose]: () => app.stop() };
  await using client = clientOf(app);
  await pausedCrawler(client);
  await app.stop();
  const asked = waitingAt(client);
  // Longer than five attempts take.
  await wait(4_000);
  app = await startApp({ dataDir: folder.path, env });
  expect(await asked).toBe(0);
});

test('a run that was refused for rate in between pushes nothing twice, either', async () => {
  await using app = await startApp({ env: { PUSH_RATE_PER_SECOND: '40' } });
  await using client = clientOf(app);
  const crawler = await pausedCrawler(client);
  // Some batches are refused as a whole, and one of them has an item that is refused for good.
  const source = [...urls(89), { url: 'nonsense' }];
  const push = () => all(client.push(crawler, source, { runId: 'limited', batchSize: 10 }));
  const first = await push();
  expect(first.filter(({ rid }) => rid !== undefined)).toHaveLength(89);
  expect((await push()).map(({ rid }) => rid)).toEqual(first.map(({ rid }) => rid));
  expect(await waitingAt(client)).toBe(89);
});

test('duplicates at the start of a batch that use up the rate do not hold up the rest', async () => {
  await using app = await startApp({ env: { PUSH_RATE_PER_SECOND: '20' } });
  await using client = clientOf(app);
  const crawler = await pausedCrawler(client);
  await client.crawlers.updateCrawler({ name: crawler, unique: true });
  const first = await all(client.push(crawler, urls(30)));
  const pushed = await all(client.push(crawler, urls(50)));
  expect(pushed.map(({ index }) => index)).toEqual(urls(50).map((_, index) => index));
  const known = pushed.slice(0, 30);
  expect(known.map(({ rid }) => rid)).toEqual(first.map(({ rid }) => rid));
  expect(pushed.map(({ duplicate = false }) => duplicate)).toEqual(
    urls(50).map((_, index) => index < 30),
  );
  expect(await waitingAt(client)).toBe(50);
});

test('refusals name the URL, or fail the loop when nothing can be pushed', async () => {
  const app = shared();
  await using client = clientOf(app);
  const crawler = await pausedCrawler(client);
  const pushed = await all(
    client.push(crawler, ['http://a.example/', { url: 'nonsense' }, { url: 'http://b.example/' }]),
  );
  expect(pushed.map(({ error }) => error?.code)).toEqual([undefined, 'invalid_url', undefined]);
  const failure = await all(client.push('nobody', urls(3))).catch(describeFailure);
  expect(failure).toMatchObject({
    code: 'not_found',
    reason: 'crawler_not_found',
    field: 'crawler',
  });
  await expect(all(client.push(crawler, urls(1), { batchSize: 2_000 }))).rejects.toThrow(
    'batchSize must be a whole number from 1 to 1000',
  );
});

test('long batches that are refused unread cost the connection nothing', async () => {
  await using app = await startApp();
  await using client = createCrawlerClient({ baseUrl: app.url, token: 'nobody' });
  const items = [{ url: `http://a.example/${'x'.repeat(1_000_000)}` }];
  for (let n = 0; n < 15; n += 1) {
    await expect(client.pushes.pushBatch({ crawler: 'shop', items })).rejects.toThrow(
      'The access token is not valid.',
    );
  }
});

test('a queue that stays full ends the patience', async () => {
  await using app = await startApp({ env: { CRAWLER_QUEUE_LIMIT: '10' } });
  await using client = clientOf(app);
  const crawler = await pausedCrawler(client);
  const pushed = await all(client.push(crawler, urls(12), { patienceMs: 500 }));
  expect(pushed.map(({ error }) => error?.code)).toEqual([
    ...Array.from({ length: 10 }, () => undefined),
    'crawler_queue_full',
    'crawler_queue_full',
  ]);
});

test.each(['1.1', '2'] as const)('results of a push in progress, over HTTP/%s', async (version) => {
  await using site = await startSite();
  const app = shared();
  await using client = createCrawlerClient({
    baseUrl: `${app.url}/`,
    token: NORMAL,
    httpVersion: version,
  });
  await client.crawlers.createCrawler({ name: 'kept' });
  async function* rids() {
    const pages = Array.from({ length: 120 }, (_, page) => `${site.url}/page/${page}`);
    for await (const { rid } of client.push('kept', pages, { batchSize: 20 })) yield rid ?? '';
  }
  const titles = new Set<string>();
  for await (const page of client.results(rids(), { remove: true })) {
    expect(page.cbStatus).toBe(200);
    titles.add(/<title>(.*?)<\/title>/.exec(page.text())?.[1] ?? '');
  }
  expect(titles.size).toBe(120);
  expect(titles).toContain('Page 119');
  expect((await client.storage.countResults({})).totalCount).toBe(0n);
});

test('every result in order, over a restart of the service, each acknowledged once it was taken', async () => {
  await using site = await startSite();
  await using folder = await temporaryFolder();
  const options = { dataDir: folder.path, env: { PORT: String(await freePort()) } };
  let app = await startApp(options);
  await using _current = { [Symbol.asyncDispose]: () => app.stop() };
  await using client = clientOf(app);
  await client.crawlers.createCrawler({ name: 'kept' });
  const pages = Array.from({ length: 20 }, (_, page) => `${site.url}/page/${page}`);
  const pushed = new Set<string | undefined>();
  const push = async (urls: string[]): Promise<void> => {
    for await (const { rid } of client.push('kept', urls)) pushed.add(rid);
  };
  await push(pages.slice(0, 10));
  const restart = async (): Promise<void> => {
    await app.stop();
    app = await startApp(options);
    await push(pages.slice(10));
  };
  let restarted: Promise<void> | undefined;
  const taken = new Set<string>();
  for await (const page of client.everyResult({
    crawler: 'kept',
    follow: true,
    acknowledge: true,
  })) {
    expect(page.text()).toContain('<title>Page');
    taken.add(page.rid);
    // The loop continues; the second half comes over another connection.
    restarted ??= restart();
    if (taken.size === pages.length) break;
  }
  await restarted;
  expect(taken).toEqual(pushed);
  // The loop was left at the last one, which therefore comes again.
  const again = await all(client.everyResult({ acknowledge: true }));
  expect(again.map(({ rid }) => rid)).toEqual([[...taken].at(-1)]);
  expect(await all(client.everyResult())).toEqual([]);
});

test('results that do not come end the loop, as does its signal', async () => {
  const app = shared();
  await using client = clientOf(app);
  const rid = 'a'.repeat(24);
  const late = await all(client.results([rid], { patienceMs: 200 })).catch(describeFailure);
  expect(late).toMatchObject({ code: 'deadline_exceeded', message: expect.stringContaining('1') });
  for (const loop of [
    (signal: AbortSignal) => client.results([rid], { signal }),
    (signal: AbortSignal) => client.everyResult({ follow: true, signal }),
  ]) {
    const signal = AbortSignal.timeout(200);
    const thrown = await all<unknown>(loop(signal)).catch((error: unknown) => error);
    expect(thrown).toBe(signal.reason);
  }
});
