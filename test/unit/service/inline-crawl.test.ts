import { expect, test } from 'vitest';
import type { Page } from '../../../src/engine/engine.ts';
import { createFairPool } from '../../../src/fairness/fair-pool.ts';
import type { Crawling } from '../../../src/service/crawls/crawling.ts';
import { createInlineCrawls } from '../../../src/service/crawls/inline-crawl.ts';
import { createStorage } from '../../../src/service/reads/storage.ts';
import { buildResult } from '../../../src/threads/build-result.ts';
import type { Crawled, CrawlOrder } from '../../../src/threads/crawl-threads.ts';
import { ThreadLost } from '../../../src/threads/thread-lost.ts';
import { eventually } from '../../support/eventually.ts';
import { createUseCases, NO_POOLS, openEmbeddedStore } from '../../support/use-cases.ts';

const never = new AbortController().signal;
const INPUT = { url: 'https://example.com/', parameters: {} };

const PAGE: Page = {
  cbStatus: 200,
  originalStatus: 200,
  url: 'https://example.com/home',
  body: Buffer.from('<p>home</p>'),
  contentType: 'text/html; charset=utf-8',
  isText: true,
  headers: [],
};

/** Inline crawls, two at once for each token, over an embedded store; `crawl` stands for the crawl threads. */
async function startInlineCrawls(
  crawl: (order: CrawlOrder) => Promise<Page>,
  options: { readonly storageBytes?: number } = {},
) {
  const opened = await openEmbeddedStore();
  const { store } = opened;
  const useCases = createUseCases(store, {
    accountLimits: { storageBytes: options.storageBytes ?? 0 },
  });
  const memory = createFairPool({ name: 'memory', capacity: 1_000_000 });
  const crawlSlots = createFairPool({ name: 'crawls', capacity: 10 });

  async function crawled(page: Page, { task, spec }: CrawlOrder): Promise<Crawled> {
    const { accountId } = task;
    const held = memory.tryAcquire({ accountId }, 1_000);
    return { result: await buildResult({ page, request: task.request, spec }, task), held };
  }
  const crawling: Crawling = {
    crawl: async (order) => crawled(await crawl(order), order),
    result: crawled,
  };
  const inlineCrawls = createInlineCrawls({
    store,
    crawling,
    shared: { memory, crawlSlots },
    pushing: useCases.pushing,
    quotas: useCases.quotas,
    clock: useCases.clock,
    offers: { usablePools: NO_POOLS, allowsSnippets: false },
    defaults: {},
    retentionDays: 1,
    maxBodyBytes: 10_000,
    concurrency: 2,
  });
  return {
    store,
    inlineCrawls,
    storage: createStorage({ results: store.results, clock: useCases.clock }),
    account: useCases.account,
    clock: useCases.clock,
    inUse: () => memory.used + crawlSlots.used,
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

test('the page is the answer, and nothing is kept unless the client says so', async () => {
  await using app = await startInlineCrawls(async () => PAGE);
  const { normal } = await app.account();
  const result = await app.inlineCrawls.crawl(normal, INPUT, false, never);
  expect(Buffer.from(result.body).toString()).toBe('<p>home</p>');
  expect(result).toMatchObject({ cbStatus: 200, url: PAGE.url, rid: undefined });
  expect(await app.storage.count(normal)).toBe(0);
  expect(app.inUse()).toBe(0);
});

test('a kept page is read by its rid and by the URL of the call, with the same token', async () => {
  await using app = await startInlineCrawls(async () => PAGE);
  const { normal, javascript } = await app.account();
  const { rid = '' } = await app.inlineCrawls.crawl(normal, INPUT, true, never);
  const kept = { rid, pushedUrl: INPUT.url, url: PAGE.url, cbStatus: 200 };
  expect(await app.storage.get(normal, rid, '')).toMatchObject(kept);
  expect(await app.storage.get(normal, '', INPUT.url)).toMatchObject(kept);
  await expect(app.storage.get(javascript, rid, '')).rejects.toThrow('RID not found');
});

test('each token has its own limit of crawls in flight, and ended crawls make room', async () => {
  const gates: PromiseWithResolvers<Page>[] = [];
  await using app = await startInlineCrawls(() => {
    const gate = Promise.withResolvers<Page>();
    gates.push(gate);
    return gate.promise;
  });
  const { normal, javascript } = await app.account();
  const crawl = (owner = normal) => app.inlineCrawls.crawl(owner, INPUT, false, never);
  const running = [crawl(), crawl()];
  await expect(crawl()).rejects.toMatchObject({ reason: 'concurrency_limit_reached' });
  const other = crawl(javascript);
  await eventually(() => expect(gates.length).toBe(3));
  gates[0]?.reject(new Error('broken'));
  await expect(running[0]).rejects.toThrow('broken');
  const next = crawl();
  await eventually(() => expect(gates.length).toBe(4));
  for (const gate of gates) gate.resolve(PAGE);
  await Promise.all([running[1], other, next]);
  expect(app.inUse()).toBe(0);
});

test('what crawls in flight may store counts in the quota before they start', async () => {
  const gates: PromiseWithResolvers<Page>[] = [];
  const open = () => {
    const gate = Promise.withResolvers<Page>();
    gates.push(gate);
    return gate.promise;
  };
  await using app = await startInlineCrawls(open, { storageBytes: 10_000 });
  const { normal } = await app.account();
  const crawl = (store = true) => app.inlineCrawls.crawl(normal, INPUT, store, never);
  const first = crawl();
  await eventually(() => expect(gates.length).toBe(1));
  await expect(crawl()).rejects.toMatchObject({
    kind: 'exhausted',
    reason: 'storage_bytes_quota_exceeded',
  });
  const unkept = crawl(false);
  await eventually(() => expect(gates.length).toBe(2));
  for (const gate of gates) gate.resolve(PAGE);
  await Promise.all([first, unkept]);
  const next = crawl();
  await eventually(() => expect(gates.length).toBe(3));
  gates[2]?.resolve(PAGE);
  expect((await next).rid).toBeDefined();
});

test('a crawl whose thread another one ended is tried once more', async () => {
  let crawls = 0;
  await using app = await startInlineCrawls(async () => {
    crawls += 1;
    if (crawls === 1) throw new ThreadLost(false, 'another crawl');
    return PAGE;
  });
  const { normal } = await app.account();
  expect(await app.inlineCrawls.crawl(normal, INPUT, false, never)).toMatchObject({
    cbStatus: 200,
  });
});

test.each([
  [true, 1],
  [false, 2],
])('a crawl that loses its thread, blamed: %s, fails after %i tries', async (blamed, tries) => {
  let crawls = 0;
  await using app = await startInlineCrawls(async () => {
    crawls += 1;
    throw new ThreadLost(blamed, 'gone');
  });
  const { normal } = await app.account();
  expect(await app.inlineCrawls.crawl(normal, INPUT, false, never)).toMatchObject({
    cbStatus: 599,
    details: { failure: 'crawl_crashed' },
  });
  expect(crawls).toBe(tries);
  expect(app.inUse()).toBe(0);
});

test('a full storage refuses the call before anything is crawled', async () => {
  let crawls = 0;
  await using app = await startInlineCrawls(
    async () => {
      crawls += 1;
      return PAGE;
    },
    { storageBytes: 1 },
  );
  const { normal } = await app.account();
  await app.inlineCrawls.crawl(normal, INPUT, true, never);
  // What an account uses is read anew after some seconds.
  app.clock.advance(60_000);
  await expect(app.inlineCrawls.crawl(normal, INPUT, true, never)).rejects.toMatchObject({
    reason: 'storage_bytes_quota_exceeded',
  });
  expect(crawls).toBe(1);
});

test('memory is given back when the copy cannot be stored', async () => {
  await using app = await startInlineCrawls(async () => PAGE);
  const { normal } = await app.account();
  await app.store.close();
  await expect(app.inlineCrawls.crawl(normal, INPUT, true, never)).rejects.toMatchObject({
    kind: 'unavailable',
  });
  expect(app.inUse()).toBe(0);
});

test('a crawl for later is queued, and its page is not in the answer', async () => {
  await using app = await startInlineCrawls(() => Promise.reject(new Error('crawled at once')));
  const { normal } = await app.account();
  const rid = await app.inlineCrawls.crawlLater(normal, INPUT);
  expect(rid).toMatch(/^[0-9a-f]{24}$/);
  expect((await app.store.accounts.usage(normal.account.accountId))?.queued).toBe(1);
});
