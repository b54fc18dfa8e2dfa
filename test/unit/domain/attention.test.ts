import { expect, test } from 'vitest';
import {
  attentionOf,
  type CrawlHold,
  mergeStreaks,
  type Streak,
} from '../../../src/domain/attention.ts';
import type { CrawlerCounters } from '../../../src/domain/crawler.ts';

const at = (seconds: number): Date => new Date(1_700_000_000_000 + seconds * 1_000);
const clock = { now: () => at(100), aheadMs: 0 };
const nothing: CrawlerCounters = {
  waiting: 0,
  running: 0,
  retrying: 0,
  pushed: 0,
  completed: 0,
  failed: 0,
  deleted: 0,
  purged: 0,
  deliveriesPending: 0,
  delivered: 0,
  last: {},
  failing: {},
};
const streak = (count: number, since = 20, latest = 50): Streak => {
  return { count, since: at(since), at: at(latest), error: 'timeout' };
};
const heldUp = { host: 'a.example', reason: 'timeout', sinceMs: at(1).getTime(), queued: 6 };
const overBudget = { ...heldUp, reason: 'proxy_budget_used', queued: 0, hosts: 3 };

const storageFull: CrawlHold = { reason: 'storage_full', detail: '9 of 9' };
const diskFull: CrawlHold = { reason: 'disk_full', detail: '1 MB' };

const runs = { pausedByUser: false, pausedByMonitor: false };

test.each<
  [
    why: string,
    counters: Partial<CrawlerCounters>,
    reasons: string[],
    crawler?: Partial<typeof runs>,
    holds?: readonly CrawlHold[],
  ]
>([
  ['nothing happens', {}, []],
  [
    'three deliveries failed',
    { deliveriesPending: 1, failing: { delivery: streak(3) } },
    ['deliveries_fail'],
  ],
  ['two deliveries failed', { deliveriesPending: 9, failing: { delivery: streak(2) } }, []],
  ['nothing is to be delivered', { failing: { delivery: streak(9) } }, []],
  [
    'a delivery succeeded shortly before',
    { deliveriesPending: 1, failing: { delivery: streak(9) }, last: { delivery: at(41) } },
    [],
  ],
  [
    'ten seconds without a success',
    { deliveriesPending: 1, failing: { delivery: streak(9) }, last: { delivery: at(40) } },
    ['deliveries_fail'],
  ],
  ['five tries failed', { retrying: 1, failing: { crawl: streak(5) } }, ['crawls_fail']],
  ['four tries failed', { retrying: 1, failing: { crawl: streak(4) } }, []],
  ['nothing is tried again', { waiting: 1, failing: { crawl: streak(5) } }, []],
  [
    'the user has paused it',
    { retrying: 1, failing: { crawl: streak(5) } },
    [],
    { pausedByUser: true },
  ],
  [
    'the monitoring has paused it',
    { deliveriesPending: 3, failing: { delivery: streak(5) } },
    ['paused_by_monitor'],
    { pausedByMonitor: true },
  ],
  ['the queue is full', { waiting: 8, retrying: 2 }, ['queue_full']],
  ['the queue is nearly full', { waiting: 9 }, []],
  [
    'a host has most of the queue, and says so better than the tries',
    {
      retrying: 9,
      failing: { crawl: streak(5) },
      heldUp: { ...heldUp, untilMs: at(90).getTime() },
    },
    ['host_away'],
  ],
  [
    'the report on the host is old',
    { retrying: 9, heldUp: { ...heldUp, untilMs: at(-81).getTime() } },
    [],
  ],
  ['the host has lost its URLs', { heldUp: { ...heldUp, untilMs: at(90).getTime() } }, []],
  [
    'the host has less than most',
    { waiting: 3, retrying: 9, heldUp: { ...heldUp, untilMs: at(90).getTime() } },
    ['queue_full'],
  ],
  [
    'the budget of proxies is used up, however many hosts wait',
    { waiting: 9, heldUp: { ...overBudget, untilMs: at(90).getTime() } },
    ['proxy_budget_used'],
  ],
  [
    'the proxies fail for a host that has most of the queue',
    { waiting: 9, heldUp: { ...heldUp, reason: 'proxy_unavailable', untilMs: at(90).getTime() } },
    ['proxies_fail'],
  ],
  ['storage is full', { waiting: 1 }, ['storage_full'], {}, [storageFull]],
  [
    'storage is full, and URLs wait for a retry',
    { retrying: 1 },
    ['storage_full'],
    {},
    [storageFull],
  ],
  ['storage is full, and nothing is queued', { running: 1 }, [], {}, [storageFull]],
  ['storage is full, but it is paused', { waiting: 1 }, [], { pausedByUser: true }, [storageFull]],
  [
    'storage and disk are full, and the queue is, too',
    { waiting: 10 },
    ['disk_full', 'storage_full', 'queue_full'],
    {},
    [diskFull, storageFull],
  ],
  [
    'all at once',
    {
      waiting: 9,
      retrying: 1,
      deliveriesPending: 1,
      failing: { crawl: streak(5), delivery: streak(3) },
    },
    ['deliveries_fail', 'crawls_fail', 'queue_full'],
  ],
])('%s', (_why, counters, reasons, crawler = {}, holds = []) => {
  const read = { ...nothing, ...counters };
  const found = attentionOf({ ...runs, ...crawler }, read, { crawlerQueue: 10 }, clock, holds);
  expect(found.map(({ reason }) => reason)).toEqual(reasons);
});

test('trouble is told with its beginning and what was found', () => {
  const counters = {
    ...nothing,
    waiting: 4,
    retrying: 4,
    last: { push: at(3) },
    heldUp: { ...heldUp, untilMs: at(90).getTime() },
  };
  expect(attentionOf(runs, counters, { crawlerQueue: 8 }, clock, [])).toEqual([
    {
      reason: 'host_away',
      since: at(1),
      detail: 'a.example is put aside (timeout) and has 6 of 8 queued URLs',
    },
    { reason: 'queue_full', since: at(3), detail: '8 of 8 URLs are queued' },
  ]);
});

test.each([
  ['its last push', { push: at(3), crawl: at(2) }, at(3)],
  ['its last crawl', { push: at(3), crawl: at(5) }, at(5)],
  ['its last push, when nothing was crawled yet', { push: at(3) }, at(3)],
  ['now, when neither is known', {}, at(100)],
])('crawls are held back since %s', (_since, last, since) => {
  const counters = { ...nothing, waiting: 1, last };
  expect(attentionOf(runs, counters, { crawlerQueue: 8 }, clock, [storageFull])).toEqual([
    { ...storageFull, since },
  ]);
});

test('streaks of several processes add up, but for those that a success of another has ended', () => {
  const parts = [
    { crawl: { ...streak(2, 10, 30), error: 'old' } },
    undefined,
    { crawl: streak(3, 20, 50), delivery: streak(4, 1, 8) },
  ];
  expect(mergeStreaks(parts, { delivery: at(9) })).toEqual({ crawl: streak(5, 10, 50) });
  expect(mergeStreaks(parts, { success: at(40) }).crawl).toEqual(streak(3, 40, 50));
});
