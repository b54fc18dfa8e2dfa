/** How long a loop continues without success. */
export interface Patience {
  /** Tells of a success. */
  renew(): void;
  /** Tells of a failure; returns whether the patience has ended. */
  isOver(): boolean;
}

/**
 * Makes a patience of some milliseconds. It counts from the first failure since the last success, so
 * the time that the caller or the source of a loop takes is not in it.
 */
export function createPatience(patienceMs: number): Patience {
  let failedAt: number | undefined;
  return {
    renew() {
      failedAt = undefined;
    },
    isOver() {
      const now = performance.now();
      failedAt ??= now;
      return now - failedAt >= patienceMs;
    },
  };
}
