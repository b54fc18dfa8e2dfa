import type { Claimant, FairPool, Grant } from './fair-pool.ts';

/** A place in the line of a pool, and the grant that it led to until somebody takes it. */
export interface WaitingGrant {
  /** Whether it is in line now. */
  readonly waits: boolean;
  /** Gets in line, unless it is there already, or has a grant that nobody has taken. */
  wait(claimant: Claimant, amount: number): void;
  /** Takes the grant that came; undefined when none has come since the last one was taken. */
  take(): Grant | undefined;
  /** Leaves the line, and gives back a grant that nobody has taken. */
  cancel(): void;
}

/**
 * Makes one that does not wait, for a pool in which any number may wait. `onGrant` is called when a
 * grant has come, which it may take.
 */
export function createWaitingGrant(pool: FairPool, onGrant: () => void): WaitingGrant {
  let waiting: AbortController | undefined;
  let granted: Grant | undefined;
  return {
    get waits() {
      return waiting !== undefined;
    },
    wait(claimant, amount) {
      if (waiting !== undefined || granted !== undefined) return;
      const controller = new AbortController();
      waiting = controller;
      pool.acquire(claimant, amount, controller.signal).then(
        (grant) => {
          // Granted in the moment in which it left the line.
          if (controller.signal.aborted) return grant.release();
          waiting = undefined;
          granted = grant;
          onGrant();
        },
        // It has left the line.
        () => undefined,
      );
    },
    take() {
      const grant = granted;
      granted = undefined;
      return grant;
    },
    cancel() {
      waiting?.abort();
      waiting = undefined;
      granted?.release();
      granted = undefined;
    },
  };
}
