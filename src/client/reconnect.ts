import { setTimeout as sleep } from 'node:timers/promises';
import { createPatience } from './patience.ts';
import { isLost, refusalDelay } from './retries.ts';

/** The waits before connecting again, from the first to the longest. */
const RECONNECT_MS = { first: 200, longest: 10_000 } as const;

/** How long a stream is opened again. */
export interface ReconnectOptions {
  /** How long the service may be unreachable or refuse for now, in milliseconds. Default 10 minutes. */
  readonly patienceMs?: number;
  /** Called before each wait for a lost or refused connection. */
  readonly onLost?: (failure: unknown, delayMs: number) => void;
  /** Ends the loop: it throws the signal's reason. */
  readonly signal?: AbortSignal;
}

/**
 * The messages of a stream, which `open` opens anew while the service or the connection is lost, or
 * the service refuses the stream for now. Throws what the stream ended with when the patience ends, or
 * the service refused it for good.
 */
export async function* reconnect<Message>(
  open: () => AsyncIterable<Message>,
  { patienceMs = 600_000, onLost, signal }: ReconnectOptions,
): AsyncGenerator<Message, void, undefined> {
  const patience = createPatience(patienceMs);
  let waitMs: number = RECONNECT_MS.first;
  for (;;) {
    try {
      for await (const message of open()) {
        patience.renew();
        waitMs = RECONNECT_MS.first;
        yield message;
      }
      return;
    } catch (error) {
      signal?.throwIfAborted();
      const named = refusalDelay(error);
      const isTransient = named !== undefined || isLost(error);
      if (!isTransient || patience.isOver()) throw error;
      const delayMs = Math.max(named ?? 0, waitMs);
      onLost?.(error, delayMs);
      await sleep(delayMs, undefined, signal === undefined ? {} : { signal });
      waitMs = Math.min(waitMs * 2, RECONNECT_MS.longest);
    }
  }
}
