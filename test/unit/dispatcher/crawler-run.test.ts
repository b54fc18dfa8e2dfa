import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDispatcher } from '../../../src/dispatcher/dispatcher.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import type { Store } from '../../../src/store/store.ts';
import {
  type CrawlerRunBench,
  createCrawlerRunBench,
  RUN_TIMING,
} from '../../support/crawler-run-bench.ts';
import { eventually } from '../../support/eventually.ts';
import { silentLogger } from '../../support/loggers.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let store: Store;

beforeAll(async () => {
  folder = await temporaryFolder();
  ({ store } = await openSqliteStore({ dataDir: folder.path, logger: silentLogger }));
});

afterAll(async () => {
  await store.close();
  await folder[Symbol.asyncDispose]();
});

/** Waits until so many crawls were started in all. */
async function startedCrawls(bench: CrawlerRunBench, count: number): Promise<void> {
  await eventually(() => expect(bench.crawls).toHaveLength(count));
}

async function counters({ crawler }: CrawlerRunBench) {
  const all = await store.crawlers.counters([crawler.crawlerId]);
  return all.get(crawler.crawlerId);
}

async function storedRids(bench: CrawlerRunBench, rids: readonly string[]): Promise<string[]> {
  const { accountId, tokenType } = bench.crawler;
  const found = await Promise.all(
    rids.map((rid) => store.results.get({ accountId, tokenType }, rid)),
  );
  return found.flatMap((each) => (each === undefined ? [] : [each.rid]));
}

test('a run crawls what is queued and lets its crawler go when it is idle', async () => {
  const bench = await createCrawlerRunBench(store);
  const rids = await bench.push(3);
  const { run, done } = bench.start();
  await startedCrawls(bench, 3);
  expect(run.activity()).toEqual({ crawls: 3, deliveries: 0 });
  for (const crawl of bench.crawls) crawl.end();
  await eventually(async () => expect(await storedRids(bench, rids)).toEqual(rids));
  expect(await done).toBeUndefined();
  expect(run.notify()).toBe(false);
  expect(await bench.takeOver()).toBeDefined();
});

test('each change of the state of a job is a debug line, and so is the end of the run', async () => {
  const bench = await createCrawlerRunBench(store, 'webhook');
  const [rid] = await bench.push(1);
  // Without polls, the only slot of the endpoint is free for the page that has just been crawled.
  const { run, done, stop } = bench.start('first', { pollMs: 60_000, idleReleaseMs: 60_000 });
  await startedCrawls(bench, 1);
  bench.crawls[0]?.end();
  await eventually(() => expect(bench.debugLines).toHaveLength(3));
  stop();
  run.notify();
  await done;
  const { crawlerId: crawler } = bench.crawler;
  expect(bench.debugLines).toEqual([
    ['a job was claimed', { rid, crawler, attempt: 1, retry: 0 }],
    ['a crawl ended', { rid, crawler, attempt: 1, end: 'delivery', verdict: 'won' }],
    ['a delivery ended', { rid, crawler, attempt: 1, end: 'delivered' }],
    ['run over: drained', { crawler }],
  ]);
});

test('a webhook crawler without work is let go although its endpoint has less room than a claim', async () => {
  const bench = await createCrawlerRunBench(store, 'webhook');
  await bench.push(1);
  const { done } = bench.start();
  await startedCrawls(bench, 1);
  bench.crawls[0]?.end();
  await eventually(() => expect(bench.posts).toHaveLength(1));
  expect(await done).toBeUndefined();
  expect(await bench.takeOver()).toBeDefined();
});

test('a page whose end was written is not crawled again when the answer is lost', async () => {
  const bench = await createCrawlerRunBench(store);
  const rids = await bench.push(1);
  bench.faults.loseAnswer('queue.finish');
  const first = bench.start();
  await startedCrawls(bench, 1);
  bench.crawls[0]?.end();
  await expect(first.done).rejects.toThrow('took the database away');
  expect(first.run.notify()).toBe(false);

  const second = bench.start();
  await eventually(async () => expect(await storedRids(bench, rids)).toEqual(rids));
  await second.done;
  expect(bench.crawls).toHaveLength(1);
  expect(await counters(bench)).toMatchObject({ waiting: 0, running: 0, retrying: 0 });
});

test('a page is crawled again when its end was refused', async () => {
  const bench = await createCrawlerRunBench(store);
  const rids = await bench.push(1);
  bench.faults.refuse('queue.finish');
  const first = bench.start();
  await startedCrawls(bench, 1);
  bench.crawls[0]?.end();
  await expect(first.done).rejects.toThrow('took the database away');
  expect(await storedRids(bench, rids)).toEqual([]);

  const second = bench.start();
  await startedCrawls(bench, 2);
  bench.crawls[1]?.end();
  await eventually(async () => expect(await storedRids(bench, rids)).toEqual(rids));
  await second.done;
  expect(bench.crawls.map(({ job }) => job.attempt)).toEqual([1, 2]);
});

test('a page to be delivered whose end lost its answer is delivered by the next run', async () => {
  const bench = await createCrawlerRunBench(store, 'webhook');
  const rids = await bench.push(1);
  bench.faults.loseAnswer('queue.finish');
  const first = bench.start();
  await startedCrawls(bench, 1);
  bench.crawls[0]?.end();
  await expect(first.done).rejects.toThrow('took the database away');
  expect(bench.posts).toEqual([]);

  const second = bench.start();
  await eventually(() => expect(bench.posts.map(({ rid }) => rid)).toEqual(rids));
  await second.done;
  expect(bench.crawls).toHaveLength(1);
  expect(bench.posts).toHaveLength(1);
  expect(await counters(bench)).toMatchObject({ deliveriesPending: 0 });
});

test('a run whose renewal is refused stops its crawls and leaves them to the peer', async () => {
  const bench = await createCrawlerRunBench(store);
  const [rid = ''] = await bench.push(1);
  const { done } = bench.start();
  await startedCrawls(bench, 1);
  // The renewal is sent in time, and arrives when the lease has lapsed and a peer has it.
  const renewal = bench.faults.hold('queue.renew');
  bench.clock.advance(6_000);
  await renewal.reached;
  bench.clock.advance(10_000);
  const peer = await bench.takeOver();
  if (peer === undefined) throw new Error('the lease was kept');
  renewal.release();
  expect(await done).toBeUndefined();
  const [crawl] = bench.crawls;
  expect(crawl?.signal.aborted).toBe(true);
  crawl?.end();
  const { jobs } = await store.queue.claim(peer, 20, bench.clock.now());
  expect(jobs).toMatchObject([{ rid, attempt: 2 }]);
  expect(await storedRids(bench, [rid])).toEqual([]);
});

test('a run whose renewal fails is tried again, and its crawls count as neither retries nor crashes', async () => {
  const bench = await createCrawlerRunBench(store);
  const rids = await bench.push(1);
  const first = bench.start();
  await startedCrawls(bench, 1);
  bench.faults.refuse('queue.renew');
  bench.clock.advance(6_000);
  await expect(first.done).rejects.toThrow('took the database away');
  expect(bench.crawls[0]?.signal.aborted).toBe(true);

  const second = bench.start();
  await startedCrawls(bench, 2);
  expect(bench.crawls[1]?.job).toMatchObject({ attempt: 2, retry: 0, crashes: 0 });
  bench.crawls[1]?.end();
  await second.done;
  expect(await storedRids(bench, rids)).toEqual(rids);
});

test('a run that is aborted before it has its lease claims nothing', async () => {
  const bench = await createCrawlerRunBench(store);
  await bench.push(1);
  const acquire = bench.faults.holdAnswer('queue.acquire');
  const { run, done } = bench.start();
  await acquire.reached;
  run.abort();
  acquire.release();
  expect(await done).toBeUndefined();
  expect(await counters(bench)).toMatchObject({ waiting: 1, running: 0 });
});

test('a claim that arrives after the end of the lease starts nothing', async () => {
  const bench = await createCrawlerRunBench(store);
  const [rid = ''] = await bench.push(1);
  const claim = bench.faults.hold('queue.claim');
  const { run, done } = bench.start();
  await claim.reached;
  bench.clock.advance(15_001);
  const peer = await bench.takeOver();
  if (peer === undefined) throw new Error('the lease was kept');
  claim.release();
  expect(await done).toBeUndefined();
  expect(run.notify()).toBe(false);
  expect(bench.crawls).toEqual([]);
  const { jobs } = await store.queue.claim(peer, 20, bench.clock.now());
  expect(jobs).toMatchObject([{ rid, attempt: 1 }]);
});

test('jobs whose claim is answered after the end of the lease are not crawled', async () => {
  const bench = await createCrawlerRunBench(store);
  await bench.push(1);
  const claim = bench.faults.holdAnswer('queue.claim');
  const { done } = bench.start();
  await claim.reached;
  bench.clock.advance(15_001);
  claim.release();
  expect(await done).toBeUndefined();
  expect(bench.crawls).toEqual([]);
});

test('what is aborted between the end of its crawl and its delivery is not delivered', async () => {
  const bench = await createCrawlerRunBench(store, 'webhook');
  await bench.push(1);
  const { run, done } = bench.start();
  await startedCrawls(bench, 1);
  const finish = bench.faults.holdAnswer('queue.finish');
  bench.crawls[0]?.end();
  await finish.reached;
  run.abort();
  finish.release();
  expect(await done).toBeUndefined();
  expect(bench.posts).toEqual([]);
});

test('a run that must stop at once gives its jobs back untried and its crawler free', async () => {
  const bench = await createCrawlerRunBench(store);
  const rids = await bench.push(2);
  const { done, stop } = bench.start('first', { drainMs: 0 });
  await startedCrawls(bench, 2);
  stop();
  expect((await done)?.getTime()).toBeLessThanOrEqual(bench.clock.now().getTime());
  expect(bench.crawls.map(({ signal }) => signal.aborted)).toEqual([true, true]);
  const peer = await bench.takeOver();
  if (peer === undefined) throw new Error('the lease was kept');
  const { jobs } = await store.queue.claim(peer, 20, bench.clock.now());
  expect(jobs.map(({ rid }) => rid).toSorted()).toEqual(rids);
  expect(jobs).toMatchObject([
    { retry: 0, crashes: 0 },
    { retry: 0, crashes: 0 },
  ]);
});

test('a run that may drain writes the crawls that end in time and claims no more', async () => {
  const bench = await createCrawlerRunBench(store);
  const rids = await bench.push(2);
  const { run, done, stop } = bench.start();
  await startedCrawls(bench, 2);
  stop();
  const [later = ''] = await bench.push(1);
  run.notify();
  bench.crawls[0]?.end();
  await eventually(() => expect(run.activity().crawls).toBe(1));
  bench.clock.advance(10_001);
  expect((await done)?.getTime()).toBeLessThanOrEqual(bench.clock.now().getTime());
  const ended = bench.crawls[0]?.job.rid ?? '';
  expect(await storedRids(bench, [...rids, later])).toEqual([ended]);
  expect(bench.crawls).toHaveLength(2);
  expect(await counters(bench)).toMatchObject({ waiting: 2, running: 0 });
});

test('a run whose crawler was removed stops its crawls', async () => {
  const bench = await createCrawlerRunBench(store);
  await bench.push(1);
  const { run, done } = bench.start();
  await startedCrawls(bench, 1);
  await store.crawlers.remove(bench.crawler.crawlerId);
  run.refresh();
  expect(await done).toBeUndefined();
  expect(bench.crawls[0]?.signal.aborted).toBe(true);
});

test('a crawler that another process has is left to it', async () => {
  const bench = await createCrawlerRunBench(store);
  await bench.push(1);
  expect(await bench.takeOver()).toBeDefined();
  const { run, done } = bench.start();
  expect(await done).toBeUndefined();
  expect(run.notify()).toBe(false);
  expect(bench.crawls).toEqual([]);
});

test('work that arrives while a run lets its crawler go is crawled at once by the next run', async () => {
  const bench = await createCrawlerRunBench(store);
  const { crawler, faults } = bench;
  const release = faults.hold('queue.release');
  const wakes: [name: string, key: string][] = [];
  const wake = async (name: string, key: string): Promise<void> => void wakes.push([name, key]);
  const dispatcher = createDispatcher({ ...bench.deps('first'), scheduler: { wake } });
  const closing = new AbortController();
  const task = { key: crawler.crawlerId, signal: closing.signal, touch: async () => undefined };
  const first = dispatcher.run(task);
  await release.reached;
  await bench.push(1);
  dispatcher.notify(crawler.crawlerId);
  const second = dispatcher.run(task);
  release.release();
  await first;
  expect(wakes).toEqual([['crawl', crawler.crawlerId]]);
  await startedCrawls(bench, 1);
  bench.crawls[0]?.end();
  closing.abort();
  await second;
});

test('crawls whose claim the database could not keep are dropped, and their jobs are crawled by the next run', async () => {
  let takenBack = Promise.withResolvers<void>();
  const queue = {
    ...store.queue,
    claim: async (...args: Parameters<Store['queue']['claim']>) => ({
      ...(await store.queue.claim(...args)),
      durable: takenBack.promise,
    }),
  };
  const bench = await createCrawlerRunBench({ ...store, queue });
  const rids = await bench.push(2);
  const first = bench.start();
  // Crawls start before the claim is durable.
  await startedCrawls(bench, 2);
  takenBack.reject(new Error('the disk is full'));
  await expect(first.done).rejects.toThrow('the disk is full');
  expect(bench.crawls.map(({ signal }) => signal.aborted)).toEqual([true, true]);

  takenBack = Promise.withResolvers();
  takenBack.resolve();
  bench.clock.advance(RUN_TIMING.leaseMs + 1);
  const second = bench.start('second');
  await startedCrawls(bench, 4);
  for (const crawl of bench.crawls.slice(2)) crawl.end();
  await eventually(async () => expect(await storedRids(bench, rids)).toEqual(rids));
  await second.done;
});
