import type { CrawlRequest } from '../domain/job.ts';
import type { Logger } from '../domain/logger.ts';
import type { CrawlTask, Page } from '../engine/engine.ts';
import type { Claimant, FairPool, Grant } from '../fairness/fair-pool.ts';
import type { FailureReports } from '../net/failure-reports.ts';
import type { CrawlResult, ResultSpec } from './build-result.ts';
import {
  type CrawlThreadClient,
  startCrawlThread,
  type ThreadRequest,
} from './crawl-thread-client.ts';
import type { DocumentThreads } from './document-threads.ts';
import { ThreadLost } from './thread-lost.ts';
import { BASE_BYTES, type CrawlThreadSettings, transferable } from './thread-messages.ts';
import { createThreadRouting } from './thread-routing.ts';

/** One crawl, and what its page becomes. */
export interface CrawlOrder {
  readonly task: CrawlTask;
  readonly spec: ResultSpec;
  /** A crawl of it ended its thread before: it runs apart from the others. */
  readonly isSuspect: boolean;
  /** Retries of the job so far; default 0. */
  readonly retry?: number;
  /** The trace that the crawl belongs to. */
  readonly traceparent?: string | undefined;
}

/** A result, and the memory it holds beyond the {@link BASE_BYTES} that its caller holds for it. */
export interface Crawled {
  readonly result: CrawlResult;
  /** The caller releases it when the result has been written or sent. */
  readonly held: Grant | undefined;
}

/** What there is of a page that was crawled elsewhere. */
export interface Built {
  /** Where its screenshot is kept. */
  readonly screenshotUrl?: string | undefined;
  /** Its memory beyond {@link BASE_BYTES}, which passes to the result; released if the call rejects. */
  readonly held?: Grant | undefined;
}

/**
 * The threads in which pages are crawled and results are built, in addition to the service's own.
 * Calls reject with {@link ThreadLost} when their thread ended, and with the signal's reason when
 * aborted.
 */
export interface CrawlThreads {
  /** Crawls by plain HTTP, without politeness. */
  crawl(order: CrawlOrder, signal: AbortSignal): Promise<Crawled>;
  /** Builds the result of a page that was crawled elsewhere. */
  build(page: Page, order: CrawlOrder, built: Built, signal: AbortSignal): Promise<Crawled>;
  /** Reads the document of a page; see {@link DocumentThreads.read}. */
  readonly readDocument: DocumentThreads['read'];
  /** Starts a thread, so that the first crawl need not wait for one. */
  warmUp(): void;
  /** Requests in flight, threads that run, and threads that ended and had to be replaced. */
  activity(): { readonly running: number; readonly threads: number; readonly replaced: number };
  close(): Promise<void>;
}

/** What the threads work with. */
export interface CrawlThreadsDeps extends FailureReports {
  /** How many; a further one starts when something suspect is crawled. */
  readonly threads: number;
  /** How many of them are used while several accounts crawl; default all. */
  readonly sharedThreads?: number;
  /** Whether an account that crawls alone uses all of them, for one host, too; default yes. */
  readonly spreads?: boolean;
  readonly settings: Omit<CrawlThreadSettings, 'state'>;
  /** The process's memory budget, in bytes. */
  readonly memory: FairPool;
  readonly documents: DocumentThreads;
  /** How long a thread may be silent before it is replaced. */
  readonly hangMs: number;
  readonly logger: Logger;
  /** Default: `crawl-thread.ts`. */
  readonly program?: URL;
  /** A thread's heap; default 384. */
  readonly maxHeapMb?: number;
  /** See {@link IDLE_MS}. */
  readonly idleMs?: number;
}

const PROGRAM = new URL('./crawl-thread.ts', import.meta.url);
const MAX_HEAP_MB = 384;
/** The thread that is kept ready. */
const FIRST = 0;
/** After a thread has ended, none is started that nothing waits for. */
const RESTART_PAUSE_MS = 1_000;
/**
 * Time without crawls after which threads end. All but the first end, which takes some 30 MB each, and
 * start again when they are needed. The first is replaced if it has read this many bytes: the allocator
 * returns what a flood of large pages took only when the thread ends.
 */
const IDLE_MS = 60_000;
const WORN_BYTES = 256 * 1_024 * 1_024;

/**
 * Makes the threads. Each starts with the first request for it; a thread that ended is replaced
 * with the next one.
 */
export function createCrawlThreads(deps: CrawlThreadsDeps): CrawlThreads {
  const pool = createThreadPool(deps);
  const { threads: count, sharedThreads: shared = count } = deps;
  const routing = createThreadRouting({ count, shared, spreads: deps.spreads ?? true, ...pool });
  const quarantine = deps.threads;

  async function crawl({ task, spec, isSuspect }: CrawlOrder, signal: AbortSignal) {
    const { session, onSent, onTraffic, budget: _, ...sent } = task;
    const cookies = await session?.read();
    const place = isSuspect || routing.isSuspect(task) ? undefined : routing.enter(task);
    try {
      return await pool.send(place?.thread ?? quarantine, {
        claimant: toClaimant(task),
        signal,
        session,
        onSent,
        onTraffic,
        message: (id) => ({
          kind: 'crawl',
          id,
          tellsSent: onSent !== undefined,
          task: { ...sent, politeness: undefined, request: toRequest(task.request) },
          cookies,
          spec,
        }),
      });
    } catch (error) {
      if (error instanceof ThreadLost && error.blamed) routing.suspect(task);
      signal.throwIfAborted();
      throw error;
    } finally {
      place?.leave();
    }
  }

  async function build(
    page: Page,
    { task, spec }: CrawlOrder,
    { screenshotUrl }: Built,
    signal: AbortSignal,
  ): Promise<CrawlResult> {
    const claimant = toClaimant(task);
    const document = await deps.documents.read(page, task.request, claimant, signal);
    // The screenshot itself is stored already.
    const { screenshot: _, ...sent } = page;
    const request = toRequest(task.request);
    const input = { page: sent, request, spec, document, screenshotUrl };
    const { answer } = await pool.send(routing.leastLoaded(), {
      claimant,
      signal,
      message: (id) => ({ kind: 'build', id, claimant, input }),
      transfer: transferable(page.body),
    });
    if (!('result' in answer)) throw new Error('a thread answered a build with a page');
    return answer.result;
  }

  async function buildHeld(
    page: Page,
    order: CrawlOrder,
    built: Built,
    signal: AbortSignal,
  ): Promise<Crawled> {
    try {
      return toCrawled(await build(page, order, built, signal), built.held);
    } catch (error) {
      built.held?.release();
      throw error;
    }
  }

  return {
    async crawl(order, signal) {
      const { answer, held } = await crawl(order, signal);
      if ('result' in answer) return toCrawled(answer.result, held);
      return buildHeld(answer.page, order, { held }, signal);
    },
    build: buildHeld,
    readDocument: deps.documents.read,
    warmUp: () => pool.prepare(FIRST),
    activity: pool.activity,
    close: pool.close,
  };
}

/** The threads by number: 0 to `threads` - 1, and the one for what is suspect. */
function createThreadPool(deps: CrawlThreadsDeps) {
  const clients: (CrawlThreadClient | undefined)[] = Array.from({ length: deps.threads + 1 });
  let replaced = 0;
  let closed = false;
  let lastEnd = Number.NEGATIVE_INFINITY;
  let lastSend = 0;
  const { idleMs = IDLE_MS } = deps;
  const ending = setInterval(endIdle, idleMs / 2);
  ending.unref();

  function endIdle(): void {
    if (performance.now() - lastSend < idleMs) return;
    for (const [index, client] of clients.entries()) {
      if (client === undefined || client.inFlight > 0) continue;
      if (index === FIRST && client.largeBytes < WORN_BYTES) continue;
      void client.close();
      clients[index] = index === FIRST ? start(index) : undefined;
    }
  }

  function start(index: number): CrawlThreadClient {
    const { program = PROGRAM, maxHeapMb = MAX_HEAP_MB, onRefused, onNoSocket } = deps;
    const client = startCrawlThread({
      ...deps,
      program,
      maxHeapMb,
      onRefused,
      onNoSocket,
      onEnd() {
        replaced += 1;
        lastEnd = performance.now();
        if (clients[index] === client) clients[index] = undefined;
      },
    });
    return client;
  }

  return {
    inFlight: (index: number): number => clients[index]?.inFlight ?? 0,
    isUp: (index: number): boolean => clients[index]?.isUp ?? false,
    /** Starts a thread that nothing waits for, unless one has just ended: it might end in the same way. */
    prepare(index: number): void {
      if (closed || performance.now() - lastEnd < RESTART_PAUSE_MS) return;
      clients[index] ??= start(index);
    },
    async send(index: number, request: ThreadRequest) {
      request.signal.throwIfAborted();
      if (closed) throw new ThreadLost(false, 'the service is closing');
      lastSend = performance.now();
      return (clients[index] ??= start(index)).send(request);
    },
    activity: () => ({
      running: clients.reduce((sum, each) => sum + (each?.inFlight ?? 0), 0),
      threads: clients.filter((each) => each !== undefined).length,
      replaced,
    }),
    async close(): Promise<void> {
      closed = true;
      clearInterval(ending);
      await Promise.all(clients.flatMap((client) => client?.close() ?? []));
    },
  };
}

/** Keeps of `held` what the result needs beyond the base. */
function toCrawled(result: CrawlResult, held: Grant | undefined): Crawled {
  const { body, packed, plain } = result;
  const bytes = body.byteLength + packed.byteLength + (plain?.byteLength ?? 0);
  held?.shrink(bytes - BASE_BYTES);
  return { result, held };
}

function toClaimant({ accountId, crawlerId }: CrawlTask): Claimant {
  return { accountId, crawlerId };
}

/** The fields of the request alone: a job is one, too, and the thread needs nothing else of it. */
function toRequest({ url, method, body, contentType, parameters }: CrawlRequest): CrawlRequest {
  return { url, method, body, contentType, parameters };
}
