import { afterAll, beforeAll, expect, test } from 'vitest';
import type { DispatchTiming } from '../../../src/dispatcher/dispatcher.ts';
import { createUnwrittenStarts } from '../../../src/dispatcher/unwritten-starts.ts';
import type { Job } from '../../../src/domain/job.ts';
import type { QueueLook, Store } from '../../../src/store/store.ts';
import { withCrawlsInFlight } from '../../../src/store/with-crawls-in-flight.ts';
import { toRetry } from '../../contract/store/outcomes.ts';
import {
  type CrawlerRunBench,
  createCrawlerRunBench,
  RUN_TIMING,
  type StartedRun,
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

/** No start that may wait is written within a test. */
const NEVER: Partial<DispatchTiming> = { startDelayMs: 60_000 };

async function counters({ crawler }: CrawlerRunBench, from: Store = store) {
  const all = await from.crawlers.counters([crawler.crawlerId]);
  return all.get(crawler.crawlerId);
}

/** Starts a run over so many jobs, and ends its first crawls, whose starts are written at once. */
async function beyondFirst(
  bench: CrawlerRunBench,
  timing: Partial<DispatchTiming>,
): Promise<StartedRun> {
  const { concurrency } = bench.crawler;
  const started = bench.start('first', timing);
  for (const written of [1, 2, 3, 4]) {
    await eventually(() => expect(bench.crawls).toHaveLength(written * concurrency));
    const running = { running: concurrency, completed: (written - 1) * concurrency };
    await eventually(async () => expect(await counters(bench)).toMatchObject(running));
    for (const crawl of bench.crawls.slice(-concurrency)) crawl.end();
  }
  await eventually(async () =>
    expect(await counters(bench)).toMatchObject({ completed: 4 * concurrency }),
  );
  return started;
}

test('a start whose crawl ends soon is not written, and its job is crawled once', async () => {
  const bench = await createCrawlerRunBench(store);
  const { concurrency } = bench.crawler;
  const rids = await bench.push(concurrency * 7);
  const { run, done } = await beyondFirst(bench, NEVER);
  for (const round of [5, 6, 7]) {
    await eventually(() => expect(bench.crawls).toHaveLength(round * concurrency));
    expect(run.activity().crawls).toBe(concurrency);
    const completed = (round - 1) * concurrency;
    await eventually(async () =>
      expect(await counters(bench)).toMatchObject({
        running: 0,
        waiting: rids.length - completed,
        completed,
      }),
    );
    for (const crawl of bench.crawls.slice(-concurrency)) crawl.end();
  }
  expect(await done).toBeUndefined();
  expect(await counters(bench)).toMatchObject({ waiting: 0, completed: rids.length });
  expect(bench.crawls.map(({ job }) => job.rid).toSorted()).toEqual(rids.toSorted());
});

test('a look leaves out the crawls in flight that still wait in the store', async () => {
  const looks: QueueLook[] = [];
  const { queue } = store;
  const turn: Store['queue']['turn'] = (lease, work, now) => {
    if (work.look !== undefined) looks.push(work.look);
    return queue.turn(lease, work, now);
  };
  const bench = await createCrawlerRunBench({ ...store, queue: { ...queue, turn } });
  const { concurrency } = bench.crawler;
  await bench.push(concurrency * 5);
  const { run, done } = await beyondFirst(bench, NEVER);
  await eventually(() => expect(bench.crawls).toHaveLength(concurrency * 5));
  await bench.push(5);
  run.notify();
  await eventually(() => expect(run.activity().buffered).toBe(5));
  const late = bench.crawls.slice(-concurrency).map(({ job }) => job.rid);
  expect(looks.at(-1)?.except?.toSorted()).toEqual(late.toSorted());
  run.abort();
  await done;
});

test('a crawl that lasts is written as running', async () => {
  const bench = await createCrawlerRunBench(store);
  const { concurrency } = bench.crawler;
  await bench.push(concurrency * 5);
  const { run, done } = await beyondFirst(bench, { pollMs: 60_000, startDelayMs: 20 });
  await eventually(async () =>
    expect(await counters(bench)).toMatchObject({ running: concurrency, waiting: 0 }),
  );
  run.abort();
  await done;
});

test('all that is in flight counts as running for those who read counters', async () => {
  const bench = await createCrawlerRunBench(store);
  const { concurrency, accountId, crawlerId } = bench.crawler;
  await bench.push(concurrency * 6);
  const { run, done } = await beyondFirst(bench, NEVER);
  const inFlight = () => new Map([[crawlerId, run.activity().crawls]]);
  const shown = withCrawlsInFlight(store, inFlight);
  const expected = { running: concurrency, waiting: concurrency, pushed: concurrency * 6 };
  expect(await counters(bench)).toMatchObject({ running: 0, waiting: concurrency * 2 });
  expect(await counters(bench, shown)).toMatchObject(expected);
  const [overview] = await shown.listings.crawlers([accountId], 1);
  expect(overview?.counters).toMatchObject(expected);
  const { longest, total } = await shown.stats.queueDepths(100);
  const { running, waiting } = expected;
  expect(longest.find((each) => each.crawlerId === crawlerId)).toMatchObject({ running, waiting });
  expect(total).toMatchObject({ running });
  run.abort();
  await done;
});

test('a crawl in flight when the process dies is given back untried, and written at once by the next', async () => {
  const bench = await createCrawlerRunBench(store);
  const { concurrency } = bench.crawler;
  await bench.push(concurrency * 5);
  const { done } = await beyondFirst(bench, NEVER);
  await eventually(() => expect(bench.crawls).toHaveLength(5 * concurrency));
  bench.clock.advance(RUN_TIMING.leaseMs + 1);
  const next = bench.start('second', NEVER);
  await done;
  await eventually(() => expect(bench.crawls).toHaveLength(6 * concurrency));
  await eventually(async () =>
    expect(await counters(bench)).toMatchObject({ running: concurrency }),
  );
  for (const { job } of bench.crawls.slice(-concurrency)) {
    expect(job).toMatchObject({ attempt: 1, crashes: 0 });
  }
  next.run.abort();
  await next.done;
});

/** Pushes one job that is due after all that were pushed before. */
async function pushLast(bench: CrawlerRunBench, more: Partial<Job> = {}): Promise<string> {
  bench.clock.advance(10);
  const [rid = ''] = await bench.push(1, more);
  return rid;
}

test('a start is written at once if the job has crashed before, or its deadline is near', async () => {
  const bench = await createCrawlerRunBench(store);
  const { concurrency, crawlerId } = bench.crawler;
  await bench.push(concurrency * 4);
  const inMs = (ms: number): Date => new Date(bench.clock.now().getTime() + ms);
  await pushLast(bench);
  await pushLast(bench, { queueDeadline: inMs(60_000) });
  const near = await pushLast(bench, { queueDeadline: inMs(600) });
  const crashed = await pushLast(bench);
  const crash = {
    ...toRetry({ rid: crashed, crawlerId, attempt: 1, url: '' }, bench.clock.now()),
    crashed: true,
    startedAt: bench.clock.now(),
  };
  expect(await store.queue.finish([crash], bench.clock.now())).toEqual(['won']);
  const { run, done } = await beyondFirst(bench, NEVER);
  await eventually(() => expect(bench.crawls).toHaveLength(concurrency * 4 + 4));
  await eventually(async () =>
    expect(await counters(bench)).toMatchObject({ running: 2, waiting: 2, retrying: 0 }),
  );
  for (const rid of [near, crashed]) {
    expect(await store.queue.find(crawlerId, rid)).toMatchObject({ state: 'running' });
  }
  run.abort();
  await done;
});

test('starts become due in their order, after their delay or at once', () => {
  let now = 0;
  const starts = createUnwrittenStarts(100, () => now);
  const start = (rid: string) => ({ rid, attempt: 1, startedAt: new Date(now) });
  const ridsOf = (some: readonly { rid: string }[]) => some.map(({ rid }) => rid);
  starts.add(start('a'), false);
  now = 30;
  starts.add(start('b'), false);
  starts.add(start('c'), true);
  expect([starts.size, starts.due, starts.dueInMs]).toEqual([3, 1, 70]);
  expect(ridsOf(starts.take())).toEqual(['c']);
  now = 110;
  expect([starts.due, [...starts.rids()].toSorted()]).toEqual([1, ['a', 'b']]);
  expect([starts.remove('b')?.rid, starts.remove('b')]).toEqual(['b', undefined]);
  expect(ridsOf(starts.take())).toEqual(['a']);
  expect([starts.size, starts.due, starts.dueInMs]).toEqual([0, 0, Number.POSITIVE_INFINITY]);
});
