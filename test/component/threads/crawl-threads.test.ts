import { readdirSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { defined } from '../../../src/domain/defined.ts';
import type { CrawlParameters } from '../../../src/domain/parameters.ts';
import type { CrawlTask } from '../../../src/engine/engine.ts';
import { createFairPool, type FairPool } from '../../../src/fairness/fair-pool.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import type { ResultSpec } from '../../../src/threads/build-result.ts';
import { type CrawlThreads, createCrawlThreads } from '../../../src/threads/crawl-threads.ts';
import { createDocumentThreads } from '../../../src/threads/document-threads.ts';
import { ThreadLost } from '../../../src/threads/thread-lost.ts';
import { BASE_BYTES } from '../../../src/threads/thread-messages.ts';
import { eventually } from '../../support/eventually.ts';
import { createRecordingLogger, type RecordingLogger } from '../../support/loggers.ts';
import { type Site, startSite } from '../../support/site.ts';

const MIB = 1024 * 1024;
const never = new AbortController().signal;
/** Longer than a thread that yields to others gets no processor for. */
const HANG_MS = 4_000;
const INLINE: ResultSpec = { kind: 'inline', rid: undefined };

let stack: AsyncDisposableStack;
let site: Site;
let memory: FairPool;
let logger: RecordingLogger;
/** How many slow texts the site has answered. */
let texts: number;

beforeEach(async () => {
  stack = new AsyncDisposableStack();
  logger = createRecordingLogger();
  texts = 0;
  site = stack.use(
    await startSite({
      routes: {
        '/endless': (_request, response) => {
          response.writeHead(200, { 'content-type': 'text/html; charset=euc-kr' }).end('<p>page');
        },
        '/slow-text': (_request, response) => {
          response.writeHead(200, { 'content-type': 'text/plain; charset=iso-2022-jp' });
          response.end(Buffer.alloc(MIB, 'some text '), () => {
            texts += 1;
          });
        },
        '/greedy': (_request, response) => {
          response
            .writeHead(200, { 'content-type': 'text/html; charset=shift_jis' })
            .end('<p>page');
        },
      },
    }),
  );
});

afterEach(() => stack.disposeAsync());

function start(
  options: {
    threads?: number;
    budget?: number;
    hangMs?: number;
    maxHeapMb?: number;
    idleMs?: number;
  } = {},
): CrawlThreads {
  const { threads: count = 1, budget = 64 * MIB, hangMs = 8_000 } = options;
  memory = createFairPool({ name: 'memory', capacity: budget });
  const documents = createDocumentThreads({ threads: 1, timeoutMs: 60_000, logger });
  const threads = createCrawlThreads({
    threads: count,
    settings: {
      network: { allow: parseNetworkAllow('127.0.0.1') },
      // Longer than a test may take.
      limits: { timeoutMs: 3_600_000, maxBodyBytes: 2 * MIB },
    },
    memory,
    documents,
    hangMs,
    logger,
    program: new URL('../../support/hostile-crawl-thread.ts', import.meta.url),
    ...defined({ maxHeapMb: options.maxHeapMb, idleMs: options.idleMs }),
  });
  stack.defer(() => threads.close());
  stack.defer(() => documents.close());
  return threads;
}

function taskOf(path: string, parameters: CrawlParameters = {}, accountId = 'account'): CrawlTask {
  return {
    request: {
      url: site.url + path,
      method: 'GET',
      body: undefined,
      contentType: undefined,
      parameters,
    },
    tokenType: 'normal',
    accountId,
    crawlerId: 'crawler',
    politeness: undefined,
  };
}

const order = (
  path: string,
  parameters: CrawlParameters = {},
  spec: ResultSpec = INLINE,
  isSuspect = false,
) => ({
  task: taskOf(path, parameters),
  spec,
  isSuspect,
});

describe('a crawl', () => {
  test('brings an inline page as it is, a record packed, and both for a page that is kept', async () => {
    const threads = start();
    const inline = await threads.crawl(order('/page/1'), never);
    expect(inline.result).toMatchObject({ cbStatus: 200, originalStatus: 200, isText: true });
    expect(Buffer.from(inline.result.body).toString()).toContain('Page 1');
    expect(inline.result.packed).toHaveLength(0);

    const rid = '0123456789abcdef01234567';
    const stored = await threads.crawl(
      order('/page/2', {}, { kind: 'record', rid, delivery: 'storage' }),
      never,
    );
    expect(stored.result.body).toHaveLength(0);
    expect(stored.result.coding).toBe('zstd');
    expect(zstdDecompressSync(stored.result.packed).toString()).toContain('Page 2');
    expect(stored.result.plain).toBeUndefined();

    const posted = await threads.crawl(
      order('/page/3', { format: 'json' }, { kind: 'record', rid, delivery: 'webhook' }),
      never,
    );
    expect(posted.result.packedType).toBe('gzip/json');
    expect(JSON.parse(gunzipSync(posted.result.packed).toString())).toMatchObject({ rid });
    expect(Buffer.from(posted.result.plain ?? [])).toEqual(gunzipSync(posted.result.packed));

    const large = await threads.crawl(
      order('/page/5?size=100000', {}, { kind: 'record', rid, delivery: 'webhook' }),
      never,
    );
    expect(gunzipSync(large.result.packed).length).toBeGreaterThan(100_000);
    expect(Buffer.from(large.result.plain ?? [])).toEqual(gunzipSync(large.result.packed));

    const kept = await threads.crawl(order('/page/4', {}, { kind: 'inline', rid }), never);
    expect(zstdDecompressSync(kept.result.packed)).toEqual(Buffer.from(kept.result.body));
  });

  test('has its document read when Markdown is asked for', async () => {
    const { result } = await start().crawl(order('/page/1', { format: 'md' }), never);
    expect(result.contentType).toBe('text/markdown; charset=utf-8');
    expect(Buffer.from(result.body).toString()).not.toContain('<');
  });

  test('that is aborted ends at once, and its request with it', async () => {
    const threads = start();
    const controller = new AbortController();
    const crawl = threads.crawl(order('/hang'), controller.signal);
    await eventually(() => expect(site.concurrent).toBe(1));
    controller.abort(new Error('enough'));
    await expect(crawl).rejects.toThrow('enough');
    await eventually(() => expect(site.concurrent).toBe(0));
    expect(threads.activity().running).toBe(0);
  });

  test('that is aborted rejects when its request has ended, however late its thread ends it', async () => {
    const threads = start();
    const controller = new AbortController();
    const crawl = threads.crawl(order('/hang'), controller.signal);
    await eventually(() => expect(site.hits('/hang')).toBe(1));
    const slow = Array.from({ length: 4 }, () => threads.crawl(order('/slow-text'), never));
    // The thread is at the second of them when it gets the abort.
    await Promise.race(slow);
    expect(site.hits('/slow-text')).toBe(4);
    controller.abort(new Error('enough'));
    await expect(crawl).rejects.toThrow('enough');
    // The site is in this process, and takes a few turns to notice the end of a connection.
    for (let turns = 0; turns < 10; turns += 1) await nextTurn();
    expect(site.concurrent).toBe(0);
    await Promise.all(slow);
  });

  test('stays in one thread for one host, and other hosts use the other threads', async () => {
    await using other = await startSite();
    const threads = start({ threads: 2 });
    await threads.crawl(order('/page/1'), never);
    await threads.crawl(order('/page/2'), never);
    expect([site.connections, threads.activity().threads]).toEqual([1, 1]);
    const hanging = threads.crawl(order('/hang'), never).catch(() => undefined);
    const task = {
      ...taskOf('/'),
      request: { ...taskOf('/').request, url: `${other.url}/page/1` },
    };
    await threads.crawl({ task, spec: INLINE, isSuspect: false }, never);
    expect(threads.activity().threads).toBe(2);
    await threads.close();
    await hanging;
  });

  test('ends the other threads when nothing was crawled for a while, and starts them again', async () => {
    await using other = await startSite();
    const threads = start({ threads: 2, idleMs: 200 });
    for (let round = 0; round < 2; round += 1) {
      const controller = new AbortController();
      const hanging = threads.crawl(order('/hang'), controller.signal).catch(() => undefined);
      const url = `${other.url}/page/${round}`;
      const task = { ...taskOf('/'), request: { ...taskOf('/').request, url } };
      await eventually(async () => {
        const { result } = await threads.crawl({ task, spec: INLINE, isSuspect: false }, never);
        expect([result.cbStatus, threads.activity().threads]).toEqual([200, 2]);
      });
      controller.abort();
      await hanging;
      await eventually(() => expect(threads.activity().threads).toBe(1));
    }
    expect(threads.activity().replaced).toBe(0);
  });
});

test('large pages of one account are worked on in turn with those of others, and small ones in between', async () => {
  const threads = start({ budget: 64 * MIB });
  const order: string[] = [];
  const crawl = (name: string, path: string, accountId: string): Promise<void> =>
    threads
      .crawl({ task: taskOf(path, {}, accountId), spec: INLINE, isSuspect: false }, never)
      .then(() => void order.push(name));
  // All have arrived before the thread is done with the first of them, or with few on a busy machine.
  const flood = Array.from({ length: 30 }, (_, n) => crawl(`flood ${n}`, '/slow-text', 'flooder'));
  await eventually(() => expect(texts).toBe(30));
  const others = [crawl('small', '/page/1', 'victim'), crawl('large', '/slow-text', 'victim')];
  await eventually(() => expect(texts).toBe(31));
  await Promise.all([...flood, ...others]);
  // In the order of their arrival they would be the last ones.
  expect(order.indexOf('small')).toBeLessThan(order.length - 5);
  expect(order.indexOf('large')).toBeLessThan(order.length - 5);
});

describe('memory', () => {
  test('is waited for before a large body is read on, and given back but for the page', async () => {
    // Room for two of the largest bodies at once.
    const threads = start({ budget: 5 * MIB });
    let most = 0;
    const held = await Promise.all(
      Array.from({ length: 8 }, async (_, n) => {
        const crawled = await threads.crawl(order(`/page/${n}?size=${MIB}`), never);
        most = Math.max(most, memory.used);
        expect(crawled.result.body.byteLength).toBeGreaterThanOrEqual(MIB);
        expect(crawled.held?.amount).toBe(crawled.result.body.byteLength - BASE_BYTES);
        crawled.held?.release();
        return crawled.held;
      }),
    );
    expect(held).toHaveLength(8);
    expect(most).toBeLessThanOrEqual(5 * MIB);
    expect([memory.used, memory.waiting]).toEqual([0, 0]);
  });

  test('that is not to be had leaves small pages alone', async () => {
    const threads = start({ budget: 3 * MIB });
    const all = await memory.acquire({ accountId: 'other' }, 3 * MIB);
    const large = threads.crawl(order(`/page/1?size=${MIB}`), never);
    await eventually(() => expect(memory.waiting).toBe(1));
    const { result } = await threads.crawl(order('/page/2?size=1000'), never);
    expect(result.cbStatus).toBe(200);
    all.release();
    expect((await large).result.body.byteLength).toBeGreaterThanOrEqual(MIB);
  });
});

describe('a thread', () => {
  const lost = (crawl: Promise<unknown>): Promise<ThreadLost> =>
    crawl.then(
      () => Promise.reject(new Error('the thread should have been lost')),
      (error: unknown) => (error instanceof ThreadLost ? error : Promise.reject(error as Error)),
    );

  test('that does not answer is replaced, and only the crawl it was at is to blame', async () => {
    const threads = start({ hangMs: HANG_MS });
    const bystander = lost(threads.crawl(order('/hang'), never));
    await eventually(() => expect(site.concurrent).toBe(1));
    const culprit = lost(threads.crawl(order('/endless'), never));
    expect([(await bystander).blamed, (await culprit).blamed]).toEqual([false, true]);
    expect(threads.activity().replaced).toBe(1);
    expect(logger.lines.map(({ message }) => message)).toContain(
      'a crawl thread has ended; another takes over',
    );

    // Its host is crawled apart now: the next time nobody else is disturbed.
    const other = await startSite();
    stack.use(other);
    const task = {
      ...taskOf('/'),
      request: { ...taskOf('/').request, url: `${other.url}/delay/${HANG_MS + 1_000}` },
    };
    const undisturbed = threads.crawl({ task, spec: INLINE, isSuspect: false }, never);
    expect((await lost(threads.crawl(order('/endless'), never))).blamed).toBe(true);
    expect((await undisturbed).result.cbStatus).toBe(200);
    expect((await threads.crawl(order('/page/1'), never)).result.cbStatus).toBe(200);
  });

  test('that is replaced has left the sites when its crawls give back their slots', async () => {
    const threads = start({ hangMs: HANG_MS });
    const bystanders = Array.from({ length: 20 }, () => lost(threads.crawl(order('/hang'), never)));
    await eventually(() => expect(site.concurrent).toBe(20));
    const culprit = lost(threads.crawl(order('/endless'), never));
    await Promise.race(bystanders);
    // The site reads what has come.
    for (let turn = 0; turn < 3; turn += 1) await nextTurn();
    expect(site.concurrent).toBe(0);
    await Promise.all([...bystanders, culprit]);
  });

  test.runIf(process.platform === 'linux')('yields to the threads of the service', async () => {
    const threads = start();
    // A page as Markdown passes a crawl thread and a document thread.
    await threads.crawl(order('/page/1', { format: 'md' }), never);
    const own = getPriority();
    expect(threadPriorities().filter((nice) => nice === own + 5)).toHaveLength(2);
    expect(getPriority()).toBe(own);
  });

  test('that outgrows its memory is replaced', async () => {
    const threads = start({ maxHeapMb: 24 });
    expect((await lost(threads.crawl(order('/greedy'), never))).blamed).toBe(true);
    expect((await threads.crawl(order('/page/1'), never)).result.cbStatus).toBe(200);
  });

  test('leaves nothing of the budget in use when it is lost', async () => {
    const threads = start({ hangMs: HANG_MS, budget: 8 * MIB });
    const large = lost(threads.crawl(order(`/page/1?size=${MIB}&delay=0`), never)).catch(
      () => undefined,
    );
    await lost(threads.crawl(order('/endless'), never));
    await large;
    expect(memory.waiting).toBe(0);
  });
});

/** The niceness of each thread of this process. */
function threadPriorities(): number[] {
  return readdirSync('/proc/self/task').map((thread) => {
    const stat = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8');
    return Number(stat.replace(/^.*\) /s, '').split(' ')[16]);
  });
}
