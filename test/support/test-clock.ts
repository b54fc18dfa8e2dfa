import type { Clock } from '../../src/domain/clock.ts';

/** The machine's time plus what a test has let pass. */
export interface TestClock extends Clock {
  /** Lets time pass at once. */
  advance(ms: number): void;
}

/** A clock that starts at the present moment. */
export function createTestClock(): TestClock {
  let ahead = 0;
  return {
    now: () => new Date(Date.now() + ahead),
    advance(ms) {
      ahead += ms;
    },
  };
}

/** A clock that stands still at the present moment, so that only `advance` lets time pass. */
export function createFrozenClock(): TestClock {
  let ms = Date.now();
  return {
    now: () => new Date(ms),
    advance(by) {
      ms += by;
    },
  };
}
