import { expect, test } from 'vitest';
import { createHostGate } from '../../../src/dispatcher/host-gate.ts';
import { createHostHealth } from '../../../src/dispatcher/host-health.ts';
import { createLane, type Lane } from '../../../src/dispatcher/host-lane.ts';
import { createRestingHosts } from '../../../src/dispatcher/resting-hosts.ts';

const NOW = 1_000;
const MOST = 50_000;

function laneOf(n: number): Lane {
  return createLane(`${n}.example`, {
    pace: { isPaused: false, most: 2, delayMs: 0, asksRobots: false },
    usedMs: 0,
    health: createHostHealth(() => 1e9),
    gate: createHostGate(),
    member: { changed: () => undefined, start: () => undefined },
  });
}

function fill(change: (lane: Lane) => void) {
  const resting = createRestingHosts();
  for (let n = 0; n < MOST; n += 1) {
    const lane = laneOf(n);
    change(lane);
    resting.keep(lane, NOW);
  }
  return resting;
}

test('hosts that are put aside leave room for others, however many they are', () => {
  const resting = fill(({ health }) => {
    for (let n = 0; n < 3; n += 1) health.ended({ kind: 'away', reason: 'timeout' }, NOW, NOW);
  });
  expect(resting.isFull(NOW)).toBe(false);
  expect(resting.has('0.example')).toBe(false);
  expect(resting.isClosed(`${MOST - 1}.example`, NOW)).toBe(true);
});

test('hosts whose delay is not over are remembered until then', () => {
  const resting = fill(({ gate }) => {
    gate.nextStartMs = NOW + 60_000;
  });
  expect(resting.isFull(NOW)).toBe(true);
  expect(resting.isClosed('0.example', NOW)).toBe(true);
  expect(resting.isFull(NOW + 60_000)).toBe(false);
});

test('a host that was not reached last is remembered, and may be asked', () => {
  const resting = createRestingHosts();
  const lane = laneOf(1);
  lane.health.ended({ kind: 'away', reason: 'timeout' }, NOW, NOW);
  resting.keep(lane, NOW);
  resting.keep(laneOf(2), NOW);
  expect(resting.has('2.example')).toBe(false);
  expect(resting.isClosed('1.example', NOW)).toBe(false);
  expect(resting.take('1.example')).toMatchObject({ failures: 1 });
});
