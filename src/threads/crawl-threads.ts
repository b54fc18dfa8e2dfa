import type { CrawlRequest } from '../domain/job.ts';
import type { Logger } from '../domain/logger.ts';
import type { CrawlTask, Page } from '../engine/engine.ts';
import type { Claimant, FairPool, Grant } from '../fairness/fair-pool.ts';
import type { RefusedConnection } from '../net/create-http-client.ts';
import { type BatchedPort, createBatchedPort } from './batched-port.ts';
import type { CrawlResult, ResultSpec } from './build-result.ts';
import type { DocumentThreads } from './document-threads.ts';
import {
  type CrawlThreadSettings,
  type FromCrawlThread,
  type Messages,
  type ToCrawlThread,
  transferable,
} from './messages.ts';
import { createThreadRouting } from './thread-routing.ts';
import {
  NOBODY,
  startWatchedThread,
  type ThreadEnd,
  type WatchedThread,
} from './watched-thread.ts';

/** One crawl, and what is made of its page. */
export interface CrawlOrder {
  readonly task: CrawlTask;
  readonly spec: ResultSpec;
  /** It has taken a thread with it before: it runs apart from the others. */
  readonly isSuspect: boolean;
}

/** A result, and the memory it holds beyond the {@link BASE_BYTES} that its caller holds for it. */
export interface Crawled {
  readonly result: CrawlResult;
  /** To be released when the result has been written or sent. */
  readonly held: Grant | undefined;
}

/** What a caller reserves in the memory budget for each crawl before it starts it. */
export const BASE_BYTES = 64 * 1_024;

/** Why a crawl has no result. `blamed` means that its thread was working on it when it ended. */
export class ThreadLost extends Error {
  override readonly name = 'ThreadLost';
  readonly blamed: boolean;

  constructor(blamed: boolean, reason: string) {
    super(reason);
    this.blamed = blamed;
  }
}

/**
 * The threads in which pages are crawled and results are built, beside the service's own. Calls reject with {@link ThreadLost} when
 * their thread ended, and with the signal's reason when aborted.
 */
export interface CrawlThreads {
  /** Crawls by plain HTTP, without politeness. */
  crawl(order: CrawlOrder, signal: AbortSignal): Promise<Crawled>;
  /**
   * Builds the result of a page that was crawled elsewhere; `screenshotUrl` is where its screenshot
   * is kept.
   */
  build(
    page: Page,
    order: CrawlOrder,
    screenshotUrl: string | undefined,
    signal: AbortSignal,
  ): Promise<Crawled>;
  /** Requests under way in each thread, and how many threads had to be replaced. */
  activity(): { readonly running: number; readonly threads: number; readonly replaced: number };
  close(): Promise<void>;
}

/** What the threads work with. */
export interface CrawlThreadsDeps {
  /** How many; a further one is started when something suspect is to be crawled. */
  readonly threads: number;
  readonly settings: Omit<CrawlThreadSettings, 'state' | 'baseBytes'>;
  /** The process's memory budget, in bytes. */
  readonly memory: FairPool;
  readonly documents: DocumentThreads;
  /** How long a thread may be silent before it is replaced. */
  readonly hangMs: number;
  readonly logger: Logger;
  /** Told of every request of a crawl that was refused for where it led. */
  readonly onRefused?: (refused: RefusedConnection) => void;
  /** Default: `crawl-thread.ts`. */
  readonly program?: URL;
  /** A thread's heap; default 384. */
  readonly maxHeapMb?: number;
}

type Answer = { readonly page: Page } | { readonly result: CrawlResult };

interface Pending {
  readonly claimant: Claimant;
  readonly signal: AbortSignal;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
  /** Memory beyond the base. */
  held: Grant | undefined;
}

interface Thread {
  readonly port: BatchedPort<ToCrawlThread>;
  readonly watched: WatchedThread;
  readonly pending: Map<number, Pending>;
}

const PROGRAM = new URL('./crawl-thread.ts', import.meta.url);
const MAX_HEAP_MB = 384;

/** Starts the threads with the first request for each; a thread that ended is replaced by the next request. */
export function createCrawlThreads(deps: CrawlThreadsDeps): CrawlThreads {
  const { memory, documents, logger } = deps;
  const quarantine = deps.threads;
  const threads: (Thread | undefined)[] = Array.from({ length: deps.threads + 1 });
  const routing = createThreadRouting({ threads: deps.threads, loadOf });
  let lastId = 0;
  let replaced = 0;
  let closed = false;

  function loadOf(index: number): number {
    return threads[index]?.pending.size ?? 0;
  }

  function start(index: number): Thread {
    const pending = new Map<number, Pending>();
    const watched = startWatchedThread({
      program: deps.program ?? PROGRAM,
      settings: { ...deps.settings, baseBytes: BASE_BYTES },
      maxHeapMb: deps.maxHeapMb ?? MAX_HEAP_MB,
      hangMs: deps.hangMs,
      logger,
      onMessage: (messages) => {
        for (const message of messages as Messages<FromCrawlThread>) receive(thread, message);
      },
      onEnd(end) {
        replaced += 1;
        if (threads[index] === thread) threads[index] = undefined;
        lose(thread, end);
      },
    });
    const thread: Thread = { watched, pending, port: createBatchedPort(watched) };
    return thread;
  }

  function lose({ pending }: Thread, end: ThreadEnd): void {
    for (const [id, each] of pending) {
      // When it is not known whose work it was, everybody's is suspect.
      each.reject(new ThreadLost(end.culprit === id || end.culprit === 0, end.reason));
    }
    pending.clear();
  }

  function receive(thread: Thread, message: FromCrawlThread): void {
    if (message.kind === 'log') {
      logger[message.level](message.fields, message.message);
      return;
    }
    if (message.kind === 'refused') {
      deps.onRefused?.(message.refused);
      return;
    }
    const pending = thread.pending.get(message.id);
    if (pending === undefined) return;
    if (message.kind === 'wants') void grant(thread, message.id, pending, message.bytes);
    else if (message.kind === 'gives') giveBack(pending);
    else {
      thread.pending.delete(message.id);
      if (message.kind === 'failed') pending.reject(new Error(message.message));
      else pending.resolve(message);
    }
  }

  async function grant(thread: Thread, id: number, pending: Pending, bytes: number): Promise<void> {
    try {
      const held = await memory.acquire(pending.claimant, bytes - BASE_BYTES, pending.signal);
      if (thread.pending.get(id) !== pending) return held.release();
      giveBack(pending);
      pending.held = held;
      thread.port.post({ kind: 'room', id, bytes });
    } catch {
      // Aborted: the thread has been told already.
    }
  }

  function giveBack(pending: Pending): void {
    pending.held?.release();
    pending.held = undefined;
  }

  /** Sends one request to a thread, and waits for its answer. The memory it holds is the caller's to release. */
  async function ask(
    index: number,
    claimant: Claimant,
    signal: AbortSignal,
    message: (id: number) => ToCrawlThread,
    transfer: readonly ArrayBuffer[] = [],
  ): Promise<{ readonly answer: Answer; readonly held: Grant | undefined }> {
    signal.throwIfAborted();
    if (closed) throw new ThreadLost(false, 'the service is closing');
    const thread = (threads[index] ??= start(index));
    lastId = (lastId % 0x7fff_fffe) + 1;
    const id = lastId;
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const pending: Pending = { claimant, signal, resolve, reject, held: undefined };
    const onAbort = (): void => {
      if (!thread.pending.delete(id)) return;
      thread.port.post({ kind: 'abort', id });
      reject(signal.reason as Error);
    };
    thread.pending.set(id, pending);
    signal.addEventListener('abort', onAbort, { once: true });
    thread.port.post(message(id), transfer);
    try {
      return { answer: await promise, held: pending.held };
    } catch (error) {
      giveBack(pending);
      throw error;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Keeps of `held` what the result needs beyond the base. */
  function crawled(result: CrawlResult, held: Grant | undefined): Crawled {
    held?.shrink(result.body.byteLength + result.packed.byteLength - BASE_BYTES);
    return { result, held };
  }

  async function build(
    page: Page,
    { task, spec }: CrawlOrder,
    screenshotUrl: string | undefined,
    signal: AbortSignal,
    held?: Grant,
  ): Promise<Crawled> {
    const { request } = task;
    const claimant = claimantOf(task);
    try {
      const document = await documents.read(page, request, claimant, signal);
      // The screenshot has its address by now.
      const { screenshot: _, ...sent } = page;
      const index = routing.leastLoaded();
      const { answer } = await ask(
        index,
        claimant,
        signal,
        (id) => ({
          kind: 'build',
          id,
          claimant,
          input: { page: sent, request: requestOf(request), spec, document, screenshotUrl },
        }),
        transferable(page.body),
      );
      if (!('result' in answer)) throw new Error('a thread answered a build with a page');
      return crawled(answer.result, held);
    } catch (error) {
      held?.release();
      throw error;
    }
  }

  function send(task: CrawlTask, spec: ResultSpec, isSuspect: boolean, signal: AbortSignal) {
    const index = isSuspect || routing.isSuspect(task) ? quarantine : routing.threadOf(task);
    return ask(index, claimantOf(task), signal, (id) => ({
      kind: 'crawl',
      id,
      task: { ...task, politeness: undefined, request: requestOf(task.request) },
      spec,
    })).catch((error: unknown) => {
      if (error instanceof ThreadLost && error.blamed) routing.suspect(task);
      throw error;
    });
  }

  return {
    async crawl(order, signal) {
      const { answer, held } = await send(order.task, order.spec, order.isSuspect, signal);
      if ('result' in answer) return crawled(answer.result, held);
      return build(answer.page, order, undefined, signal, held);
    },
    build: (page, order, screenshotUrl, signal) => build(page, order, screenshotUrl, signal),
    activity: () => ({
      running: threads.reduce((sum, each) => sum + (each?.pending.size ?? 0), 0),
      threads: threads.filter((each) => each !== undefined).length,
      replaced,
    }),
    async close() {
      closed = true;
      await Promise.all(
        threads.map(async (thread) => {
          if (thread === undefined) return;
          await thread.watched.close();
          lose(thread, { culprit: NOBODY, reason: 'the service is closing' });
        }),
      );
    },
  };
}

function claimantOf({ accountId, crawlerId }: CrawlTask): Claimant {
  return { accountId, crawlerId };
}

/** A job is a request, too; nothing else of it is the thread's. */
function requestOf({ url, method, body, contentType, parameters }: CrawlRequest): CrawlRequest {
  return { url, method, body, contentType, parameters };
}
