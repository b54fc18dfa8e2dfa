import { expect, test } from 'vitest';
import type { HostAway } from '../../../src/dispatcher/host-health.ts';
import { wallNow } from '../../../src/domain/clock.ts';
import { defined } from '../../../src/domain/defined.ts';
import { HOUR_MS, MINUTE_MS } from '../../../src/domain/durations.ts';
import type { QueuedJob } from '../../../src/domain/job.ts';
import type { FailureReason } from '../../../src/domain/status.ts';
import { failedPage } from '../../../src/engine/failed-page.ts';
import { createCrawlJobs } from '../../../src/service/crawls/crawl-job.ts';
import type { Crawling } from '../../../src/service/crawls/crawling.ts';
import { buildResult } from '../../../src/threads/build-result.ts';
import { ThreadLost } from '../../../src/threads/thread-lost.ts';
import { makeCrawler, makeJob } from '../../contract/store/store-harness.ts';
import { createTestClock } from '../../support/test-clock.ts';

const clock = createTestClock();
const crawler = makeCrawler('account');
const never = new AbortController().signal;

function claimed(crashes: number): QueuedJob {
  const job = makeJob(crawler, { createdAt: clock.now() });
  return {
    ...job,
    state: 'running',
    retry: crashes,
    attempt: 1,
    crashes,
    firstTriedAt: clock.now(),
  };
}

const noLadders = { start: async () => undefined };

/** Jobs whose every crawl loses its thread; how often it was tried. */
function losing(blamed: boolean) {
  let crawls = 0;
  const crawling: Crawling = {
    crawl: () => {
      crawls += 1;
      return Promise.reject(new ThreadLost(blamed, 'it did not answer'));
    },
    async result(page, { task, spec }) {
      return {
        result: await buildResult({ page, request: task.request, spec }, task),
        held: undefined,
      };
    },
  };
  return {
    jobs: createCrawlJobs({
      crawling,
      ladders: noLadders,
      budgets: { of: () => undefined },
      clock,
      retentionDays: 14,
    }),
    crawls: () => crawls,
  };
}

test('a crawl that ends its thread is a try that crashed, and the third ends the job', async () => {
  const { jobs } = losing(true);
  for (const crashes of [0, 1]) {
    const { outcome } = await jobs.crawl(claimed(crashes), crawler, never);
    expect(outcome).toMatchObject({ kind: 'retry', crashed: true });
  }
  const { outcome } = await jobs.crawl(claimed(2), crawler, never);
  expect(outcome).toMatchObject({
    kind: 'stored',
    billed: false,
    record: { cbStatus: 599, originalStatus: 0, details: { failure: 'crawl_crashed' } },
  });
});

test('a crawl whose thread was ended by another is given back untried, soon', async () => {
  const { jobs } = losing(false);
  const { outcome } = await jobs.crawl(claimed(2), crawler, never);
  expect(outcome).toMatchObject({ kind: 'release' });
  const dueAt = 'dueAt' in outcome ? outcome.dueAt?.getTime() : undefined;
  expect((dueAt ?? Number.NaN) - clock.now().getTime()).toBeLessThanOrEqual(1_000);
});

test('a job whose claims never ended, ten times, is not crawled again', async () => {
  const { jobs, crawls } = losing(true);
  const { outcome } = await jobs.crawl(claimed(10), crawler, never);
  expect(crawls()).toBe(0);
  expect(outcome).toMatchObject({
    kind: 'stored',
    record: { details: { failure: 'crawl_crashed' } },
  });
});

test('a URL that a proxy has lost is tried again at once, and the next time after a delay', async () => {
  const result: Crawling['result'] = async (page, { task, spec }) => ({
    result: await buildResult({ page, request: task.request, spec }, task),
    held: undefined,
  });
  const waitsFor = async (retry: number, ofProxy: 'lost' | 'blocked'): Promise<number> => {
    const jobs = createCrawlJobs({
      crawling: {
        result,
        crawl: async (order) => ({
          ...(await result(failedPage(order.task, 'proxy_refused'), order)),
          ofProxy,
        }),
      },
      ladders: noLadders,
      budgets: { of: () => undefined },
      clock,
      retentionDays: 14,
    });
    const { outcome } = await jobs.crawl({ ...claimed(0), retry }, crawler, never);
    if (outcome.kind !== 'retry') throw new Error(outcome.kind);
    return outcome.dueAt.getTime() - clock.now().getTime();
  };
  expect(await waitsFor(0, 'lost')).toBeLessThan(1_000);
  expect(await waitsFor(1, 'lost')).toBeGreaterThan(4_000);
  expect(await waitsFor(0, 'blocked')).toBeGreaterThan(3_000);
});

/** How a crawl ends that fails with `reason`, of a job whose tries `before` failed some minutes ago. */
async function endAfter(
  reason: FailureReason,
  before: readonly (readonly [reason: string, minutesAgo: number])[],
  hostAway?: HostAway,
): Promise<string> {
  const result: Crawling['result'] = async (page, { task, spec }) => ({
    result: await buildResult({ page, request: task.request, spec }, task),
    held: undefined,
  });
  const jobs = createCrawlJobs({
    crawling: { result, crawl: async (order) => result(failedPage(order.task, reason), order) },
    ladders: noLadders,
    budgets: { of: () => undefined },
    clock,
    retentionDays: 14,
  });
  const startOf = (minutesAgo: number) => wallNow(clock).getTime() - minutesAgo * MINUTE_MS;
  const tries = before.map(([failure, minutesAgo]) => [startOf(minutesAgo), 1, 0, failure, []]);
  const [[, firstMinutes] = ['', 0]] = before;
  const firstTriedAt = new Date(clock.now().getTime() - firstMinutes * MINUTE_MS);
  const job = { ...claimed(0), retry: before.length, firstTriedAt, tries: JSON.stringify(tries) };
  const { outcome } = await jobs.crawl(job, crawler, never, defined({ hostAway }));
  return outcome.kind;
}

test('a URL whose name does not exist is tried again for an hour, others for the whole window', async () => {
  expect(await endAfter('name_not_found', [['name_not_found', 50]])).toBe('retry');
  expect(await endAfter('name_not_found', [['name_not_found', 61]])).toBe('stored');
  expect(await endAfter('name_lookup_failed', [['name_lookup_failed', 61]])).toBe('retry');
  expect(await endAfter('connection_failed', [['connection_failed', 61]])).toBe('retry');
});

test('a name that once did not exist ends no URL that has failed for other reasons before', async () => {
  const before = [['connection_failed', 300]] as const;
  expect(await endAfter('name_not_found', before)).toBe('retry');
  expect(await endAfter('name_not_found', [...before, ['name_not_found', 61]])).toBe('stored');
});

test('a URL of a host whose name has not existed for an hour is tried once', async () => {
  const since = new Date(clock.now().getTime() - HOUR_MS);
  const away = { since, reason: 'name_not_found', reasonSince: since };
  expect(await endAfter('name_not_found', [], away)).toBe('stored');
  expect(await endAfter('name_not_found', [], { ...away, reasonSince: clock.now() })).toBe('retry');
  expect(await endAfter('name_not_found', [], { ...away, reason: 'timeout' })).toBe('retry');
});
