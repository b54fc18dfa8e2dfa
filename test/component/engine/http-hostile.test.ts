import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { startHttpEngine, type TestEngine, textOf } from '../../support/http-engine.ts';
import { pageHtml, type Site, startSite } from '../../support/site.ts';

/** For pages that would last for ever. */
const SHORT_MS = 1_000;
/** For pages that meet another limit, however busy the machine is. */
const AMPLE_MS = 120_000;
const MEBIBYTE = 1024 * 1024;

let site: Site;
let impatient: TestEngine;
let patient: TestEngine;

beforeAll(async () => {
  site = await startSite();
  const start = (timeoutMs: number) =>
    startHttpEngine({ allow: site.host, limits: { timeoutMs, maxBodyBytes: MEBIBYTE } });
  impatient = start(SHORT_MS);
  patient = start(AMPLE_MS);
});

afterAll(async () => {
  expect([...impatient.errors, ...patient.errors]).toEqual([]);
  await impatient[Symbol.asyncDispose]();
  await patient[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

describe('hostile pages end in the right status, in time, and hold nothing', () => {
  test.each([
    // What the site says in its head is kept, whatever becomes of its body.
    ['slow-body', 200, 522, 'timeout'],
    ['slow-headers', 0, 522, 'timeout'],
    ['endless-100', 0, 522, 'timeout'],
    ['endless-body', 200, 523, 'body_too_large'],
    ['bomb?encoding=gzip', 200, 523, 'body_too_large'],
    ['bomb?encoding=deflate', 200, 523, 'body_too_large'],
    ['bomb?encoding=deflate-raw', 200, 523, 'body_too_large'],
    ['bomb?encoding=br', 200, 523, 'body_too_large'],
    ['bomb?encoding=zstd', 200, 523, 'body_too_large'],
    ['nested-gzip', 200, 523, 'body_too_large'],
    ['many-encodings', 200, 523, 'too_many_encodings'],
    ['not-gzip', 200, 599, 'decoding_failed'],
    ['header-flood', 0, 599, 'protocol_error'],
    ['two-lengths', 0, 599, 'protocol_error'],
    ['bad-chunks', 200, 599, 'protocol_error'],
    ['garbage', 0, 599, 'protocol_error'],
    ['no-answer', 0, 521, 'connection_failed'],
    ['reset', 0, 521, 'connection_failed'],
    ['private-redirect', 302, 523, 'address_not_allowed'],
  ])('%s', async (name, originalStatus, cbStatus, reason) => {
    const before = process.memoryUsage();
    const engine = reason === 'timeout' ? impatient : patient;
    const page = await engine.crawl(`${site.url}/hostile/${name}`);
    expect([page.cbStatus, page.failure?.reason]).toEqual([cbStatus, reason]);
    expect(page.originalStatus).toBe(originalStatus);
    // The site's compressors and buffers are in this process too.
    const after = process.memoryUsage();
    expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(64 * MEBIBYTE);
    await eventually(() => expect(site.concurrent).toBe(0));
  });

  test.each(['cut-gzip', 'length-too-long', 'reset-mid-body'])(
    'the beginning of a body that is cut short is a page: %s',
    async (name) => {
      const page = await patient.crawl(`${site.url}/hostile/${name}`);
      expect([page.cbStatus, page.failure]).toEqual([200, undefined]);
      expect(page.body.length).toBeGreaterThan(0);
      await eventually(() => expect(site.concurrent).toBe(0));
    },
  );

  test('a bomb in a bomb', async () => {
    const page = await patient.crawl(`${site.url}/hostile/double-bomb`);
    // Either bound may be met first; what counts is that one is.
    expect(['body_too_large', 'timeout']).toContain(page.failure?.reason);
    await eventually(() => expect(site.concurrent).toBe(0));
  });

  test('a body beyond its announced length is cut there', async () => {
    const page = await patient.crawl(`${site.url}/hostile/length-too-short`);
    expect([page.cbStatus, textOf(page)]).toEqual([200, 'five!']);
    // What followed must not be taken for the next answer.
    expect(textOf(await patient.crawl(`${site.url}/page/1`))).toContain('Page 1');
  });

  test('a large and a deep page are pages', async () => {
    const deep = await patient.crawl(`${site.url}/hostile/deep-html?depth=100000`);
    expect([deep.cbStatus, deep.body.length]).toEqual([200, 500_000]);
    const large = await patient.crawl(`${site.url}/page/1?size=1000000`);
    expect([large.cbStatus, large.body.length > 1_000_000]).toEqual([200, true]);
  });

  test('many of them at once do not keep a good page waiting', async () => {
    const names = ['slow-body', 'endless-body', 'bomb', 'slow-headers', 'bad-chunks'];
    const crawls = names.flatMap((name) =>
      Array.from({ length: 8 }, () => impatient.crawl(`${site.url}/hostile/${name}`)),
    );
    const page = await patient.crawl(`${site.url}/page/1`);
    expect(page.cbStatus).toBe(200);
    const pages = await Promise.all(crawls);
    expect(pages.every(({ cbStatus }) => cbStatus !== 200)).toBe(true);
    await eventually(() => expect(site.concurrent).toBe(0));
  });
});

test.each([
  ['does not decode', 'gzip', Buffer.from('no gzip '.repeat(10_000))],
  ['has three codings', 'gzip, gzip, gzip', Buffer.from('x')],
  ['is too long', 'identity', Buffer.alloc(2 * MEBIBYTE)],
])('a redirect whose body %s is followed: nobody reads it', async (_, coding, body) => {
  const headers = { location: '/page/5', 'content-encoding': coding };
  await using leading = await startSite({
    routes: { '/': (_request, response) => void response.writeHead(302, headers).end(body) },
  });
  await using engine = startHttpEngine({ allow: leading.host });
  const page = await engine.crawl(leading.url);
  expect([page.failure, page.url]).toEqual([undefined, `${leading.url}/page/5`]);
  expect(textOf(page)).toBe(pageHtml('5', 0));
});

test('a redirect that announces a body and does not send it is followed', async () => {
  await using leading = await startSite({
    routes: {
      '/': (_request, response) => {
        response.writeHead(302, { location: '/page/5', 'content-length': 500 }).flushHeaders();
      },
    },
  });
  await using engine = startHttpEngine({
    allow: leading.host,
    limits: { timeoutMs: AMPLE_MS, maxBodyBytes: MEBIBYTE },
  });
  expect(textOf(await engine.crawl(leading.url))).toBe(pageHtml('5', 0));
  await eventually(() => expect(leading.concurrent).toBe(0));
});
