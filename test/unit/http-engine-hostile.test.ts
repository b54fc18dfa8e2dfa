import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startHttpEngine, type TestEngine, textOf } from '../support/http-engine.ts';
import { type Site, startSite } from '../support/site.ts';

const TIMEOUT_MS = 1_000;
const MEBIBYTE = 1024 * 1024;

let site: Site;
let engine: TestEngine;

beforeAll(async () => {
  site = await startSite();
  engine = startHttpEngine({
    allow: site.host,
    limits: { timeoutMs: TIMEOUT_MS, maxBodyBytes: MEBIBYTE },
  });
});

afterAll(async () => {
  expect(engine.errors).toEqual([]);
  await engine[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

describe('hostile pages end in the right status, in time, and hold nothing', () => {
  test.each([
    ['slow-body', 522, 'timeout'],
    ['slow-headers', 522, 'timeout'],
    ['endless-100', 522, 'timeout'],
    ['endless-body', 523, 'body_too_large'],
    ['bomb?encoding=gzip', 523, 'body_too_large'],
    ['bomb?encoding=deflate', 523, 'body_too_large'],
    ['bomb?encoding=deflate-raw', 523, 'body_too_large'],
    ['bomb?encoding=br', 523, 'body_too_large'],
    ['bomb?encoding=zstd', 523, 'body_too_large'],
    ['nested-gzip', 523, 'body_too_large'],
    ['many-encodings', 523, 'too_many_encodings'],
    ['not-gzip', 599, 'decoding_failed'],
    ['cut-gzip', 599, 'decoding_failed'],
    ['header-flood', 599, 'protocol_error'],
    ['two-lengths', 599, 'protocol_error'],
    ['bad-chunks', 599, 'protocol_error'],
    ['garbage', 599, 'protocol_error'],
    ['length-too-long', 521, 'connection_failed'],
    ['no-answer', 521, 'connection_failed'],
    ['reset', 521, 'connection_failed'],
    ['reset-mid-body', 521, 'connection_failed'],
    ['private-redirect', 523, 'address_not_allowed'],
  ])('%s', async (name, cbStatus, reason) => {
    const before = process.memoryUsage();
    const startedAt = performance.now();
    const page = await engine.crawl(`${site.url}/hostile/${name}`);
    expect([page.cbStatus, page.failure?.reason]).toEqual([cbStatus, reason]);
    expect(page.originalStatus).toBe(0);
    expect(performance.now() - startedAt).toBeLessThan(TIMEOUT_MS + 500);
    // The site's compressors and buffers are in this process too.
    const after = process.memoryUsage();
    expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(64 * MEBIBYTE);
    await eventually(() => expect(site.concurrent).toBe(0));
  });

  test('a bomb in a bomb', async () => {
    const page = await engine.crawl(`${site.url}/hostile/double-bomb`);
    // Either bound may be met first; what counts is that one is.
    expect(['body_too_large', 'timeout']).toContain(page.failure?.reason);
    await eventually(() => expect(site.concurrent).toBe(0));
  });

  test('a body beyond its announced length is cut there', async () => {
    const page = await engine.crawl(`${site.url}/hostile/length-too-short`);
    expect([page.cbStatus, textOf(page)]).toEqual([200, 'five!']);
    // What followed must not be taken for the next answer.
    expect(textOf(await engine.crawl(`${site.url}/page/1`))).toContain('Page 1');
  });

  test('a large and a deep page are pages', async () => {
    const deep = await engine.crawl(`${site.url}/hostile/deep-html?depth=100000`);
    expect([deep.cbStatus, deep.body.length]).toEqual([200, 500_000]);
    const large = await engine.crawl(`${site.url}/page/1?size=1000000`);
    expect([large.cbStatus, large.body.length > 1_000_000]).toEqual([200, true]);
  });

  test('many of them at once do not keep a good page waiting', async () => {
    const names = ['slow-body', 'endless-body', 'bomb', 'slow-headers', 'reset-mid-body'];
    const crawls = names.flatMap((name) =>
      Array.from({ length: 8 }, () => engine.crawl(`${site.url}/hostile/${name}`)),
    );
    const page = await engine.crawl(`${site.url}/page/1`);
    expect(page.cbStatus).toBe(200);
    const pages = await Promise.all(crawls);
    expect(pages.every(({ cbStatus }) => cbStatus !== 200)).toBe(true);
    await eventually(() => expect(site.concurrent).toBe(0));
  });
});
