import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CrawlParameters } from '../../../src/domain/parameters.ts';
import { createFairPool } from '../../../src/fairness/fair-pool.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import type { ResultSpec } from '../../../src/threads/build-result.ts';
import { type CrawlThreads, createCrawlThreads } from '../../../src/threads/crawl-threads.ts';
import { createDocumentThreads } from '../../../src/threads/document-threads.ts';
import { eventually } from '../../support/eventually.ts';
import { isLong } from '../../support/length.ts';
import { createRecordingLogger } from '../../support/loggers.ts';
import { msOfOnePiece } from '../../support/longest-iteration.ts';
import { type Site, type SiteRoute, startSite } from '../../support/site.ts';

// All crawls of a thread wait while it works on one page. So no page may keep it for long, however it is made.

const MIB = 1024 * 1024;
/**
 * Bound of the processor time of one iteration, in milliseconds: a quarter of what 10 MiB of text take as JSON in one piece on this
 * machine. The pages below took between half and five times as much as that piece.
 */
const LONGEST_MS = msOfOnePiece() / 4;
const never = new AbortController().signal;
const record = (delivery: 'storage' | 'webhook'): ResultSpec => ({
  kind: 'record',
  rid: '0123456789abcdef01234567',
  delivery,
});

interface Case {
  readonly what: string;
  readonly type: string;
  readonly body: Buffer;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly parameters?: CrawlParameters;
  readonly spec?: ResultSpec;
}

/** 10 MiB of these bytes, less a little. */
const filled = (...bytes: number[]): Buffer => Buffer.alloc(10 * MIB - 1_000, Buffer.from(bytes));

const cases: readonly Case[] = [
  ['euc-kr', 0xb0, 0xa1],
  ['big5', 0xa4, 0x40],
  ['gb18030', 0x81, 0x30, 0x81, 0x30],
  ['shift_jis', 0x88, 0x9f],
  ['euc-jp', 0xb0, 0xa1],
  ['iso-2022-jp', 0x1b, 0x24, 0x42, 0x46, 0x7c, 0x1b, 0x28, 0x42],
  ['windows-874', 0xa1],
  ['windows-1251', 0xe0, 0x20],
  ['utf-16le', 0x61, 0x00],
  ['utf-8', 0x61, 0xff],
]
  .map(
    ([charset, ...bytes]): Case => ({
      what: `text in ${charset}`,
      type: `text/html; charset=${charset}`,
      body: filled(...(bytes as number[])),
    }),
  )
  .concat([
    { what: 'text that names no character set', type: 'text/html', body: filled(0x61, 0xe9, 0x20) },
    {
      what: 'text that is six times as long in JSON',
      type: 'text/html',
      body: filled(0x61, 0x01),
      parameters: { format: 'json' },
      spec: record('webhook'),
    },
    {
      what: 'bytes in base64',
      type: 'image/png',
      body: filled(0x61, 0xff),
      parameters: { format: 'json', pretty: true },
      spec: record('webhook'),
    },
    {
      what: 'JSON that is taken for data',
      type: 'application/json',
      status: 404,
      body: Buffer.from(`[${'{},'.repeat(3 * MIB)}{}]`),
      parameters: { autoparse: true },
      spec: record('storage'),
    },
    {
      what: 'bytes that do not compress',
      type: 'application/octet-stream',
      body: Buffer.from(
        Uint32Array.from({ length: 2 * MIB }, (_, n) => Math.imul(n, 2654435761)).buffer,
      ),
      spec: record('storage'),
    },
    {
      what: 'a refusal full of marks of obstacles',
      type: 'text/html',
      status: 403,
      body: Buffer.from('"g-recaptcha h-captcha cf-turnstile '.repeat(7_000)),
    },
    {
      what: 'a short text full of marks of obstacles',
      type: 'text/html; charset=euc-kr',
      status: 403,
      body: Buffer.from('g-recaptcha'.repeat(5_900)),
    },
    {
      what: 'long headers',
      type: `text/html; ${'a=b;'.repeat(3_000)}`,
      headers: { 'x-long': ';, '.repeat(10_000) },
      body: Buffer.from('<p>page'),
      parameters: { get_headers: true },
    },
  ]);

// The short form has the slowest decoder of each kind.
const SHORT = /^(?!text in (?!euc-kr|iso-2022-jp|utf-8))/;

let route: SiteRoute;
let site: Site;
let threads: CrawlThreads;
const logger = createRecordingLogger();
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  site = stack.use(
    await startSite({
      routes: { '/long': (request, response, url) => route(request, response, url) },
    }),
  );
  const memory = createFairPool({ name: 'memory', capacity: 256 * MIB });
  const documents = createDocumentThreads({ threads: 1, timeoutMs: 60_000, logger });
  stack.defer(() => documents.close());
  threads = createCrawlThreads({
    threads: 1,
    settings: {
      network: { allow: parseNetworkAllow('127.0.0.1') },
      limits: { timeoutMs: 60_000, maxBodyBytes: 32 * MIB },
    },
    memory,
    documents,
    hangMs: 8_000,
    logger,
    program: new URL('../../support/measured-crawl-thread.ts', import.meta.url),
  });
  stack.defer(() => threads.close());
});

afterAll(() => stack.disposeAsync());

test.each(cases.filter(({ what }) => isLong || SHORT.test(what)))(
  '$what',
  async ({ type, body, status = 200, headers, parameters = {}, spec }) => {
    route = (_request, response) => {
      response.writeHead(status, { 'content-type': type, ...headers }).end(body);
    };
    const crawl = (path: string, parameters: CrawlParameters, spec: ResultSpec) =>
      threads.crawl(
        {
          task: {
            request: {
              url: site.url + path,
              method: 'GET',
              body: undefined,
              contentType: undefined,
              parameters,
            },
            tokenType: 'normal',
            accountId: 'account',
            crawlerId: 'crawler',
            politeness: undefined,
          },
          spec,
          isSuspect: false,
        },
        never,
      );
    for (let n = 0; n < 20; n += 1)
      await crawl(`/page/1?size=${n * 10_000}`, {}, record('webhook'));
    logger.lines.length = 0;
    const { result } = await crawl('/long', parameters, spec ?? { kind: 'inline', rid: undefined });
    expect(result.originalStatus).toBe(status);
    // Those that were logged before the result, and the rest.
    const before = logger.lines.length;
    await eventually(() => expect(logger.lines.length).toBeGreaterThan(before + 1));
    const times = logger.lines.map(({ fields }) => (fields as { longestMs: number }).longestMs);
    expect(Math.max(...times)).toBeLessThan(LONGEST_MS);
  },
);
