import { expect, test } from 'vitest';
import { createSlotLine } from '../../../src/dispatcher/slot-line.ts';
import { createFairPool, type FairPool, type Grant } from '../../../src/fairness/fair-pool.ts';

interface Setup {
  readonly line: ReturnType<typeof createSlotLine>;
  readonly slots: FairPool;
  readonly started: string[];
  /** Adds a crawl with a slot, or one that waits. */
  enter(rid: string, hasSlot?: boolean): ReturnType<ReturnType<typeof createSlotLine>['enter']>;
  slot(): Grant;
  later(ms: number): void;
}

function setUp(): Setup {
  let now = 0;
  const line = createSlotLine(() => now);
  const slots = createFairPool({ name: 'slots', capacity: 10 });
  const started: string[] = [];
  const slot = (): Grant => {
    const grant = slots.tryAcquire({ accountId: 'account' }, 1);
    if (grant === undefined) throw new Error('no slot is free');
    return grant;
  };
  return {
    line,
    slots,
    started,
    slot,
    enter: (rid, hasSlot = false) =>
      line.enter(rid, hasSlot ? slot() : undefined, () => started.push(rid)),
    later(ms) {
      now += ms;
    },
  };
}

test('a slot goes from a crawl to the one that its thread has started, and is given back once', () => {
  const { line, slots, started, enter } = setUp();
  const first = enter('first', true);
  const second = enter('second');
  expect([started, [...line.rids()], second.isHeld]).toEqual([['first'], ['second'], false]);
  first.passTo(second);
  expect([started, line.waiting, second.isHeld]).toEqual([['first', 'second'], 0, true]);
  first.leave();
  expect(slots.used).toBe(1);
  second.leave();
  expect(slots.used).toBe(0);
});

test('a slot stays with its crawl if the other one has been given another, or is forgotten', () => {
  const { line, slots, slot, enter } = setUp();
  const first = enter('first', true);
  const second = enter('second');
  let told = 0;
  second.whenGiven(() => {
    told += 1;
  });
  line.startFirst(slot());
  first.passTo(second);
  expect([slots.used, told]).toEqual([2, 1]);
  const third = enter('third');
  expect([line.drop(), line.waiting]).toEqual([['third'], 0]);
  first.passTo(third);
  expect(third.isHeld).toBe(false);
  for (const each of [first, second, third]) each.leave();
  expect(slots.used).toBe(0);
});

test('a crawl that ends before its slot is known counts as started, once', () => {
  const { line, started, enter } = setUp();
  const first = enter('first', true);
  const second = enter('second');
  second.begin();
  second.begin();
  second.leave();
  first.passTo(second);
  expect([started, line.waiting]).toEqual([['first', 'second'], 0]);
});

test('three wait for each slot, at most 64, none beside many slots, and one can be forgotten', () => {
  const { line, enter } = setUp();
  expect([line.mayWait(32), line.mayWait(33)]).toEqual([true, false]);
  for (let n = 0; n < 3; n += 1) {
    expect(line.mayWait(1)).toBe(true);
    enter(`${n}`);
  }
  expect([line.mayWait(1), line.mayWait(2)]).toEqual([false, true]);
  expect([line.drop('1'), [...line.rids()], line.mayWait(1)]).toEqual([['1'], ['0', '2'], true]);
  for (let n = line.waiting; n < 64; n += 1) enter(`more ${n}`);
  expect(line.mayWait(32)).toBe(false);
});

test('none is added behind one that has waited for long, nor for a second after it has started', () => {
  const { line, slot, enter, later } = setUp();
  enter('slow');
  later(100);
  expect([line.mayWait(5), line.isLate]).toEqual([true, false]);
  later(1);
  expect([line.mayWait(5), line.isLate]).toEqual([false, true]);
  line.startFirst(slot());
  expect([line.mayWait(5), line.isLate]).toEqual([false, false]);
  later(1_000);
  expect(line.mayWait(5)).toBe(true);
});
