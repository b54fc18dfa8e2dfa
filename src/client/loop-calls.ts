import { setTimeout as sleep } from 'node:timers/promises';
import { isLost, limitAttempts } from './retries.ts';
import type { CallOptions } from './service-clients.ts';

/** Limit of one attempt of a call: a connection that died silently answers nothing. */
const ATTEMPT_MS = 60_000;
/** Least limit of a call with all of its attempts; otherwise that is the patience. */
const MIN_CALL_MS = 10_000;
/** A timer takes no more; some 24 days. */
const MAX_CALL_MS = 2 ** 31 - 1;
/** The wait before a call is made again; each call has attempts of its own. */
const AGAIN_MS = 1_000;

/** Makes one call of a loop. */
export type LoopCall = <Reply>(call: (options: CallOptions) => Promise<Reply>) => Promise<Reply>;

/**
 * Makes the calls of a loop, which may be repeated. Once the service has answered one of them, a call
 * whose service or connection is lost is made again until the patience ends.
 */
export function createLoopCall(patienceMs: number, signal: AbortSignal): LoopCall {
  const timeoutMs = Math.min(Math.max(patienceMs, MIN_CALL_MS), MAX_CALL_MS);
  let hasAnswered = false;
  return async (call) => {
    const startedAt = performance.now();
    for (;;) {
      try {
        const reply = await call({ signal, timeoutMs, contextValues: limitAttempts(ATTEMPT_MS) });
        hasAnswered = true;
        return reply;
      } catch (error) {
        signal.throwIfAborted();
        const isOver = performance.now() - startedAt >= patienceMs;
        if (!hasAnswered || isOver || !isLost(error)) throw error;
        await sleep(AGAIN_MS, undefined, { signal });
      }
    }
  };
}
