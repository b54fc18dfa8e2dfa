import { describe, expect, test } from 'vitest';
import { createHostLanes, type HostLanes } from '../../../src/dispatcher/host-lanes.ts';
import { createJobBoard, type JobBoard } from '../../../src/dispatcher/job-board.ts';
import { createReadAhead, type ReadAhead } from '../../../src/dispatcher/read-ahead.ts';
import type { DueJob } from '../../../src/domain/job.ts';
import { createFairPool } from '../../../src/fairness/fair-pool.ts';
import { makeJobs } from '../../contract/store/store-harness.ts';
import { webhookCrawler } from '../../support/webhook-fixtures.ts';

const NOW = new Date('2026-03-01T12:00:00Z');
let now = NOW;
const SLOTS = 20;
const crawler = webhookCrawler();

function dueJobs(count: number): DueJob[] {
  const waiting = { state: 'waiting', retry: 0, attempt: 0, crashes: 0 } as const;
  return makeJobs(crawler, count).map((job) => ({
    ...job,
    ...waiting,
    firstTriedAt: undefined,
    dueAt: NOW,
  }));
}

interface Reading {
  readonly ahead: ReadAhead;
  readonly board: JobBoard;
  readonly lanes: HostLanes;
}

/** Starts up to `count` of the jobs; answers how many there were. */
function startJobs({ ahead, board, lanes }: Reading, count: number): number {
  for (let n = 0; n < count; n += 1) {
    const job = ahead.first(NOW);
    if (job === undefined) return n;
    board.start({ rid: job.rid, attempt: 1, startedAt: NOW }, new AbortController());
    lanes.started(job, NOW.getTime());
    ahead.started(job);
    lanes.ended(job.rid, {}, NOW.getTime());
    board.drop(job.rid);
  }
  return count;
}

/**
 * Takes turns in each of which the slots take `demand` jobs while the look is under way. Answers how
 * many the slots got in each turn, out of a queue that never ends.
 */
function takeTurns(reading: Reading, turns: number, demand: (turn: number) => number): number[] {
  return Array.from({ length: turns }, (_, turn) => {
    const look = reading.ahead.beginLook(crawler, SLOTS);
    const got = startJobs(reading, demand(turn));
    if (look !== undefined) {
      const jobs = dueJobs(look.limit);
      reading.ahead.endLook({ jobs, hasMore: true, nextDueAt: undefined, seesAllHosts: true });
    }
    return got;
  });
}

function start(): Reading {
  now = NOW;
  const memory = createFairPool({ name: 'memory', capacity: 64 * 1024 * 1024 });
  const lanes = createHostLanes();
  const board = createJobBoard(1024 * 1024, lanes);
  const clock = { now: () => now };
  const { crawlerId } = crawler;
  return { board, lanes, ahead: createReadAhead({ crawlerId, memory, board, lanes, clock }) };
}

test('slots that take many jobs between two looks have as many within a few turns', () => {
  const reading = start();
  takeTurns(reading, 10, () => 200);
  expect(takeTurns(reading, 300, () => 200)).toEqual(Array.from({ length: 300 }, () => 200));
});

test('turns of uneven length leave slots without a job now and then at most', () => {
  const reading = start();
  const uneven = (turn: number): number => (turn % 7 === 0 ? 150 : 40);
  takeTurns(reading, 20, uneven);
  const got = takeTurns(reading, 700, uneven);
  const short = got.filter((count, turn) => count < uneven(turn));
  expect(short.length).toBeLessThanOrEqual(7);
});

test('a crawler whose slots take few jobs reads few ahead again', () => {
  const reading = start();
  takeTurns(reading, 10, () => 300);
  expect(reading.board.ahead).toBeGreaterThan(300);
  takeTurns(reading, 20_000, () => 1);
  expect(reading.board.ahead).toBeLessThanOrEqual(SLOTS);
});

test('a helper that has digits and no slots yet reads a limited number of jobs of each host', () => {
  const { ahead } = start();
  const look = ahead.beginLook(crawler, 0);
  expect(look).toMatchObject({ limit: 8, hosts: { perHost: 4 } });
});

test('a due time that has passed is forgotten when the next look is expected', () => {
  const { ahead } = start();
  ahead.beginLook(crawler, SLOTS);
  ahead.endLook({ jobs: [], hasMore: false, nextDueAt: NOW, seesAllHosts: true });
  expect(ahead.nextDueAt).toEqual(NOW);
  ahead.expect();
  expect(ahead.wantsMore).toBe(true);
  // Else the run would wake at once, again and again, until it may look.
  expect(ahead.nextDueAt).toBeUndefined();
});

describe('a host that has all the crawls that it may have', () => {
  const nothing = { jobs: [], hasMore: false, nextDueAt: undefined, seesAllHosts: true };

  /** Starts what may start. */
  function startAhead({ ahead, board, lanes }: Reading): void {
    for (let job = ahead.first(NOW); job !== undefined; job = ahead.first(NOW)) {
      board.start({ rid: job.rid, attempt: 1, startedAt: NOW }, new AbortController());
      lanes.started(job, NOW.getTime());
      ahead.started(job);
      running.push(job.rid);
    }
  }

  /** Ends a crawl and starts the next one. */
  function crawlOne(reading: Reading): void {
    const rid = running.shift() ?? '';
    reading.lanes.ended(rid, { answer: { kind: 'answered' } }, NOW.getTime());
    reading.board.drop(rid);
    startAhead(reading);
  }

  let running: string[] = [];

  /** Begins with four crawls and as many jobs as a look reads of a host, and a look that leaves it out. */
  function saturate(queueDeadline?: Date): Reading {
    running = [];
    const reading = start();
    const politeness = { maxPerHost: 4, delayMs: 0, robotsTxt: false };
    reading.lanes.keep({ ...crawler, politeness });
    reading.ahead.beginLook(crawler, SLOTS);
    const jobs = dueJobs(4 + SLOTS).map((job) => ({ ...job, queueDeadline }));
    reading.ahead.endLook({ ...nothing, jobs });
    startAhead(reading);
    expect(running).toHaveLength(4);
    reading.ahead.expect();
    expect(reading.ahead.beginLook(crawler, SLOTS)?.hosts?.closed).toHaveLength(1);
    return reading;
  }

  test('is looked for again when half of its jobs have started', () => {
    const reading = saturate();
    const { ahead, board } = reading;
    ahead.endLook(nothing);
    while (board.ahead >= SLOTS / 2) {
      expect(ahead.wantsMore).toBe(false);
      crawlOne(reading);
    }
    expect(ahead.wantsMore).toBe(true);
  });

  test('is looked for again when the time of its jobs in the queue is over', () => {
    const reading = saturate(new Date(NOW.getTime() + 1_000));
    const { ahead, board, lanes } = reading;
    ahead.endLook(nothing);
    const [rid = ''] = running;
    lanes.ended(rid, { answer: { kind: 'answered' } }, NOW.getTime());
    board.drop(rid);
    expect(ahead.wantsMore).toBe(false);
    expect(ahead.first(new Date(NOW.getTime() + 2_000))).toBeUndefined();
    expect(ahead.wantsMore).toBe(true);
  });

  test('is looked for again when they have started while a look left it out', () => {
    const reading = saturate();
    const { ahead, board } = reading;
    while (board.ahead > 0) crawlOne(reading);
    ahead.endLook(nothing);
    expect(ahead.wantsMore).toBe(true);
  });
});

describe('hosts that have had more than their part, while others are still to be read', () => {
  /** Reads a job of each of `hosts`, numbered from `from` on; the queue has others. */
  function read({ ahead }: Reading, from: number, hosts: number): void {
    const jobs = dueJobs(hosts).map((job, n) => ({ ...job, host: `h${from + n}.example` }));
    ahead.endLook({ jobs, hasMore: true, nextDueAt: undefined });
  }

  /** Gives each host that has a job here five seconds of a slot. */
  function crawlAll({ ahead, board, lanes }: Reading): void {
    const later = NOW.getTime() + 5_000;
    for (let job = ahead.first(NOW); job !== undefined; job = ahead.first(NOW)) {
      board.start({ rid: job.rid, attempt: 1, startedAt: NOW }, new AbortController());
      lanes.started(job, NOW.getTime());
      ahead.started(job);
      lanes.ended(job.rid, { answer: { kind: 'answered' } }, later);
      board.drop(job.rid);
    }
  }

  function lookUntil(reading: Reading, isDone: () => boolean): void {
    for (let n = 0; n < 1_000 && !isDone(); n += 1) {
      reading.ahead.expect();
      if (reading.ahead.beginLook(crawler, SLOTS) === undefined) return;
      read(reading, 0, 40);
    }
  }

  test('do not keep the next look from reading as many jobs as there are slots', () => {
    const reading = start();
    reading.ahead.beginLook(crawler, SLOTS);
    read(reading, 0, 40);
    crawlAll(reading);
    reading.ahead.beginLook(crawler, SLOTS);
    read(reading, 0, 40);
    expect(reading.ahead.first(NOW)).toBeUndefined();
    expect(reading.ahead.beginLook(crawler, SLOTS)?.limit).toBeGreaterThanOrEqual(SLOTS);
  });

  test('wait no longer once there is no room for more jobs', () => {
    const reading = start();
    reading.ahead.beginLook(crawler, SLOTS);
    read(reading, 0, 40);
    crawlAll(reading);
    lookUntil(reading, () => reading.ahead.first(NOW) !== undefined);
    expect(reading.board.ahead).toBeGreaterThan(4_000);
    expect(reading.ahead.first(NOW)).toBeDefined();
  });
});

test('a queue with URLs of closed hosts alone is looked at when the first host opens', () => {
  const reading = start();
  const { ahead, board, lanes } = reading;
  for (const job of dueJobs(3)) {
    lanes.add(job);
    lanes.started(job, NOW.getTime());
    lanes.remove(job);
    lanes.ended(job.rid, { answer: { kind: 'away', reason: 'timeout' } }, NOW.getTime());
  }
  expect(ahead.beginLook(crawler, SLOTS)?.hosts?.closed).toHaveLength(1);
  ahead.endLook({ jobs: [], hasMore: false, nextDueAt: undefined, seesAllHosts: true });
  expect(board.ahead).toBe(0);
  expect(ahead.nextDueAt?.getTime()).toBeGreaterThan(NOW.getTime());
});

test('a host that opens while a look is under way is looked for again', () => {
  const { ahead, lanes } = start();
  for (const job of dueJobs(3)) {
    lanes.add(job);
    lanes.started(job, NOW.getTime());
    lanes.remove(job);
    lanes.ended(job.rid, { answer: { kind: 'away', reason: 'timeout' } }, NOW.getTime());
  }
  // It is put aside for five seconds, and its job is wanted two seconds before.
  now = new Date(NOW.getTime() + 2_999);
  expect(ahead.beginLook(crawler, SLOTS)?.hosts?.closed).toHaveLength(1);
  now = new Date(NOW.getTime() + 3_004);
  ahead.endLook({ jobs: [], hasMore: false, nextDueAt: undefined, seesAllHosts: true });
  expect(ahead.nextDueAt).toEqual(new Date(NOW.getTime() + 3_000));
});

test('looks for urgent jobs follow each other until some are here for each slot', () => {
  const { ahead, board } = start();
  ahead.beginLook(crawler, SLOTS);
  ahead.endLook({ jobs: dueJobs(200), hasMore: true, nextDueAt: undefined, seesAllHosts: true });
  let looks = 0;
  for (; looks < 100; looks += 1) {
    // The interval of looks while there is enough of others has passed.
    now = new Date(now.getTime() + 250);
    if (looks === 0) ahead.expect();
    const look = ahead.beginLook(crawler, SLOTS);
    if (look === undefined) break;
    const jobs = dueJobs(look.limit).map((job) => ({ ...job, priority: 9 }));
    ahead.endLook({ jobs, hasMore: true, nextDueAt: undefined, seesAllHosts: true });
  }
  expect(looks).toBeGreaterThan(0);
  expect(board.ahead).toBeLessThan(200 + 6 * SLOTS);
});
