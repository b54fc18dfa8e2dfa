import { expect, test } from 'vitest';
import { createHostLanes, type HostLanes } from '../../../src/dispatcher/host-lanes.ts';
import { createJobBoard, type JobBoard } from '../../../src/dispatcher/job-board.ts';
import { createReadAhead, type ReadAhead } from '../../../src/dispatcher/read-ahead.ts';
import type { DueJob } from '../../../src/domain/job.ts';
import { createFairPool } from '../../../src/fairness/fair-pool.ts';
import { makeJobs } from '../../contract/store/store-harness.ts';
import { webhookCrawler } from '../../support/webhook-fixtures.ts';

const NOW = new Date('2026-03-01T12:00:00Z');
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
  const memory = createFairPool({ name: 'memory', capacity: 64 * 1024 * 1024 });
  const lanes = createHostLanes();
  const board = createJobBoard(1024 * 1024, lanes);
  const clock = { now: () => NOW };
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
