import { expect, test } from 'vitest';
import { databaseUnavailable } from '../../../src/domain/errors.ts';
import { createCrawlerAccess } from '../../../src/service/crawlers/crawler-access.ts';
import { createCrawlTimes } from '../../../src/service/crawls/crawl-times.ts';
import { createAccountActivities } from '../../../src/service/reads/account-activity.ts';
import { createCrawlerList } from '../../../src/service/reads/crawler-list.ts';
import { createOverviews } from '../../../src/service/reads/overviews.ts';
import {
  createOverviewPoll,
  MAX_FAILED_READINGS,
} from '../../../src/service/watches/overview-poll.ts';
import { createWatches } from '../../../src/service/watches/watches.ts';
import { decorateStore } from '../../../src/store/decorate-store.ts';
import type { Store } from '../../../src/store/store.ts';
import { makeJobs } from '../../contract/store/store-harness.ts';
import { eventually } from '../../support/eventually.ts';
import { createTestClock } from '../../support/test-clock.ts';
import { createUseCases, openEmbeddedStore } from '../../support/use-cases.ts';

/** The same store, with the names of its calls. */
function counted(store: Store): { readonly store: Store; readonly calls: string[] } {
  const calls: string[] = [];
  return {
    calls,
    store: decorateStore(store, (operation, call) => {
      calls.push(operation);
      return call();
    }),
  };
}

function watchesOf(
  store: Store,
  intervalMs: number,
  { keepAliveMs, maxCrawlers }: { keepAliveMs?: number; maxCrawlers?: number } = {},
) {
  const { clock } = createUseCases(store);
  const overviews = createOverviews({
    listings: store.listings,
    clock,
    attention: () => [],
    holds: async () => [],
    ...(maxCrawlers === undefined ? {} : { maxCrawlers }),
  });
  return createWatches({
    poll: createOverviewPoll({ overviews, intervalMs }),
    access: createCrawlerAccess({ crawlers: store.crawlers, clock }),
    activities: createAccountActivities({
      overviews,
      limits: { crawlerQueue: 10, accountQueue: 10 },
      pushesPerSecond: 0,
    }),
    crawlTimes: createCrawlTimes(),
    ...(keepAliveMs === undefined ? {} : { keepAliveMs }),
  });
}

/** Takes what a stream yields until it is told to stop. */
function taking<Value>(open: (signal: AbortSignal) => AsyncIterable<Value>) {
  const abort = new AbortController();
  const values: Value[] = [];
  const done = (async () => {
    for await (const value of open(abort.signal)) values.push(value);
  })().catch((error: unknown) => {
    if (!abort.signal.aborted) throw error;
  });
  return {
    values,
    async [Symbol.asyncDispose]() {
      abort.abort();
      await done;
    },
  };
}

test('however many watch however many accounts, each reading is one call of the store', async () => {
  await using opened = await openEmbeddedStore();
  const { store, calls } = counted(opened.store);
  const { account, crawlers } = createUseCases(opened.store);
  const owners = [await account(), await account(), await account()];
  for (const { normal } of owners) await crawlers.create(normal, 'one', { settings: {} });
  const watches = watchesOf(store, 20);
  {
    await using stack = new AsyncDisposableStack();
    const streams = Array.from({ length: 12 }, (_, n) => {
      const owner = owners[n % 3]?.normal;
      if (owner === undefined) throw new Error('no owner');
      return stack.use(taking((signal) => watches.crawlers(owner, '', signal)));
    });
    await eventually(() => {
      for (const { values } of streams) expect(values).toHaveLength(1);
    });
    const before = calls.length;
    const { normal } = owners[0] ?? (await account());
    const { crawler } = await crawlers.details(normal, 'one');
    const { crawlerId, accountId } = crawler;
    await opened.store.queue.push(
      { crawlerId, accountId, jobs: makeJobs(crawler, 2) },
      { crawlerQueue: 10, accountQueue: 10 },
      new Date(),
    );
    await eventually(() => {
      expect(streams[0]?.values.at(-1)?.changed).toMatchObject([{ counters: { waiting: 2 } }]);
      expect(calls.length).toBeGreaterThan(before + 3);
    });
    expect(new Set(calls)).toEqual(new Set(['listings.crawlers']));
    // The watcher of another account was not notified.
    expect(streams[1]?.values).toHaveLength(1);
  }
  // Nobody watches, nothing is read; the test waits for another process's watcher.
  const { length } = calls;
  const [{ normal } = await account()] = owners;
  const others = watchesOf(opened.store, 20, { keepAliveMs: 50 });
  await using other = taking((signal) => others.activity(normal, signal));
  await eventually(() => expect(other.values.length).toBeGreaterThan(2));
  expect(calls).toHaveLength(length);
});

test('a slow reader gets the newest state, and a silent stream gives signs of life', async () => {
  await using opened = await openEmbeddedStore();
  const { account, crawlers } = createUseCases(opened.store);
  const { normal } = await account();
  const { crawler } = await crawlers.create(normal, 'one', { settings: {} });
  const watches = watchesOf(opened.store, 10, { keepAliveMs: 50 });
  await using silent = taking((signal) => watches.activity(normal, signal));
  await eventually(() => {
    expect(silent.values.length).toBeGreaterThan(2);
    expect(silent.values.at(-1)?.activity).toBeUndefined();
  });
  const abort = new AbortController();
  const slow = watches.crawler(normal, 'one', abort.signal);
  expect((await slow.next()).value).toMatchObject({ crawler: { counters: { pushed: 0 } } });
  const { crawlerId, accountId } = crawler;
  for (let n = 1; n <= 3; n += 1) {
    const jobs = makeJobs(crawler, 1);
    const limits = { crawlerQueue: 10, accountQueue: 10 };
    await opened.store.queue.push({ crawlerId, accountId, jobs }, limits, new Date());
    // Seen by who reads, not by who does not.
    await eventually(() => expect(silent.values.at(-1)).toBeDefined());
  }
  await eventually(() => {
    const told = silent.values.findLast(({ activity }) => activity !== undefined);
    expect(told?.activity?.totals.pushed).toBe(3);
  });
  expect((await slow.next()).value).toMatchObject({ crawler: { counters: { pushed: 3 } } });
  abort.abort(new Error('gone'));
  await expect(slow.next()).rejects.toThrow('gone');
});

test('a thousand crawlers are sorted and filtered with one call of the store', async () => {
  await using opened = await openEmbeddedStore();
  const { store, calls } = counted(opened.store);
  const { account, crawlers, clock } = createUseCases(opened.store);
  const { normal } = await account();
  const names = Array.from({ length: 1_000 }, (_, n) => `crawler-${String(n).padStart(4, '0')}`);
  await Promise.all(names.map((name) => crawlers.create(normal, name, { settings: {} })));
  const list = createCrawlerList({
    overviews: createOverviews({
      listings: store.listings,
      clock,
      attention: () => [],
      holds: async () => [],
    }),
  });
  const page = await list(normal, {
    nameContains: '-09',
    needsAttention: false,
    status: 'running',
    order: 'created',
    descending: true,
    limit: 60,
    cursor: '',
  });
  expect(page.crawlers).toHaveLength(60);
  expect(page.total).toBe(100);
  expect(calls).toEqual(['listings.crawlers']);
});

test('of an account with too many crawlers the first are listed and watched, and a name finds all', async () => {
  await using opened = await openEmbeddedStore();
  const { store } = opened;
  const { account, crawlers, clock } = createUseCases(store);
  const { normal } = await account();
  for (const name of ['a-shop', 'b-news', 'c-shop']) {
    await crawlers.create(normal, name, { settings: {} });
  }
  const listed = async (maxCrawlers: number, nameContains: string) => {
    const { listings } = store;
    const list = createCrawlerList({
      overviews: createOverviews({
        listings,
        clock,
        attention: () => [],
        holds: async () => [],
        maxCrawlers,
      }),
    });
    const page = await list(normal, {
      nameContains,
      needsAttention: false,
      status: undefined,
      order: 'name',
      descending: false,
      limit: 10,
      cursor: '',
    });
    return [page.crawlers.map(({ crawler }) => crawler.name), page.total, page.isPartial];
  };
  expect(await listed(3, '')).toEqual([['a-shop', 'b-news', 'c-shop'], 3, false]);
  expect(await listed(2, '')).toEqual([['a-shop', 'b-news'], 2, true]);
  expect(await listed(2, 'SHOP')).toEqual([['a-shop', 'c-shop'], 2, false]);

  const watches = watchesOf(store, 5, { maxCrawlers: 2 });
  const { signal } = new AbortController();
  const all = watches.crawlers(normal, '', signal);
  const first = (await all.next()).value;
  expect(first).toMatchObject({ isComplete: true, isPartial: true });
  expect(first?.changed.map(({ crawler }) => crawler.name)).toEqual(['a-shop', 'b-news']);
  await all.return();
  await expect(watches.crawler(normal, 'c-shop', signal).next()).rejects.toMatchObject({
    kind: 'failed_precondition',
    reason: 'too_many_crawlers_to_watch',
  });
});

test('streams outlive a database that is down for a moment, and end with its error if it stays down', async () => {
  await using opened = await openEmbeddedStore();
  const { account, crawlers } = createUseCases(opened.store);
  const { normal } = await account();
  await crawlers.create(normal, 'one', { settings: {} });
  /** How many calls more are refused. */
  let away = 0;
  const store = decorateStore(opened.store, async (_operation, call) => {
    if (away === 0) return call();
    away -= 1;
    throw databaseUnavailable();
  });
  const watches = watchesOf(store, 5, { keepAliveMs: 20 });
  const stream = watches.activity(normal, new AbortController().signal);
  expect((await stream.next()).value).toMatchObject({ activity: { running: 1 } });
  away = MAX_FAILED_READINGS - 1;
  await eventually(() => expect(away).toBe(0));
  expect((await stream.next()).done).toBe(false);
  away = Number.POSITIVE_INFINITY;
  await expect(
    (async () => {
      for await (const _ of stream) continue;
    })(),
  ).rejects.toMatchObject({ reason: 'database_unavailable' });
  // Who comes then is told at once, and who comes later is served.
  const signal = new AbortController().signal;
  await expect(watches.activity(normal, signal).next()).rejects.toMatchObject({
    kind: 'unavailable',
  });
  away = 0;
  const again = watches.activity(normal, signal);
  expect((await again.next()).done).toBe(false);
  await again.return();
});

test('lists and watches of one account that are asked for again and again read it once at a time', async () => {
  let underway = 0;
  let most = 0;
  let readings = 0;
  const overviews = createOverviews({
    attention: () => [],
    holds: async () => [],
    clock: createTestClock(),
    listings: {
      async crawlers() {
        readings += 1;
        underway += 1;
        most = Math.max(most, underway);
        await new Promise((resolve) => setImmediate(resolve));
        underway -= 1;
        return [];
      },
    },
  });
  const poll = createOverviewPoll({ overviews });
  const abort = new AbortController();
  const streams = Array.from({ length: 40 }, () => poll.follow('account', abort.signal));
  await Promise.all([
    ...streams.map((stream) => stream.next()),
    ...Array.from({ length: 40 }, () => overviews.read('account')),
  ]);
  expect({ most, readings }).toEqual({ most: 1, readings: 2 });
  abort.abort(new Error('gone'));
  await Promise.allSettled(streams.map((stream) => stream.next()));
});
