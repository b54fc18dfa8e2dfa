import { setTimeout as sleep } from 'node:timers/promises';
import { isLost } from './retries.ts';

/** The waits before connecting again, from the first to the longest. */
const RECONNECT_MS = { first: 200, longest: 10_000 } as const;

/** How long a stream is opened again. */
export interface ReconnectOptions {
  /** How long the service may be unreachable, in milliseconds. Default 10 minutes. */
  readonly patienceMs?: number;
  /** Called before each wait for a lost connection. */
  readonly onLost?: (failure: unknown, delayMs: number) => void;
  /** Ends the loop: it throws. */
  readonly signal?: AbortSignal;
}

/**
 * The messages of a stream, which `open` opens anew while the service or the connection is lost.
 * Throws what the stream ended with when the service was not heard of for longer, or refused it.
 */
export async function* reconnect<Message>(
  open: () => AsyncIterable<Message>,
  { patienceMs = 600_000, onLost, signal }: ReconnectOptions,
): AsyncGenerator<Message, void, undefined> {
  let heardAt = performance.now();
  let waitMs: number = RECONNECT_MS.first;
  for (;;) {
    try {
      for await (const message of open()) {
        heardAt = performance.now();
        waitMs = RECONNECT_MS.first;
        yield message;
      }
      return;
    } catch (error) {
      if (!isLost(error) || performance.now() - heardAt > patienceMs) throw error;
      onLost?.(error, waitMs);
      await sleep(waitMs, undefined, signal === undefined ? {} : { signal });
      waitMs = Math.min(waitMs * 2, RECONNECT_MS.longest);
    }
  }
}
