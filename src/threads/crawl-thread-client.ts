import { createBatchedPort, type Messages } from '../domain/batched-port.ts';
import { createTransientMap } from '../domain/transient-map.ts';
import type { CookieSession, CrawlTask, Page } from '../engine/engine.ts';
import type { Claimant, FairPool, Grant } from '../fairness/fair-pool.ts';
import type { FailureReports } from '../net/failure-reports.ts';
import type { CrawlResult } from './build-result.ts';
import { ThreadLost } from './thread-lost.ts';
import {
  BASE_BYTES,
  type CrawlThreadSettings,
  type FromCrawlThread,
  type ToCrawlThread,
} from './thread-messages.ts';
import {
  NOBODY,
  startWatchedThread,
  type ThreadEnd,
  type WatchedThreadDeps,
} from './watched-thread.ts';

/** The answer to a request: its result, or a page whose document must be read first. */
export type ThreadAnswer = { readonly page: Page } | { readonly result: CrawlResult };

/** One request to a thread. */
export interface ThreadRequest {
  readonly claimant: Claimant;
  readonly signal: AbortSignal;
  /** Makes the message, which carries the request's number. */
  readonly message: (id: number) => ToCrawlThread;
  /** The session that the request may change. */
  readonly session?: CookieSession | undefined;
  /** Called when a request of the crawl was sent. */
  readonly onSent?: (() => void) | undefined;
  /** Called with the bytes through the proxy of the crawl. */
  readonly onTraffic?: CrawlTask['onTraffic'] | undefined;
  /** Buffers of the message that are handed over instead of copied. */
  readonly transfer?: readonly ArrayBuffer[];
}

/** One crawl thread as the service sees it: the requests in flight, and the memory they hold. */
export interface CrawlThreadClient {
  /** Requests in flight. */
  readonly inFlight: number;
  /** Whether the thread has loaded its program. */
  readonly isUp: boolean;
  /** Bytes of large bodies that it has read. */
  readonly largeBytes: number;
  /**
   * Sends a request and waits for its answer; the caller releases `held`. Rejects with
   * {@link ThreadLost} when the thread ends. An aborted request rejects with the signal's reason,
   * once the thread has ended it: until then the site may still be busy with it.
   */
  send(
    request: ThreadRequest,
  ): Promise<{ readonly answer: ThreadAnswer; readonly held: Grant | undefined }>;
  /** Ends the thread and its requests. */
  close(): Promise<void>;
}

/** What a client works with. */
export interface CrawlThreadClientDeps
  extends FailureReports,
    Pick<WatchedThreadDeps, 'program' | 'maxHeapMb' | 'hangMs' | 'logger'> {
  readonly settings: Omit<CrawlThreadSettings, 'state'>;
  /** The process's memory budget, in bytes. */
  readonly memory: FairPool;
  /** Called once, when the thread ends other than by `close`; its requests reject a moment later. */
  readonly onEnd: () => void;
}

interface Pending extends Omit<ThreadRequest, 'message' | 'transfer'> {
  readonly resolve: (answer: ThreadAnswer) => void;
  readonly reject: (error: Error) => void;
  /** Memory beyond the base. */
  held: Grant | undefined;
}

const MAX_ID = 0x7fff_fffe;

/** Starts a thread. */
export function startCrawlThread(deps: CrawlThreadClientDeps): CrawlThreadClient {
  const { memory, logger } = deps;
  const pending = createTransientMap<number, Pending>();
  let lastId = 0;
  let largeBytes = 0;

  const watched = startWatchedThread({
    ...deps,
    onMessage: (messages) => {
      for (const message of messages as Messages<FromCrawlThread>) receive(message);
    },
    onEnd(end) {
      deps.onEnd();
      // Until then the sites see the crawls, and no others may take their slots.
      void end.gone.then(() => rejectAll(end));
    },
  });
  const port = createBatchedPort<ToCrawlThread>(watched);

  function rejectAll(end: Omit<ThreadEnd, 'gone'>): void {
    for (const [id, each] of pending.entries()) {
      // When the thread does not say whose request it was working on, each of them is suspect.
      each.reject(new ThreadLost(end.culprit === id || end.culprit === 0, end.reason));
    }
    pending.clear();
  }

  function receive(message: FromCrawlThread): void {
    if (message.kind === 'log') logger[message.level](message.fields, message.message);
    else if (message.kind === 'refused') deps.onRefused?.(message.refused);
    else if (message.kind === 'no_socket') deps.onNoSocket?.(message.code);
    else {
      const request = pending.get(message.id);
      if (request !== undefined) receiveFor(request, message);
    }
  }

  function receiveFor(
    request: Pending,
    message: Exclude<FromCrawlThread, { kind: 'log' | 'refused' | 'no_socket' }>,
  ): void {
    const { kind, id } = message;
    if (kind === 'wants') void grant(id, request, message.bytes);
    else if (kind === 'gives') giveBack(request);
    else if (kind === 'cookies') request.session?.change(message.changes);
    else if (kind === 'sent') request.onSent?.();
    else if (kind === 'traffic') request.onTraffic?.(message.traffic);
    else {
      pending.delete(id);
      if (kind === 'failed') request.reject(new Error(message.message));
      else request.resolve(message);
    }
  }

  async function grant(id: number, request: Pending, bytes: number): Promise<void> {
    try {
      const held = await memory.acquire(request.claimant, bytes - BASE_BYTES, request.signal);
      if (pending.get(id) !== request) return held.release();
      giveBack(request);
      request.held = held;
      largeBytes += bytes;
      port.post({ kind: 'room', id, bytes });
    } catch {
      // Aborted: the thread has its message already.
    }
  }

  function giveBack(request: Pending): void {
    request.held?.release();
    request.held = undefined;
  }

  return {
    get inFlight() {
      return pending.size;
    },
    get isUp() {
      return watched.isUp;
    },
    get largeBytes() {
      return largeBytes;
    },
    async send({ message, transfer = [], ...others }) {
      lastId = (lastId % MAX_ID) + 1;
      const id = lastId;
      const { signal } = others;
      const { promise, resolve, reject } = Promise.withResolvers<ThreadAnswer>();
      const request: Pending = { ...others, resolve, reject, held: undefined };
      const onAbort = (): void => port.post({ kind: 'abort', id });
      pending.set(id, request);
      signal.addEventListener('abort', onAbort, { once: true });
      port.post(message(id), transfer);
      try {
        const answer = await promise;
        signal.throwIfAborted();
        return { answer, held: request.held };
      } catch (error) {
        giveBack(request);
        if (!(error instanceof ThreadLost)) signal.throwIfAborted();
        throw error;
      } finally {
        signal.removeEventListener('abort', onAbort);
      }
    },
    async close() {
      await watched.close();
      rejectAll({ culprit: NOBODY, reason: 'the service is closing' });
    },
  };
}
