import { setTimeout as wait } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Logger } from '../domain/logger.ts';
import { createStateBuffer, threadState } from './messages.ts';
import { beatForThread } from './service-beat.ts';
import { threadEnvironment } from './thread-environment.ts';

/** A thread that is ended when it stops answering or outgrows its memory. */
export interface WatchedThread {
  /** Whether it has loaded its program. */
  readonly isUp: boolean;
  postMessage(message: unknown, transfer: readonly ArrayBuffer[]): void;
  /** Ends it; `onEnd` is not called for that. */
  close(): Promise<void>;
}

/** Why a thread ended other than by `close`. */
export interface ThreadEnd {
  /** The request it was working on; 0 when unknown, {@link NOBODY} when it was idle. */
  readonly culprit: number;
  readonly reason: string;
  /** Resolves when its connections are closed, or it has not ended for five seconds. */
  readonly gone: Promise<unknown>;
}

/** What a watched thread is started with. */
export interface WatchedThreadDeps {
  readonly program: URL;
  /** Sent to it as `workerData`, together with `state`. */
  readonly settings: object;
  /** Its heap. Memory outside of it, such as bodies, counts in the service's memory budget. */
  readonly maxHeapMb: number;
  /** How long it may be silent. */
  readonly hangMs: number;
  readonly logger: Logger;
  readonly onMessage: (message: unknown) => void;
  /** Called once, when it ends other than by `close`. */
  readonly onEnd: (end: ThreadEnd) => void;
}

/** The number of no request. */
export const NOBODY = -1;

/**
 * Checks in one `hangMs`. Each of them must find the thread silent, so that a machine that was
 * suspended does not end its threads.
 */
const CHECKS = 8;

/**
 * V8's own limit, for a heap that grows faster than it is checked. With a lower one V8 collects
 * garbage four times as often, which took a fifth of a crawl's processor time.
 */
const HEAP_BACKSTOP_MB = 2_048;
/** V8 ends a thread between two instructions, but not within one of native code. */
const LONGEST_END_MS = 5_000;
const OUT_OF_MEMORY = 'it took too much memory';

/** Starts a thread. It does not keep the process alive. */
export function startWatchedThread(deps: WatchedThreadDeps): WatchedThread {
  const buffer = createStateBuffer();
  const state = threadState(buffer);
  const stopBeating = beatForThread(state);
  const worker = new Worker(deps.program, {
    workerData: { ...deps.settings, state: buffer },
    env: threadEnvironment(),
    resourceLimits: { maxOldGenerationSizeMb: HEAP_BACKSTOP_MB, maxYoungGenerationSizeMb: 48 },
  });
  worker.unref();
  let closing = false;
  let ended = false;
  let silent = 0;
  let seen = -1;

  function end(reason: string): void {
    if (ended) return;
    ended = true;
    clearInterval(watch);
    stopBeating();
    if (closing) return;
    deps.logger.error({ reason }, 'a crawl thread has ended; another takes over');
    // A thread that never started was not working on a request.
    const culprit = state.beats() === 0 ? NOBODY : state.current();
    const late = wait(LONGEST_END_MS, undefined, { ref: false });
    deps.onEnd({ culprit, reason, gone: Promise.race([worker.terminate(), late]) });
  }

  async function checkHeap(): Promise<void> {
    try {
      // V8 answers between two instructions of the thread, so a busy thread answers, too.
      const { used_heap_size: bytes } = await worker.getHeapStatistics();
      if (bytes > deps.maxHeapMb * 1024 * 1024) end(OUT_OF_MEMORY);
    } catch {
      // It is starting or ending.
    }
  }

  const watch = setInterval(() => {
    const beats = state.beats();
    // On a busy machine loading the program may take longer than `hangMs`.
    silent = beats === seen && beats > 0 ? silent + 1 : 0;
    seen = beats;
    if (silent >= CHECKS) end(`it did not answer for ${deps.hangMs} ms`);
    else void checkHeap();
  }, deps.hangMs / CHECKS);
  watch.unref();
  worker.on('message', deps.onMessage);
  worker.once('error', (error) => {
    const { code } = error as NodeJS.ErrnoException;
    end(code === 'ERR_WORKER_OUT_OF_MEMORY' ? OUT_OF_MEMORY : error.message);
  });
  worker.once('exit', () => end('it exited'));

  return {
    get isUp() {
      return state.beats() > 0;
    },
    postMessage(message, transfer) {
      if (!ended) worker.postMessage(message, transfer);
    },
    async close() {
      closing = true;
      clearInterval(watch);
      stopBeating();
      await worker.terminate();
    },
  };
}
