import { expect, test } from 'vitest';
import { type CrawlLane, createCrawlLane } from '../../../src/dispatcher/crawl-lane.ts';
import { createHostLanes, type HostLanes } from '../../../src/dispatcher/host-lanes.ts';
import type { HostNews } from '../../../src/dispatcher/host-news.ts';
import { WorkAborted } from '../../../src/dispatcher/in-flight.ts';
import type { DueJob } from '../../../src/domain/job.ts';
import { createFairPool } from '../../../src/fairness/fair-pool.ts';
import type { TurnReceipt } from '../../../src/store/store.ts';
import { makeJobs } from '../../contract/store/store-harness.ts';
import { eventually } from '../../support/eventually.ts';
import { silentLogger } from '../../support/loggers.ts';
import { webhookCrawler } from '../../support/webhook-fixtures.ts';

const NOW = new Date('2026-03-01T12:00:00Z');
const crawler = webhookCrawler();

function dueJobs(count: number): DueJob[] {
  const waiting = { state: 'waiting', retry: 0, attempt: 0, crashes: 0 } as const;
  const job = { ...waiting, firstTriedAt: undefined, dueAt: NOW };
  return makeJobs(crawler, count).map((each) => ({ ...each, ...job }));
}

function receipt(jobs: readonly DueJob[]): TurnReceipt {
  const nothing = { verdicts: [], lost: [], claimed: [], nextDueAt: undefined };
  return { ...nothing, jobs: [...jobs], hasMore: false, paused: false } as unknown as TurnReceipt;
}

interface Lane {
  readonly lane: CrawlLane;
  /** The jobs that were started, in order. */
  readonly started: string[];
  /** Ends the first crawl in flight, with what it tells of its host. */
  endFirst(news?: HostNews): void;
}

function openLane(lanes: HostLanes, slots: number, now = () => NOW): Lane {
  const started: string[] = [];
  const ends: ((news: HostNews) => void)[] = [];
  const pool = (name: string, capacity: number) => createFairPool({ name, capacity });
  const lane = createCrawlLane({
    crawlerId: crawler.crawlerId,
    clock: { now },
    slots: pool('crawls', 100),
    memory: pool('memory', 64 * 1024 * 1024),
    crawlBytes: 1_024,
    writeBytes: 1024 * 1024,
    mayStart: () => true,
    limit: () => slots,
    lanes,
    logger: silentLogger,
    jobLog: undefined,
    onChange: () => undefined,
    crawlJob(job, _crawler, signal) {
      started.push(job.rid);
      const { rid, attempt } = job;
      const outcome = { kind: 'release', rid, crawlerId: crawler.crawlerId, attempt } as const;
      return new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
        ends.push((news) => resolve({ outcome, held: undefined, ...news }));
      });
    },
  });
  return { lane, started, endFirst: (news = {}) => ends.shift()?.(news) };
}

test('the lane of a helper that has stopped starts no job of the run that leads in its place', async () => {
  const lanes = createHostLanes();
  const helper = openLane(lanes, 2);
  const lead = openLane(lanes, 2);
  const [first, second, third, fourth, fifth, sixth] = dueJobs(6).map((job) => [job] as const);
  const jobs = [first, second, third].flatMap((each) => each ?? []);
  helper.lane.begin(crawler, true).end(receipt(jobs));
  expect(helper.started).toHaveLength(2);
  expect(helper.lane.buffered).toBe(1);

  // A turn of the helper is under way.
  const turn = helper.lane.begin(crawler, true);
  helper.lane.stop();
  expect(helper.lane.buffered).toBe(0);
  const others = [third, fourth, fifth].flatMap((each) => each ?? []);
  lead.lane.begin(crawler, true).end(receipt(others));
  expect(lead.started).toEqual(others.slice(0, 2).map(({ rid }) => rid));
  turn.end(receipt([...(sixth ?? [])]));
  helper.endFirst();
  await eventually(() => expect(helper.lane.inFlight).toBe(1));
  expect(helper.started).toHaveLength(2);
  expect(helper.lane.begin(crawler, true).look).toBeUndefined();

  lead.endFirst();
  await eventually(() => expect(lead.started).toHaveLength(3));
  expect(lead.started).toEqual(others.map(({ rid }) => rid));
  await helper.lane.close();
  await lead.lane.close();
});

test('when a host that is put aside may be tried, the lane looks for its other jobs', async () => {
  const { lane, started, endFirst } = openLane(createHostLanes(), 3);
  lane.begin(crawler, true).end(receipt(dueJobs(3)));
  expect(started).toHaveLength(3);
  expect(lane.nextDueAt).toBeUndefined();
  for (const _ of started) endFirst({ answer: { kind: 'away', reason: 'connection_refused' } });
  await eventually(() => expect(lane.inFlight).toBe(0));
  expect(lane.nextDueAt).toEqual(new Date(NOW.getTime() + 5_000));
  await lane.close();
});

test('the delay of a host counts from a crawl that was aborted, which may just have sent its request', async () => {
  const lanes = createHostLanes();
  const polite = {
    ...crawler,
    politeness: { delayMs: 500, maxPerHost: 2, robotsTxt: false },
  };
  let now = NOW;
  const first = openLane(lanes, 2, () => now);
  const jobs = dueJobs(2);
  first.lane.begin(polite, true).end(receipt(jobs));
  expect(first.started).toHaveLength(1);
  // The process has stood still.
  now = new Date(NOW.getTime() + 40_000);
  first.lane.abortAll(new WorkAborted('dropped'));
  await eventually(() => expect(first.lane.inFlight).toBe(0));
  expect(lanes.nextAt(now.getTime())).toBe(now.getTime() + 500);
});
