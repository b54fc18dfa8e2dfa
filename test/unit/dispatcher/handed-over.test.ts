import { afterAll, beforeAll, expect, test } from 'vitest';
import type { DispatchTiming } from '../../../src/dispatcher/dispatcher.ts';
import type { Job } from '../../../src/domain/job.ts';
import type { Store } from '../../../src/store/store.ts';
import {
  type CrawlerRunBench,
  createCrawlerRunBench,
  type StartedCrawl,
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

const TIMING: Partial<DispatchTiming> = { startDelayMs: 60_000, idleReleaseMs: 10_000 };
/** Crawls of a run, for each slot, that wait for none. */
const FIRST_ROUNDS = 4;

async function counters({ crawler }: CrawlerRunBench) {
  return (await store.crawlers.counters([crawler.crawlerId])).get(crawler.crawlerId);
}

const ridsOf = (crawls: readonly Pick<StartedCrawl, 'job'>[]): string[] =>
  crawls.map(({ job }) => job.rid);

/** What was handed over and has not started, from the one of that number on. */
const waitingIn = ({ handedOver }: CrawlerRunBench, from = 0) =>
  handedOver.slice(from).filter(({ slot }) => !slot.isHeld);

/** Starts a run over its first crawls and so many more, some of which are handed over then. */
async function startHandingOver(
  bench: CrawlerRunBench,
  more: number,
  fields: Partial<Job> = {},
): Promise<StartedRun & { readonly inFlight: readonly StartedCrawl[]; readonly rids: string[] }> {
  const { concurrency } = bench.crawler;
  const first = await bench.push(concurrency * FIRST_ROUNDS);
  bench.clock.advance(10);
  const others = await bench.push(more, fields);
  const started = bench.start('first', TIMING);
  for (let round = 1; round <= FIRST_ROUNDS; round += 1) {
    await eventually(() => expect(bench.crawls).toHaveLength(round * concurrency));
    for (const crawl of bench.crawls.slice(-concurrency)) crawl.end();
  }
  await eventually(() => expect(bench.crawls).toHaveLength((FIRST_ROUNDS + 1) * concurrency));
  const inFlight = bench.crawls.slice(-concurrency);
  return { ...started, inFlight, rids: [...first, ...others] };
}

test('jobs that were handed over wait, start in the slots of others, and are crawled once', async () => {
  const bench = await createCrawlerRunBench(store);
  const { concurrency } = bench.crawler;
  const { run, done, inFlight, rids } = await startHandingOver(bench, concurrency * 3);
  await eventually(() => expect(waitingIn(bench)).toHaveLength(concurrency * 2));
  expect(run.activity()).toMatchObject({ crawls: concurrency, buffered: concurrency * 2 });
  await eventually(async () =>
    expect(await counters(bench)).toMatchObject({ running: 0, waiting: concurrency * 3 }),
  );

  // Each of those in flight ends, and its thread starts the next one.
  const waiting = waitingIn(bench);
  for (const [index, crawl] of inFlight.entries()) {
    const next = waiting[index];
    if (next === undefined) throw new Error('nothing was handed over');
    next.start();
    crawl.slot.passTo(next.slot);
    crawl.end();
  }
  await eventually(async () =>
    expect(await counters(bench)).toMatchObject({ waiting: concurrency * 2 }),
  );
  expect(run.activity()).toMatchObject({ crawls: concurrency, buffered: concurrency });

  // No thread starts the others: the dispatcher does.
  for (const crawl of bench.crawls.slice(-concurrency)) crawl.end();
  await eventually(() => expect(bench.crawls).toHaveLength(rids.length));
  for (const crawl of bench.crawls.slice(-concurrency)) crawl.end();
  const completed = { waiting: 0, running: 0, completed: rids.length };
  await eventually(async () => expect(await counters(bench)).toMatchObject(completed));
  expect(ridsOf(bench.crawls).toSorted()).toEqual(rids.toSorted());
  run.abort();
  await done;
});

test('a crawl may end before its thread has reported that it has started', async () => {
  const bench = await createCrawlerRunBench(store);
  const { concurrency } = bench.crawler;
  const { run, done, inFlight, rids } = await startHandingOver(bench, concurrency + 1);
  await eventually(() => expect(waitingIn(bench)).toHaveLength(1));
  const [next] = waitingIn(bench);
  next?.start();
  bench.crawls.at(-1)?.end();
  await eventually(async () =>
    expect(await counters(bench)).toMatchObject({ waiting: concurrency }),
  );
  for (const crawl of inFlight) {
    if (next !== undefined) crawl.slot.passTo(next.slot);
    crawl.end();
  }
  const completed = { waiting: 0, running: 0, completed: rids.length };
  await eventually(async () => expect(await counters(bench)).toMatchObject(completed));
  expect(run.activity()).toMatchObject({ crawls: 0, buffered: 0 });
  run.abort();
  await done;
});

test('what was handed over goes back when the crawler changes, and is crawled once', async () => {
  const bench = await createCrawlerRunBench(store);
  const { concurrency } = bench.crawler;
  const { run, done, rids } = await startHandingOver(bench, concurrency * 2);
  await eventually(() => expect(waitingIn(bench)).toHaveLength(concurrency));
  const handed = ridsOf(waitingIn(bench));
  const before = bench.handedOver.length;
  run.refresh();
  // They are read again, and handed over again.
  await eventually(() => expect(waitingIn(bench, before)).toHaveLength(concurrency));
  expect(ridsOf(waitingIn(bench, before)).toSorted()).toEqual(handed.toSorted());
  expect(run.activity()).toMatchObject({ crawls: concurrency, buffered: concurrency });
  for (const _ of [1, 2]) {
    for (const crawl of bench.crawls.slice(-concurrency)) crawl.end();
    await eventually(() => expect(bench.crawls).toHaveLength(rids.length));
  }
  const completed = { waiting: 0, running: 0, completed: rids.length };
  await eventually(async () => expect(await counters(bench)).toMatchObject(completed));
  expect(ridsOf(bench.crawls).toSorted()).toEqual(rids.toSorted());
  run.abort();
  await done;
});

test('a job that was deleted after it was handed over is not crawled', async () => {
  const bench = await createCrawlerRunBench(store);
  const { concurrency, crawlerId } = bench.crawler;
  const { run, done, rids } = await startHandingOver(bench, concurrency + 2);
  await eventually(() => expect(waitingIn(bench)).toHaveLength(2));
  const [deleted = ''] = ridsOf(waitingIn(bench));
  await store.queue.deleteJob(crawlerId, deleted, bench.clock.now());
  run.abortJob(deleted);
  await eventually(() => expect(run.activity().buffered).toBe(1));
  for (const crawl of bench.crawls.slice(-concurrency)) crawl.end();
  await eventually(() => expect(bench.crawls).toHaveLength(rids.length - 1));
  expect(ridsOf(bench.crawls)).not.toContain(deleted);
  run.abort();
  await done;
});

test.each([
  ['with a deadline', { queueDeadline: new Date('2100-01-01') }],
  ['with a session', { parameters: { cookies_session: 'shop' } }],
] as const)('a job %s waits for its slot in the dispatcher', async (_, fields) => {
  const bench = await createCrawlerRunBench(store);
  const { concurrency } = bench.crawler;
  const { run, done, rids } = await startHandingOver(bench, concurrency * 2, fields);
  await eventually(() =>
    expect(run.activity()).toMatchObject({ crawls: concurrency, buffered: concurrency }),
  );
  for (const crawl of bench.crawls.slice(-concurrency)) crawl.end();
  await eventually(() => expect(bench.crawls).toHaveLength(rids.length));
  expect(bench.handedOver).toEqual([]);
  run.abort();
  await done;
});
