import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createMachineClock, toWall, wallNow } from '../../../src/domain/clock.ts';

const HOUR = 3_600_000;
const START = Date.UTC(2026, 0, 1);

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'performance'], now: START }));
afterEach(() => void vi.useRealTimers());

test.each([
  ['back', -HOUR],
  ['ahead', HOUR],
])(
  'the service time passes as ever when the clock is set %s, and the clock is shown',
  (_way, byMs) => {
    const set: number[] = [];
    const clock = createMachineClock(0, (by) => set.push(by));
    vi.advanceTimersByTime(1_000);
    const due = new Date(clock.now().getTime() + 5_000);
    vi.setSystemTime(START + 1_000 + byMs);
    vi.advanceTimersByTime(5_000);
    expect(clock.now()).toEqual(due);
    expect(wallNow(clock)).toEqual(new Date(START + 6_000 + byMs));
    expect(toWall(clock, due)).toEqual(wallNow(clock));
    expect(set).toEqual([byMs]);
  },
);

test('the service time begins where it was before, unless the clock is beyond that', () => {
  const later = createMachineClock(START + HOUR);
  expect(later.now()).toEqual(new Date(START + HOUR));
  expect(wallNow(later)).toEqual(new Date(START));
  const earlier = createMachineClock(START - HOUR);
  expect(earlier.now()).toEqual(new Date(START));
  expect(earlier.aheadMs).toBe(0);
});

test('a clock that went back a little between two starts counts as the same', () => {
  const clock = createMachineClock(START + 2);
  expect(clock.now()).toEqual(new Date(START + 2));
  expect(wallNow(clock)).toEqual(clock.now());
});

test('a thread that is stopped while it reads the clocks takes neither for set', () => {
  const { now } = Date;
  const stopped = () => {
    vi.advanceTimersByTime(25);
    return now();
  };
  const spy = vi.spyOn(Date, 'now').mockImplementationOnce(stopped);
  const set: number[] = [];
  const clock = createMachineClock(0, (by) => set.push(by));
  expect(clock.aheadMs).toBe(0);
  spy.mockImplementationOnce(stopped);
  expect(clock.aheadMs).toBe(0);
  expect(wallNow(clock)).toEqual(new Date(START + 50));
  expect(set).toEqual([]);
});
