import { expect, test } from 'vitest';
import { toDay } from '../../../src/domain/stats.ts';
import { createStatistics } from '../../../src/service/reads/stats.ts';
import { createUseCases, openEmbeddedStore } from '../../support/use-cases.ts';

const DAY_MS = 24 * 3_600_000;

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
    createCrawler: (name: string) => useCases.crawlers.create(owner, name, { settings: {} }),
    statistics: createStatistics({ store, clock }),
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

test('what is stored is added up anew all the sooner the less it takes, and once a minute at most otherwise', async () => {
  await using app = await startStatistics();
  const results = { totalled: 0, takesMs: 0 };
  const statistics = createStatistics({
    clock: app.clock,
    store: {
      ...app.store,
      results: {
        ...app.store.results,
        async totals(scope) {
          results.totalled += 1;
          await new Promise((resolve) => setTimeout(resolve, results.takesMs));
          return app.store.results.totals(scope);
        },
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
  await app.crawl('one', [200]);
  app.clock.advance(50_000);
  expect(await read()).toEqual({ normal: 2, totalled: 0 });
  app.clock.advance(11_000);
  expect(await read()).toEqual({ normal: 3, totalled: 2 });
});
