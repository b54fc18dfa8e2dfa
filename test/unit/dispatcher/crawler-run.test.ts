import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDispatcher } from '../../../src/dispatcher/dispatcher.ts';
import type { Store } from '../../../src/store/store.ts';
import { toRelease, toRetry, toStored } from '../../contract/store/outcomes.ts';
import { claimJobs, createBench } from '../../contract/store/store-harness.ts';
import {
  type CrawlerRunBench,
  createCrawlerRunBench,
  RUN_TIMING,
} from '../../support/crawler-run-bench.ts';
import { eventually } from '../../support/eventually.ts';
import { openEmbeddedStore } from '../../support/use-cases.ts';

let opened: Awaited<ReturnType<typeof openEmbeddedStore>>;
let store: Store;

beforeAll(async () => {
  opened = await openEmbeddedStore();
  ({ store } = opened);
});

afterAll(() => opened[Symbol.asyncDispose]());

/** Waits until `count` crawls were started in all. */
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
  expect(run.activity()).toMatchObject({ crawls: 3, deliveries: 0, buffered: 0 });
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
    ['a crawl started', { rid, crawler, attempt: 1, retry: 0 }],
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

/** Without polls, so that each turn of a run is one that its crawls need. Nothing renews the lease. */
const QUIET = { pollMs: 60_000, leaseMs: 600_000 };

/** Waits until the starts of all crawls are written. */
async function startsWritten(bench: CrawlerRunBench, count: number): Promise<void> {
  await startedCrawls(bench, count);
  await eventually(async () => expect(await counters(bench)).toMatchObject({ running: count }));
}

test('a page is stored once when the answer to its end is lost', async () => {
  const bench = await createCrawlerRunBench(store);
  const rids = await bench.push(1);
  const { done } = bench.start('first', QUIET);
  await startsWritten(bench, 1);
  bench.faults.loseAnswer('queue.turn');
  bench.crawls[0]?.end();
  expect(await done).toBeUndefined();
  expect(await storedRids(bench, rids)).toEqual(rids);
  expect(bench.crawls).toHaveLength(1);
  const none = { waiting: 0, running: 0, retrying: 0 };
  expect(await counters(bench)).toMatchObject({ ...none, completed: 1 });
});

test('a short outage of the database costs no crawl, whether its start was written or not', async () => {
  const bench = await createCrawlerRunBench(store);
  const rids = await bench.push(3);
  // The turn that finds the jobs is answered; the one with their starts is not done.
  const look = bench.faults.holdAnswer('queue.turn');
  const starts = bench.faults.hold('queue.turn');
  bench.faults.refuse('queue.turn');
  const { done } = bench.start('first', QUIET);
  await look.reached;
  look.release();
  await starts.reached;
  bench.crawls[0]?.end();
  bench.faults.away = true;
  starts.release();
  bench.crawls[1]?.end();
  bench.faults.away = false;
  await eventually(async () => expect(await counters(bench)).toMatchObject({ completed: 2 }));
  bench.crawls[2]?.end();
  expect(await done).toBeUndefined();
  expect(await storedRids(bench, rids)).toEqual(rids);
  expect(bench.crawls.map(({ signal }) => signal.aborted)).toEqual([false, false, false]);
  expect(await counters(bench)).toMatchObject({ waiting: 0, running: 0, completed: 3 });
});

test('a page to be delivered whose end lost its answer is delivered by the next run', async () => {
  const bench = await createCrawlerRunBench(store, 'webhook');
  const rids = await bench.push(1);
  const first = bench.start('first', QUIET);
  await startsWritten(bench, 1);
  bench.faults.loseAnswer('queue.turn');
  bench.crawls[0]?.end();
  expect(await first.done).toBeDefined();
  expect(bench.posts).toEqual([]);

  const second = bench.start();
  await eventually(() => expect(bench.posts.map(({ rid }) => rid)).toEqual(rids));
  await second.done;
  expect(bench.crawls).toHaveLength(1);
  expect(bench.posts).toHaveLength(1);
  expect(await counters(bench)).toMatchObject({ deliveriesPending: 0 });
});

for (const change of ['purged', 'deleted', 'paused'] as const) {
  test(`a job that is ${change} by another process before its start is written is not crawled`, async () => {
    const bench = await createCrawlerRunBench(store);
    const [rid = ''] = await bench.push(1);
    const look = bench.faults.holdAnswer('queue.turn');
    const start = bench.faults.hold('queue.turn');
    const { done } = bench.start('first', QUIET);
    await look.reached;
    look.release();
    await start.reached;
    const { crawlerId } = bench.crawler;
    const now = bench.clock.now();
    if (change === 'purged') await store.queue.purge(crawlerId, now);
    if (change === 'deleted') await store.queue.deleteJob(crawlerId, rid, now);
    if (change === 'paused') await store.crawlers.setPaused(crawlerId, 'user_pause', now);
    start.release();
    expect(await done).toBeUndefined();
    expect(bench.crawls.map(({ signal }) => signal.aborted)).toEqual([true]);
    const left = change === 'paused' ? { waiting: 1 } : { waiting: 0, [change]: 1 };
    expect(await counters(bench)).toMatchObject({ running: 0, completed: 0, ...left });
  });
}

test('what is read ahead still waits: a job that is deleted there never starts, and the next does', async () => {
  const bench = await createCrawlerRunBench(store);
  const rids = await bench.push(bench.crawler.concurrency + 2);
  const { run, done, stop } = bench.start();
  await startsWritten(bench, bench.crawler.concurrency);
  expect(await counters(bench)).toMatchObject({ waiting: 2 });
  const waiting = rids.filter((rid) => bench.crawls.every(({ job }) => job.rid !== rid));
  const [first = '', second = ''] = waiting;
  await store.queue.deleteJob(bench.crawler.crawlerId, first, bench.clock.now());
  run.abortJob(first);
  bench.crawls[0]?.end();
  await eventually(() => expect(bench.crawls.at(-1)?.job.rid).toBe(second));
  expect(bench.crawls).toHaveLength(bench.crawler.concurrency + 1);
  stop();
  run.abort();
  await done;
});

test('crawls that ended before their start was written, and that one turn has no room for, are not read again', async () => {
  const bench = await createCrawlerRunBench(store);
  const { concurrency } = bench.crawler;
  await bench.push(concurrency * 6);
  const { run, done } = bench.start('first', QUIET);
  await startsWritten(bench, concurrency);
  await eventually(() => expect(run.activity().buffered).toBeGreaterThanOrEqual(concurrency * 3));
  const turn = bench.faults.hold('queue.turn');
  bench.crawls[0]?.end();
  await turn.reached;
  for (const crawl of bench.crawls.slice(1, concurrency)) crawl.end();
  await startedCrawls(bench, concurrency * 2);
  for (const crawl of bench.crawls.slice(concurrency)) crawl.end(new Uint8Array(1024 * 1024));
  await startedCrawls(bench, concurrency * 3);
  turn.release();
  const completed = concurrency * 2;
  await eventually(async () => expect(await counters(bench)).toMatchObject({ completed }));
  // All that wait: those in flight, and those that have ended, are not among them.
  expect(run.activity().buffered).toBe(concurrency * 3);
  run.abort();
  await done;
});

test('a job whose start was lost, and that is due again, is crawled when its crawl has ended', async () => {
  const bench = await createCrawlerRunBench(store);
  await bench.push(3);
  const look = bench.faults.holdAnswer('queue.turn');
  const starts = bench.faults.hold('queue.turn');
  const { run, done } = bench.start('first', QUIET);
  await look.reached;
  // The turn with the starts looks again.
  run.notify();
  look.release();
  await starts.reached;
  const [lost] = bench.crawls;
  if (lost === undefined) throw new Error('nothing was started');
  // Another process has tried it and given it back.
  const { rid } = lost.job;
  const now = bench.clock.now();
  const release = { ...toRelease({ ...lost.job, attempt: 1 }), startedAt: now };
  expect(await store.queue.finish([release], now)).toEqual(['won']);
  starts.release();
  await eventually(() => expect(lost.signal.aborted).toBe(true));
  await eventually(() => expect(bench.crawls.filter(({ job }) => job.rid === rid)).toHaveLength(2));
  expect(run.activity().crawls).toBe(3);
  run.abort();
  await done;
  expect(bench.crawls.every(({ signal }) => signal.aborted)).toBe(true);
});

test('a slot that becomes free while a turn waits for the database is used at once', async () => {
  const bench = await createCrawlerRunBench(store);
  const { concurrency } = bench.crawler;
  await bench.push(concurrency * 3);
  const { run, done } = bench.start('first', QUIET);
  await startsWritten(bench, concurrency);
  await eventually(() => expect(run.activity().buffered).toBeGreaterThan(0));
  const turn = bench.faults.hold('queue.turn');
  bench.crawls[0]?.end();
  await turn.reached;
  bench.crawls[1]?.end();
  await startedCrawls(bench, concurrency + 2);
  turn.release();
  run.abort();
  await done;
});

test('a run whose renewal is refused stops its crawls and leaves them to the peer', async () => {
  const bench = await createCrawlerRunBench(store);
  const [rid = ''] = await bench.push(1);
  const { done } = bench.start();
  await startsWritten(bench, 1);
  // The renewal is sent in time, and arrives when the lease has lapsed and a peer has it.
  const renewal = bench.faults.hold('queue.visit');
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
  const { jobs } = await claimJobs(store, peer, 20, bench.clock.now());
  expect(jobs).toMatchObject([{ rid, attempt: 2 }]);
  expect(await storedRids(bench, [rid])).toEqual([]);
});

test('crawls end with their lease, also while a turn waits for the database', async () => {
  const bench = await createCrawlerRunBench(store);
  await bench.push(2);
  const { done } = bench.start();
  await startedCrawls(bench, 2);
  await startsWritten(bench, 2);
  const turn = bench.faults.hold('queue.turn');
  bench.crawls[0]?.end();
  await turn.reached;
  // The look and the renewal.
  const visits = [bench.faults.hold('queue.visit'), bench.faults.hold('queue.visit')];
  bench.clock.advance(15_001);
  await eventually(() => expect(bench.crawls[1]?.signal.aborted).toBe(true));
  for (const each of [turn, ...visits]) each.release();
  expect(await done).toBeUndefined();
});

test('the next run starts nothing until the crawls of the one that lost its lease have ended', async () => {
  const bench = await createCrawlerRunBench(store);
  const { concurrency, crawlerId } = bench.crawler;
  await bench.push(concurrency);
  let inFlight = 0;
  let most = 0;
  const signals: AbortSignal[] = [];
  const dispatcher = createDispatcher({
    ...bench.deps('first', { renewMs: 600_000 }),
    async crawlJob(job, _crawler, signal) {
      inFlight += 1;
      most = Math.max(most, inFlight);
      if (signals.push(signal) <= concurrency) {
        await once(signal, 'abort');
        // Its thread has other work first.
        await setTimeout(200);
      }
      inFlight -= 1;
      signal.throwIfAborted();
      return { outcome: toStored(job), held: undefined };
    },
  });
  const run = () =>
    dispatcher.run({
      key: crawlerId,
      signal: new AbortController().signal,
      touch: async () => undefined,
    });
  const first = run();
  await eventually(() => expect(signals).toHaveLength(concurrency));
  bench.clock.advance(15_001);
  await eventually(() => expect(signals.every(({ aborted }) => aborted)).toBe(true));
  await run();
  await first;
  await eventually(async () =>
    expect(await counters(bench)).toMatchObject({ completed: concurrency }),
  );
  expect(most).toBe(concurrency);
  await dispatcher.close();
});

test('crawls that ended in an outage are written, also when it is longer than the lease', async () => {
  const bench = await createCrawlerRunBench(store);
  const rids = await bench.push(3);
  const { done } = bench.start();
  await startsWritten(bench, 3);
  bench.faults.away = true;
  const [first, second, third] = bench.crawls;
  first?.end();
  second?.end();
  bench.clock.advance(15_001);
  await eventually(() => expect(third?.signal.aborted).toBe(true));
  bench.faults.away = false;
  expect(await done).toBeUndefined();
  const ended = [first, second].map((crawl) => crawl?.job.rid ?? '');
  expect((await storedRids(bench, rids)).toSorted()).toEqual(ended.toSorted());
  expect(await counters(bench)).toMatchObject({ completed: 2 });
});

test('deliveries that were acknowledged in an outage are written, also when it is longer than the lease', async () => {
  const bench = await createCrawlerRunBench(store, 'webhook');
  const rids = await bench.push(2);
  const { run, done } = bench.start();
  await startsWritten(bench, 2);
  const finish = bench.faults.holdAnswer('queue.turn');
  for (const crawl of bench.crawls) crawl.end();
  await finish.reached;
  bench.faults.away = true;
  finish.release();
  await eventually(() => expect(bench.posts.length).toBeGreaterThan(0));
  const posted = bench.posts.length;
  await eventually(() => expect(run.activity()).toMatchObject({ deliveries: 0, buffered: 0 }));
  bench.clock.advance(15_001);
  await eventually(() => expect(run.notify()).toBe(false));
  bench.faults.away = false;
  expect(await done).toBeUndefined();
  expect(await counters(bench)).toMatchObject({ delivered: posted });
  const next = await bench.start('second').done;
  expect(next).toBeUndefined();
  expect(bench.posts.map(({ rid }) => rid).toSorted()).toEqual(rids.toSorted());
});

/** Waits until the lease has been renewed at that moment or later. */
async function leaseReaches(bench: CrawlerRunBench, renewedAt: Date): Promise<void> {
  const until = new Date(renewedAt.getTime() + RUN_TIMING.leaseMs);
  await eventually(async () => {
    const { dispatchedBy } = (await counters(bench)) ?? {};
    expect(dispatchedBy?.until.getTime()).toBeGreaterThanOrEqual(until.getTime());
  });
}

test('a renewal that fails is repeated at once, however little of the lease is left', async () => {
  const bench = await createCrawlerRunBench(store);
  const rids = await bench.push(1);
  const { done } = bench.start();
  await startedCrawls(bench, 1);
  bench.faults.refuse('queue.visit');
  bench.clock.advance(13_500);
  const renewedAt = bench.clock.now();
  const renewal = bench.faults.holdAnswer('queue.visit');
  await renewal.reached;
  renewal.release();
  await leaseReaches(bench, renewedAt);
  bench.clock.advance(2_000);
  bench.crawls[0]?.end();
  await done;
  expect(await storedRids(bench, rids)).toEqual(rids);
});

test('a look that takes long holds up no renewal', async () => {
  const bench = await createCrawlerRunBench(store);
  const rids = await bench.push(1);
  const { done } = bench.start();
  await startedCrawls(bench, 1);
  const look = bench.faults.hold('queue.visit');
  await look.reached;
  const renewal = bench.faults.holdAnswer('queue.visit');
  bench.clock.advance(13_500);
  const renewedAt = bench.clock.now();
  await renewal.reached;
  renewal.release();
  await leaseReaches(bench, renewedAt);
  look.release();
  bench.crawls[0]?.end();
  await done;
  expect(await storedRids(bench, rids)).toEqual(rids);
});

test('a renewal that fails costs no crawl: the next one comes before the lease ends', async () => {
  const bench = await createCrawlerRunBench(store);
  const rids = await bench.push(1);
  const { done } = bench.start();
  await startedCrawls(bench, 1);
  bench.faults.refuse('queue.visit');
  bench.clock.advance(6_000);
  const renewal = bench.faults.holdAnswer('queue.visit');
  bench.clock.advance(6_000);
  await renewal.reached;
  renewal.release();
  expect(bench.crawls[0]?.signal.aborted).toBe(false);
  bench.crawls[0]?.end();
  await done;
  expect(await storedRids(bench, rids)).toEqual(rids);
});

test('crawls are aborted when the lease ends, also while a turn waits for the database', async () => {
  const bench = await createCrawlerRunBench(store);
  await bench.push(2);
  const { done } = bench.start('first', { pollMs: 60_000, leaseMs: 2_000 });
  await startsWritten(bench, 2);
  const turn = bench.faults.hold('queue.turn');
  bench.crawls[0]?.end();
  await turn.reached;
  bench.clock.advance(1_001);
  await eventually(() => expect(bench.crawls[1]?.signal.aborted).toBe(true));
  turn.release();
  expect(await done).toBeUndefined();
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

test('a crawler whose account may not crawl is let go, and asked for again after seconds', async () => {
  const bench = await createCrawlerRunBench(store);
  await bench.push(1);
  const wakes: Date[] = [];
  const dispatcher = createDispatcher({
    ...bench.deps('first'),
    scheduler: { wake: async (_name, _key, at) => void wakes.push(at), runNow: () => true },
    mayCrawl: async () => false,
  });
  const { crawlerId } = bench.crawler;
  const signal = new AbortController().signal;
  await dispatcher.run({ key: crawlerId, signal, touch: async () => undefined });
  const now = bench.clock.now().getTime();
  expect(bench.crawls).toEqual([]);
  expect(wakes).toHaveLength(1);
  const wakeMs = wakes[0]?.getTime() ?? 0;
  expect(wakeMs - now).toBeGreaterThan(10_000);
  const due = (ms: number) => store.queue.crawlersWithWorkDue(new Date(ms), 1_000);
  expect(await due(wakeMs - 1)).not.toContain(crawlerId);
  expect(await due(wakeMs)).toContain(crawlerId);
  await dispatcher.close();
});

test('a crawler of which all hosts are put aside is let go until the first is to be tried', async () => {
  const bench = await createCrawlerRunBench(store);
  await bench.push(6);
  const begunMs = bench.clock.now().getTime();
  const wakes: Date[] = [];
  const dispatcher = createDispatcher({
    ...bench.deps('first'),
    scheduler: { wake: async (_name, _key, at) => void wakes.push(at), runNow: () => true },
    crawlJob: async (job) => ({
      outcome: toRetry(job, bench.clock.now()),
      held: undefined,
      answer: { kind: 'away', reason: 'connection_failed' },
    }),
  });
  const { crawlerId } = bench.crawler;
  const signal = new AbortController().signal;
  const run = () => dispatcher.run({ key: crawlerId, signal, touch: async () => undefined });
  await run();
  expect(await counters(bench)).toMatchObject({ retrying: 6 });
  // A run that has seen the host open may begin once more, to see that nothing else is due.
  if ((wakes[0]?.getTime() ?? 0) < begunMs + 3_000) await run();
  const wakeMs = wakes.at(-1)?.getTime() ?? 0;
  expect(wakeMs).toBeGreaterThanOrEqual(begunMs + 3_000);
  expect(wakeMs).toBeLessThan(begunMs + 15_000);

  // A job of another host that falls due before that is in time.
  const dueAt = new Date(bench.clock.now().getTime() + 500);
  await bench.push(1, { host: 'open.example', url: 'https://open.example/', notBefore: dueAt });
  await run();
  expect(wakes.at(-1)).toEqual(dueAt);
  await dispatcher.close();
});

test.each([
  ['joined', undefined, 'shop'],
  ['left', 'shop', undefined],
])(
  'a run that knows its crawler as it was before it %s a pace group crawls all',
  async (_, before, after) => {
    const bench = await createCrawlerRunBench(store);
    const politeness = (group?: string) => ({
      maxPerHost: 0,
      delayMs: 0,
      robotsTxt: false,
      ...(group === undefined ? {} : { group }),
    });
    const { crawlerId } = bench.crawler;
    const known = { ...bench.crawler, politeness: politeness(before) };
    const changedAt = new Date(bench.clock.now().getTime() + 1);
    await store.crawlers.update(crawlerId, { politeness: politeness(after) }, changedAt);
    await bench.push(3);
    const { done } = bench.start('first', {}, { crawler: known });
    await startedCrawls(bench, 3);
    for (const crawl of bench.crawls) crawl.end();
    await done;
    expect(await counters(bench)).toMatchObject({ completed: 3, waiting: 0, running: 0 });
  },
);

test('what a run learns of its hosts is known, whatever runs begin before it has its lease', async () => {
  const bench = await createCrawlerRunBench(store);
  const { crawlerId } = bench.crawler;
  await bench.push(1);
  // The lease is asked for long before it is got, on a busy machine.
  const dispatcher = createDispatcher(bench.deps('first', { leaseMs: 600_000 }));
  const run = (key: string) =>
    dispatcher.run({ key, signal: new AbortController().signal, touch: async () => undefined });
  const acquire = bench.faults.hold('queue.acquire');
  const done = run(crawlerId);
  await acquire.reached;
  for (let n = 0; n < 101; n += 1) {
    const other = await createBench({ store }).crawler();
    await run(other.crawlerId);
  }
  acquire.release();
  await startedCrawls(bench, 1);
  expect(dispatcher.hostStates(crawlerId)).toMatchObject([{ host: 'example.com', running: 1 }]);
  bench.crawls[0]?.end();
  await done;
  await dispatcher.close();
});

test('the lease is told of before the first crawl, and by a run that got it alone', async () => {
  const bench = await createCrawlerRunBench(store);
  const leases: string[] = [];
  const start = (processId: string) =>
    bench.start(
      processId,
      {},
      {
        onLease: () => void leases.push(`${processId} at ${bench.crawls.length}`),
      },
    );
  await bench.takeOver();
  // A process that helps is woken for its crawler, which another one leads.
  await start('helper').done;
  bench.clock.advance(15_001);
  await bench.push(1);
  const { done } = start('first');
  await startedCrawls(bench, 1);
  bench.crawls[0]?.end();
  await done;
  expect(leases).toEqual(['first at 0']);
});

test('a claim that arrives after the end of the lease starts nothing', async () => {
  const bench = await createCrawlerRunBench(store);
  const [rid = ''] = await bench.push(1);
  const claim = bench.faults.hold('queue.turn');
  const { run, done } = bench.start();
  await claim.reached;
  bench.clock.advance(15_001);
  const peer = await bench.takeOver();
  if (peer === undefined) throw new Error('the lease was kept');
  claim.release();
  expect(await done).toBeUndefined();
  expect(run.notify()).toBe(false);
  expect(bench.crawls).toEqual([]);
  const { jobs } = await claimJobs(store, peer, 20, bench.clock.now());
  expect(jobs).toMatchObject([{ rid, attempt: 1 }]);
});

test('jobs whose claim is answered after the end of the lease are not crawled', async () => {
  const bench = await createCrawlerRunBench(store);
  await bench.push(1);
  const claim = bench.faults.holdAnswer('queue.turn');
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
  const { run, done } = bench.start('first', QUIET);
  await startsWritten(bench, 1);
  const finish = bench.faults.holdAnswer('queue.turn');
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
  const { jobs } = await claimJobs(store, peer, 20, bench.clock.now());
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
  const dispatcher = createDispatcher({
    ...bench.deps('first'),
    scheduler: { wake, runNow: () => true },
  });
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
