import { expect, test } from 'vitest';
import { createYielding } from '../../../src/store/sqlite/yielding.ts';

/** A database whose steps take `ms` of the test's time. */
function startWork(ms: number) {
  let nowMs = 0;
  let begun = 0;
  const yielding = createYielding(
    {
      get begun() {
        return begun;
      },
    },
    () => nowMs,
  );
  return {
    /** The pause after a step during which that many other calls came. */
    async pauseAfter(others: number): Promise<number> {
      const { pauseMs } = await yielding.step(async () => {
        begun += 1 + others;
        nowMs += ms;
      });
      return pauseMs;
    },
    isAsked: () => yielding.isAsked,
    pass: (passedMs: number) => {
      nowMs += passedMs;
    },
  };
}

test('steps follow each other while no other call comes', async () => {
  const work = startWork(20);
  expect([await work.pauseAfter(0), await work.pauseAfter(0)]).toEqual([0, 0]);
  expect(work.isAsked()).toBe(false);
});

test('once another call had to wait, a pause twice as long follows each step for 200 ms', async () => {
  const work = startWork(20);
  expect(await work.pauseAfter(1)).toBe(40);
  expect(await work.pauseAfter(0)).toBe(40);
  expect(work.isAsked()).toBe(true);
  work.pass(160);
  expect(await work.pauseAfter(0)).toBe(0);
});

test('a pause is no longer than 50 ms', async () => {
  expect(await startWork(100).pauseAfter(3)).toBe(50);
});
