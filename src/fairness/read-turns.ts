import type { Claimant } from './fair-pool.ts';
import { createTurnQueue } from './turn-queue.ts';

/**
 * Turns to read messages, which cannot be interrupted: one in each iteration of the event loop, that of
 * each claimant in turn.
 */
export interface ReadTurns {
  /** Resolves when a message of this length may be read, which has to be done at once. */
  take(claimant: Claimant, bytes: number): Promise<void>;
}

/** How turns follow one another. */
export interface ReadTurnsOptions {
  /** Runs something in the next iteration of the event loop; default: `setImmediate`. */
  readonly defer?: (run: () => void) => void;
  /** Runs something after a time in milliseconds; default: `setTimeout`. */
  readonly pause?: (run: () => void, ms: number) => void;
  /** Default: `performance.now`. */
  readonly now?: () => number;
}

/** After a longer iteration others have as much time. A batch of 1,000 URLs takes less. */
const LONG_ITERATION_MS = 20;
/** Shorter messages need no turn: to read one takes two milliseconds at most, and 0.1 as a rule. */
const LONG_BYTES = 16 * 1_024;

/**
 * Makes the turns. A message of 1 MB can take 150 ms to read. Those that arrive together would be read in
 * one iteration of the event loop, and every call passes some ten iterations.
 */
export function createReadTurns(options: ReadTurnsOptions = {}): ReadTurns {
  const { defer = setImmediate, now = () => performance.now() } = options;
  const { pause = (run, ms) => void setTimeout(run, ms) } = options;
  const waiting = createTurnQueue<() => void>();
  /** Whether the turn is taken, or the pause behind it is not over. */
  let isTaken = false;

  function next(): void {
    const [turn] = waiting.turns();
    isTaken = turn !== undefined;
    if (turn === undefined) return;
    waiting.endTurn(turn.accountId);
    const from = now();
    defer(() => {
      const tookMs = now() - from;
      if (tookMs > LONG_ITERATION_MS) pause(next, tookMs);
      else next();
    });
    turn.item();
  }

  return {
    async take(claimant, bytes) {
      if (bytes < LONG_BYTES) return;
      const granted = Promise.withResolvers<void>();
      waiting.add(claimant, granted.resolve);
      if (!isTaken) next();
      await granted.promise;
    },
  };
}
