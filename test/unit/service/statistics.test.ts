import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { addByDate, toDay, toHistoryDay } from '../../../src/domain/stats.ts';
import { createStatistics } from '../../../src/service/reads/statistics.ts';
import type { Store } from '../../../src/store/store.ts';
import { createUseCases, openEmbeddedStore } from '../../support/use-cases.ts';

const DAY_MS = 24 * 3_600_000;

interface Partials {
  readonly stats: Partial<Store['stats']>;
  readonly results: Partial<Store['results']>;
}

async function startStatistics() {
  const opened = await openEmbeddedStore();
  const useCases = createUseCases(opened.store);
  const { store, clock } = useCases;
  const owner = (await useCases.account()).normal;

  /** Crawls the given number of URLs of a crawler with these statuses. */
  async function crawl(name: string, statuses: readonly number[]): Promise<void> {
    for (const n of statuses.keys()) {
      await useCases.pushing.push(owner, name, { url: `https://example.com/${n}`, parameters: {} });
    }
    const crawler = await store.crawlers.findByName(owner.account.accountId, name);
    let next = 0;
    await useCases.dispatch(crawler?.crawlerId ?? '', (job) => {
      const cbStatus = statuses[next] ?? 200;
      next += 1;
      return {
        kind: 'stored',
        rid: job.rid,
        crawlerId: job.crawlerId,
        attempt: job.attempt,
        tokenType: 'normal',
        billed: cbStatus === 200,
        expiresAt: new Date(clock.now().getTime() + 30 * DAY_MS),
        record: {
          rid: job.rid,
          pushedUrl: job.url,
          url: job.url,
          cbStatus,
          originalStatus: cbStatus,
          contentType: 'text/html',
          body: new Uint8Array(1),
          coding: 'gzip',
          details: {},
        },
      };
    });
  }

  return {
    owner,
    store,
    clock,
    crawl,
    otherOwner: async () => (await useCases.account()).normal,
    createCrawler: (name: string, of = owner) =>
      useCases.crawlers.create(of, name, { settings: {} }),
    statistics: createStatistics({ store, clock }),
    /** The statistics with other answers of the store. */
    statisticsOf: ({ stats = {}, results = {} }: Partial<Partials>) =>
      createStatistics({
        clock,
        store: {
          ...store,
          stats: { ...store.stats, ...stats },
          results: { ...store.results, ...results },
        },
      }),
    today: () => toDay(clock.now()),
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

test('days of all crawlers add up, and each crawler has its own', async () => {
  await using app = await startStatistics();
  await app.createCrawler('one');
  await app.createCrawler('two');
  const first = app.today();
  await app.crawl('one', [200, 521]);
  await app.crawl('two', [200]);
  app.clock.advance(DAY_MS);
  await app.crawl('two', [200, 200]);
  const found = await app.statistics.read(app.owner, '', '');
  expect(found.history).toMatchObject([
    { date: first, pushed: 3, success: 2, failed: 1, billed: 2, byCbStatus: { 200: 2, 521: 1 } },
    { date: app.today(), pushed: 2, success: 2, failed: 0, billed: 2, byCbStatus: { 200: 2 } },
  ]);
  expect(found).toMatchObject({ completed: 4, failed: 1 });
  const days = found.crawlers.map(({ crawler, history }) => [crawler.name, history.length]);
  expect(days).toEqual([
    ['one', 1],
    ['two', 2],
  ]);
});

test('a range bounds the days and the sums, not the counters of crawlers', async () => {
  await using app = await startStatistics();
  await app.createCrawler('one');
  await app.crawl('one', [200, 521]);
  app.clock.advance(DAY_MS);
  await app.crawl('one', [200]);
  const today = app.today();
  const found = await app.statistics.read(app.owner, today, '');
  expect(found).toMatchObject({ completed: 1, failed: 0, history: [{ date: today, pushed: 1 }] });
  expect(found.crawlers[0]?.counters).toMatchObject({ pushed: 3, completed: 2, failed: 1 });
});

test.each([
  ['yesterday', '', 'history_from'],
  ['', '2026-02-30', 'history_to'],
  ['2026-02-02', '2026-02-01', 'history_from'],
])('the range from %j to %j is refused', async (from, to, field) => {
  await using app = await startStatistics();
  await expect(app.statistics.read(app.owner, from, to)).rejects.toMatchObject({ field });
});

test('only crawlers that are named have their own days, or none', async () => {
  await using app = await startStatistics();
  await app.createCrawler('one');
  await app.createCrawler('two');
  await app.crawl('one', [200]);
  await app.crawl('two', [200]);
  const daysOf = async (of: readonly string[] | 'none') => {
    const { crawlers, history } = await app.statistics.read(app.owner, '', '', of);
    expect(history).toMatchObject([{ success: 2 }]);
    return crawlers.map((each) => each.history.length);
  };
  expect(await daysOf([])).toEqual([1, 1]);
  expect(await daysOf(['two'])).toEqual([0, 1]);
  expect(await daysOf('none')).toEqual([0, 0]);
  const field = 'history_of';
  await expect(daysOf(['nobody'])).rejects.toMatchObject({ kind: 'not_found', field });
  const many = Array.from({ length: 11 }, (_, n) => `crawler-${n}`);
  await expect(daysOf(many)).rejects.toMatchObject({ kind: 'invalid', field });
});

test('the days of many crawlers are read in small steps, added up and kept for a while', async () => {
  await using app = await startStatistics();
  for (let n = 0; n < 150; n++) await app.createCrawler(`crawler-${n}`);
  const days = Array.from({ length: 90 }, (_, n) =>
    toHistoryDay(toDay(new Date(n * DAY_MS)), { success: 1 }),
  );
  const steps: number[] = [];
  const statistics = app.statisticsOf({
    stats: {
      history: async (ids) => new Map(ids.map((id) => [id, days])),
      async historySums(ids) {
        steps.push(ids.length);
        await setTimeout(10);
        const all = ids.flatMap(() => days);
        return { days: addByDate(all.map((day) => [day.date, day])), count: all.length };
      },
    },
  });
  const found = await statistics.read(app.owner, '', '');
  expect(found.history).toHaveLength(90);
  expect(found.history.every(({ success }) => success === 150)).toBe(true);
  expect(found.isHistoryLeftOut).toBe(true);
  expect(found.crawlers.every(({ history }) => history.length === 0)).toBe(true);
  expect(steps.reduce((sum, step) => sum + step)).toBe(150);
  expect(Math.max(...steps)).toBeLessThanOrEqual(60);
  const taken = steps.length;
  const named = await statistics.read(app.owner, '', '', ['crawler-7']);
  expect(named.crawlers.find(({ crawler }) => crawler.name === 'crawler-7')?.history).toEqual(days);
  expect(steps).toHaveLength(taken);
  app.clock.advance(60_000);
  await statistics.read(app.owner, '', '');
  expect(steps).toHaveLength(2 * taken);
});

test('an account with few crawlers does not wait for the days of one with many', async () => {
  await using app = await startStatistics();
  for (let n = 0; n < 60; n++) await app.createCrawler(`crawler-${n}`);
  const other = await app.otherOwner();
  await app.createCrawler('one', other);
  const statistics = app.statisticsOf({
    stats: {
      async historySums(ids) {
        await setTimeout(20);
        return { days: [], count: 5_000 * ids.length };
      },
    },
  });
  const ended: string[] = [];
  await Promise.all([
    statistics.read(app.owner, '', '').then(() => ended.push('many')),
    statistics.read(app.owner, '2026-01-01', '').then(() => ended.push('many again')),
    setTimeout(30).then(() => statistics.read(other, '', '').then(() => ended.push('few'))),
  ]);
  expect(ended[0]).toBe('few');
});

test('at most 100 calls of an account wait for the days of its crawlers', async () => {
  await using app = await startStatistics();
  await app.createCrawler('one');
  const refused = Promise.withResolvers<void>();
  const statistics = app.statisticsOf({
    stats: {
      async historySums() {
        await refused.promise;
        return { days: [], count: 0 };
      },
    },
  });
  const ends = await Promise.all(
    Array.from({ length: 110 }, (_, n) =>
      statistics.read(app.owner, toDay(new Date(n * DAY_MS)), '').then(
        () => 'read',
        (error: { reason: string }) => {
          refused.resolve();
          return error.reason;
        },
      ),
    ),
  );
  expect(new Set(ends)).toEqual(new Set(['read', 'too_many_waiting']));
  expect(ends.filter((end) => end === 'read').length).toBeGreaterThanOrEqual(100);
});

test('what is stored is added up anew all the sooner the less it takes, and once a minute at most otherwise', async () => {
  await using app = await startStatistics();
  const results = { totalled: 0, takesMs: 0, more: 0 };
  const statistics = app.statisticsOf({
    results: {
      async totals(scope) {
        results.totalled += 1;
        await setTimeout(results.takesMs);
        const totals = await app.store.results.totals(scope);
        return totals && { ...totals, results: totals.results + results.more };
      },
    },
  });
  const read = async () => {
    results.totalled = 0;
    const { stored } = await statistics.read(app.owner, '', '');
    return { normal: stored[0]?.results, totalled: results.totalled };
  };
  await app.createCrawler('one');
  expect(await read()).toEqual({ normal: 0, totalled: 2 });
  await app.crawl('one', [200, 200]);
  app.clock.advance(59_000);
  results.takesMs = 700;
  expect(await read()).toEqual({ normal: 2, totalled: 2 });
  // Few results: the database was busy with others.
  app.clock.advance(2_000);
  results.more = 100_000;
  expect(await read()).toEqual({ normal: 100_002, totalled: 2 });
  await app.crawl('one', [200]);
  app.clock.advance(50_000);
  expect(await read()).toEqual({ normal: 100_002, totalled: 0 });
  app.clock.advance(11_000);
  expect(await read()).toEqual({ normal: 100_003, totalled: 2 });
});
