import { expect, test } from 'vitest';
import { createReadAhead, type ReadAhead } from '../../../src/dispatcher/read-ahead.ts';
import type { DueJob } from '../../../src/domain/job.ts';
import { createFairPool } from '../../../src/fairness/fair-pool.ts';

const NOW = new Date('2026-03-01T12:00:00Z');
const SLOTS = 20;
let jobs = 0;

function dueJob(): DueJob {
  jobs += 1;
  return {
    rid: jobs.toString(16).padStart(24, '0'),
    crawlerId: 'crawler',
    accountId: 'account',
    state: 'waiting',
    url: `https://example.com/${jobs}`,
    parameters: {},
    callbackHeaders: [],
    attempt: 0,
    retry: 0,
    crashes: 0,
    pushedAt: NOW,
    queueDeadline: undefined,
    firstTriedAt: undefined,
    dueAt: NOW,
  } as unknown as DueJob;
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
    const look = ahead.beginLook({ accountId: 'account' }, SLOTS, []);
    const got = startJobs(ahead, demand(turn));
    if (look !== undefined) {
      const found = Array.from({ length: look.limit }, dueJob);
      ahead.endLook({ jobs: found, hasMore: true, nextDueAt: undefined });
    }
    return got;
  });
}

function start(): ReadAhead {
  const memory = createFairPool({ name: 'memory', capacity: 64 * 1024 * 1024 });
  return createReadAhead({ crawlerId: 'crawler', memory });
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
