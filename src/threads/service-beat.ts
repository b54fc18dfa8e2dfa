import type { ThreadState } from './thread-messages.ts';

// A process that was stopped (SIGSTOP, a suspended machine) may have lost its leases. When it
// resumes, its crawl threads resume as well, and one may send requests before the service has
// aborted them. So a thread sends none unless the service has been awake all the time.

const BEAT_MS = 100;
/**
 * A service that is silent for this long was stopped, or is too busy to abort what must not
 * continue. Runs end a second before their lease: the other half is for clocks that differ.
 */
const ASLEEP_MS = 500;
const ASK_AGAIN_MS = 20;

/**
 * Tells a thread that the service is awake, until the returned function is called. After a sleep it
 * waits for an iteration of the event loop, in which the service aborts what it may no longer do.
 */
export function beatForThread(state: Pick<ThreadState, 'beatService'>): () => void {
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    if (now - last < ASLEEP_MS) state.beatService();
    // Aborts are sent when the callbacks of an iteration are done.
    else setImmediate(() => setImmediate(state.beatService));
    last = now;
  }, BEAT_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/**
 * Watches the service from a thread, as long as that runs. The returned function returns undefined
 * if the service has been awake all the time, as far as the thread can tell. Otherwise it returns a
 * promise. That resolves when the service is awake again and what it has sent until then was read,
 * or when `signal` is aborted.
 */
export function watchService(
  state: Pick<ThreadState, 'serviceBeats'>,
): (signal?: AbortSignal) => Promise<void> | undefined {
  let lookedAt = performance.now();
  let seen = state.serviceBeats();
  let seenAt = lookedAt;
  let isAwake = true;
  let isReading = false;

  function hasBeat(): boolean {
    const at = performance.now();
    // A beat from before a sleep says nothing about the time since.
    const slept = at - lookedAt >= ASLEEP_MS;
    const beats = state.serviceBeats();
    if (beats !== seen && !slept) seenAt = at;
    seen = beats;
    lookedAt = at;
    return at - seenAt < ASLEEP_MS;
  }

  /** A beat overtakes the messages that were sent before it, and they may abort requests. */
  function readMessages(): void {
    if (isReading) return;
    isReading = true;
    // The event loop looks for messages between the two.
    setImmediate(() => {
      setImmediate(() => {
        isReading = false;
        isAwake = hasBeat();
      });
    });
  }

  function look(): boolean {
    if (!hasBeat()) isAwake = false;
    else if (!isAwake) readMessages();
    return isAwake;
  }

  async function untilAwake(signal: AbortSignal | undefined): Promise<void> {
    while (!look() && signal?.aborted !== true) {
      await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
    }
  }

  setInterval(look, BEAT_MS).unref();
  return (signal) => (look() ? undefined : untilAwake(signal));
}
