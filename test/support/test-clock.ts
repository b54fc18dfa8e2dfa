import type { ServiceClock } from '../../src/domain/clock.ts';

/** The machine's time plus what a test has let pass. */
export interface TestClock extends ServiceClock {
  /** Lets time pass at once. */
  advance(ms: number): void;
}

/** A clock that starts at the present moment. */
export function createTestClock(): TestClock {
  let ahead = 0;
  return {
    aheadMs: 0,
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
    aheadMs: 0,
    now: () => new Date(ms),
    advance(by) {
      ms += by;
    },
  };
}
