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
