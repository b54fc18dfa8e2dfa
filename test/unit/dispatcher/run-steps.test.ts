import { expect, test } from 'vitest';
import {
  gatheringMs,
  nextPhase,
  type RestView,
  type TurnView,
  takesTurn,
} from '../../../src/dispatcher/run-steps.ts';

const NOTHING: TurnView = {
  unwritten: 0,
  unwrittenCrawls: 0,
  nextWriteBytes: 0,
  writeBytes: 1_000,
  isStarving: false,
  hasRoom: false,
  nowMs: 50,
  nextTurnMs: 100,
  isDraining: false,
  isUnsure: false,
  polls: false,
};

test.each<[title: string, view: Partial<TurnView>, takes: boolean]>([
  ['nothing to do', { nowMs: 200 }, false],
  ['something to write, too early', { unwritten: 1 }, false],
  ['something to write, in time', { unwritten: 1, nowMs: 100 }, true],
  ['room for more, in time', { hasRoom: true, nowMs: 100 }, true],
  ['a poll, in time', { polls: true, nowMs: 100 }, true],
  ['free slots without jobs', { isStarving: true, hasRoom: true }, true],
  ['255 unwritten starts and ends', { unwritten: 255, unwrittenCrawls: 255 }, false],
  ['256 unwritten starts and ends', { unwritten: 256, unwrittenCrawls: 256 }, true],
  ['three quarters of a write', { unwritten: 1, nextWriteBytes: 750 }, true],
  ['less than that', { unwritten: 1, nextWriteBytes: 749 }, false],
  ['a run that drains', { unwritten: 1, isDraining: true }, true],
  ['a run whose last turn failed', { unwritten: 1, isDraining: true, isUnsure: true }, false],
])('whether a turn is taken: %s', (_title, view, takes) => {
  expect(takesTurn({ ...NOTHING, ...view })).toBe(takes);
});

test('the next turn waits a millisecond for each write of this one, between two bounds', () => {
  const after = (unwritten: number): number => gatheringMs({ ...NOTHING, unwritten }, 2);
  expect([0, 2, 7, 20, 500].map(after)).toEqual([2, 2, 7, 20, 20]);
  expect(gatheringMs({ ...NOTHING, unwritten: 500 }, 150)).toBe(150);
});

const RESTING: RestView = {
  isDraining: false,
  isUnsure: false,
  hasLease: true,
  isBusy: false,
  isWaitedFor: false,
  isNotified: false,
  isIdleOver: true,
};

test.each<[title: string, view: Partial<RestView>, phase: ReturnType<typeof nextPhase>]>([
  ['work in flight', { isBusy: true, isDraining: true }, 'active'],
  ['jobs that wait', { isWaitedFor: true }, 'active'],
  ['jobs that wait for a run that drains', { isWaitedFor: true, isDraining: true }, 'drained'],
  ['jobs that wait for a run that is unsure', { isWaitedFor: true, isUnsure: true }, 'drained'],
  ['no work yet', { isIdleOver: false }, 'waiting'],
  ['work that was just reported', { isNotified: true }, 'waiting'],
  ['no work for long', {}, 'idle'],
  ['no work, and no lease', { hasLease: false }, 'lease_lost'],
])('what a run does with %s', (_title, view, phase) => {
  expect(nextPhase({ ...RESTING, ...view })).toBe(phase);
});
