import { expect, test } from 'vitest';
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

/** Starts up to `count` of the jobs; answers how many there were. */
function startJobs(ahead: ReadAhead, count: number): number {
  for (let n = 0; n < count; n += 1) {
    const job = ahead.first(NOW);
    if (job === undefined) return n;
    ahead.remove(job.rid);
  }
  return count;
}

/**
 * Takes turns in each of which the slots take `demand` jobs while the look is under way. Answers how
 * many the slots got in each turn, out of a queue that never ends.
 */
function takeTurns(ahead: ReadAhead, turns: number, demand: (turn: number) => number): number[] {
  return Array.from({ length: turns }, (_, turn) => {
    const look = ahead.beginLook(crawler, SLOTS, []);
    const got = startJobs(ahead, demand(turn));
    if (look !== undefined) {
      ahead.endLook({ jobs: dueJobs(look.limit), hasMore: true, nextDueAt: undefined });
    }
    return got;
  });
}

function start(): ReadAhead {
  const memory = createFairPool({ name: 'memory', capacity: 64 * 1024 * 1024 });
  return createReadAhead({ crawlerId: crawler.crawlerId, memory });
}

test('slots that take many jobs between two looks have as many within a few turns', () => {
  const ahead = start();
  takeTurns(ahead, 10, () => 200);
  expect(takeTurns(ahead, 300, () => 200)).toEqual(Array.from({ length: 300 }, () => 200));
});

test('turns of uneven length leave slots without a job now and then at most', () => {
  const ahead = start();
  const uneven = (turn: number): number => (turn % 7 === 0 ? 150 : 40);
  takeTurns(ahead, 20, uneven);
  const got = takeTurns(ahead, 700, uneven);
  const short = got.filter((count, turn) => count < uneven(turn));
  expect(short.length).toBeLessThanOrEqual(7);
});

test('a crawler whose slots take few jobs reads few ahead again', () => {
  const ahead = start();
  takeTurns(ahead, 10, () => 300);
  expect(ahead.size).toBeGreaterThan(300);
  takeTurns(ahead, 20_000, () => 1);
  expect(ahead.size).toBeLessThanOrEqual(SLOTS);
});
