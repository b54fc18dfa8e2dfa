import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { StoredResult } from '../../../src/domain/result.ts';
import type { Page } from '../../../src/engine/engine.ts';
import { createFairPool } from '../../../src/fairness/fair-pool.ts';
import type { Crawling } from '../../../src/service/crawls/crawling.ts';
import { withStoredPages } from '../../../src/service/crawls/stored-pages.ts';
import { buildResult } from '../../../src/threads/build-result.ts';
import type { Crawled, CrawlOrder, CrawlThreads } from '../../../src/threads/crawl-threads.ts';
import { BASE_BYTES } from '../../../src/threads/thread-messages.ts';
import { eventually } from '../../support/eventually.ts';
import { createFrozenClock } from '../../support/test-clock.ts';

const never = new AbortController().signal;
const PAGE_BYTES = 1_000_000;

const request = {
  url: 'https://example.com/',
  method: 'GET',
  body: undefined,
  contentType: undefined,
  parameters: { max_age: 60 },
} as const;

function orderOf(accountId: string): CrawlOrder {
  const task = { request, tokenType: 'normal', accountId, crawlerId: 'c', politeness: undefined };
  return { task, spec: { kind: 'inline', rid: undefined }, isSuspect: false } as CrawlOrder;
}

/** Crawls over a store that has a page of a megabyte for every URL, which takes a kilobyte there. */
function startStoredPages(body: Uint8Array = gzipSync(Buffer.alloc(PAGE_BYTES, 'a'))) {
  const memory = createFairPool({ name: 'memory', capacity: 3 * PAGE_BYTES });
  const stored = {
    cbStatus: 200,
    originalStatus: 200,
    url: request.url,
    contentType: 'text/plain; charset=utf-8',
    body,
    coding: 'gzip',
    storedAt: new Date(0),
    details: {},
  } as unknown as StoredResult;
  const builds: (() => void)[] = [];
  const threads: Pick<CrawlThreads, 'build'> = {
    async build(page: Page, { task, spec }, { held } = {}): Promise<Crawled> {
      await new Promise<void>((resolve) => builds.push(resolve));
      return { result: await buildResult({ page, request: task.request, spec }, task), held };
    },
  };
  let crawls = 0;
  const crawling = withStoredPages(
    {
      crawl: () => {
        crawls += 1;
        return Promise.reject(new Error('crawled'));
      },
    } as unknown as Crawling,
    {
      results: { newest: () => Promise.resolve(stored) },
      threads,
      memory,
      clock: createFrozenClock(),
      maxBodyBytes: 10 * PAGE_BYTES,
    },
  );
  return { crawling, memory, builds, crawls: () => crawls };
}

test('stored pages are in memory as far as there is room for them', async () => {
  const { crawling, memory, builds } = startStoredPages();
  let ended = 0;
  const crawls = Array.from({ length: 20 }, async () => {
    const { isStored, held } = await crawling.crawl(orderOf('a'), never);
    expect(isStored).toBe(true);
    held?.release();
    ended += 1;
  });
  while (ended < crawls.length) {
    await eventually(() => expect(builds.length).toBeGreaterThan(0));
    expect(builds.length).toBeLessThanOrEqual(3);
    const before = ended;
    builds.shift()?.();
    await eventually(() => expect(ended).toBe(before + 1));
  }
  await Promise.all(crawls);
  expect(memory.used).toBe(0);
});

test('a crawl that is aborted while it waits for room holds nothing', async () => {
  const { crawling, memory } = startStoredPages();
  const taken = await memory.acquire({ accountId: 'b' }, 3 * PAGE_BYTES);
  const aborted = new AbortController();
  const crawl = crawling.crawl(orderOf('a'), aborted.signal);
  await eventually(() => expect(memory.waiting).toBe(1));
  aborted.abort(new Error('stopped'));
  await expect(crawl).rejects.toThrow('stopped');
  taken.release();
  expect([memory.used, memory.waiting]).toEqual([0, 0]);
});

test('a page that is longer than it says is crawled', async () => {
  const body = gzipSync(Buffer.alloc(PAGE_BYTES, 'a'));
  body.writeUInt32LE(BASE_BYTES, body.byteLength - 4);
  const { crawling, memory, crawls } = startStoredPages(body);
  await expect(crawling.crawl(orderOf('a'), never)).rejects.toThrow('crawled');
  expect([memory.used, crawls()]).toEqual([0, 1]);
});
