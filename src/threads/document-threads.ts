import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { CrawlRequest } from '../domain/job.ts';
import type { Logger } from '../domain/logger.ts';
import {
  type DocumentOutput,
  type DocumentWork,
  documentWork,
  MAX_DOCUMENT_BYTES,
  type ReadablePage,
} from '../engine/extract/format-page.ts';
import { type Claimant, createFairPool } from '../fairness/fair-pool.ts';
import { threadEnvironment } from './thread-environment.ts';

/** One document to be read. */
export interface DocumentTask {
  /** UTF-8. */
  readonly html: Uint8Array;
  readonly url: string;
  readonly work: DocumentWork;
}

/** The threads that parse documents: one document at a time in each, the tenants in turn. */
export interface DocumentThreads {
  /**
   * Reads the page's document; resolves with undefined when its result needs none. A document that
   * cannot be read in time, or at all, has `failed`. Rejects only with the signal's reason.
   */
  read(
    page: ReadablePage,
    request: Pick<CrawlRequest, 'parameters'>,
    claimant: Claimant,
    signal: AbortSignal,
  ): Promise<DocumentOutput | undefined>;
  close(): Promise<void>;
}

const START_MS = 30_000;
const CLOSING = 'the service is closing';
const NOT_STARTED = 'no thread has started in time to read the page';
const TOO_MUCH = 'the page took too long or too much memory';
const PROGRAM = new URL('./document-thread.ts', import.meta.url);

/**
 * Makes the threads. Each starts when it is needed, and is replaced when a document takes longer
 * than `timeoutMs`.
 */
export function createDocumentThreads(deps: {
  readonly threads: number;
  readonly timeoutMs: number;
  readonly logger: Pick<Logger, 'warn'>;
}): DocumentThreads {
  // The reserve is a thread for accounts that read little, while others fill the rest with documents
  // that take all their time.
  const slots = createFairPool({ name: 'document threads', capacity: deps.threads, reserve: 1 });
  const idle: Worker[] = [];
  const all = new Set<Worker>();
  let closed = false;

  function start(): Worker {
    const worker = new Worker(PROGRAM, {
      env: threadEnvironment(),
      resourceLimits: { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 },
    });
    // It must not keep the process alive.
    worker.unref();
    all.add(worker);
    worker.once('exit', () => {
      all.delete(worker);
      const at = idle.indexOf(worker);
      if (at >= 0) idle.splice(at, 1);
    });
    return worker;
  }

  async function perform(task: DocumentTask): Promise<DocumentOutput> {
    if (closed) return { failed: CLOSING };
    const waiting = idle.pop();
    const worker = waiting ?? start();
    const ended = new AbortController();
    const { signal } = ended;
    let timer = setTimeout(() => void worker.terminate(), deps.timeoutMs + START_MS);
    try {
      // The document's time starts when the thread has loaded its program, which on a busy machine
      // takes seconds.
      if (waiting === undefined && (await nextMessage(worker, signal)) === undefined) {
        return { failed: closed ? CLOSING : NOT_STARTED };
      }
      clearTimeout(timer);
      timer = setTimeout(() => void worker.terminate(), deps.timeoutMs);
      // Copied, not handed over: the page itself is delivered when its document cannot be read.
      worker.postMessage(task);
      const answer = (await nextMessage(worker, signal)) as DocumentOutput | undefined;
      if (answer === undefined) return { failed: TOO_MUCH };
      idle.push(worker);
      return answer;
    } catch (error) {
      // `once` rejects with the thread's own error: out of memory.
      return { failed: TOO_MUCH, cause: String(error) };
    } finally {
      clearTimeout(timer);
      ended.abort();
    }
  }

  return {
    async read(page, request, claimant, signal) {
      const work = documentWork(page, request.parameters);
      if (work === undefined) return undefined;
      if (page.body.byteLength > MAX_DOCUMENT_BYTES) {
        return { failed: `the page is longer than ${MAX_DOCUMENT_BYTES} bytes` };
      }
      const slot = await slots.acquire(claimant, 1, signal);
      try {
        const answer = await perform({ html: page.body, url: page.url, work });
        if ('cause' in answer && answer.cause !== undefined) {
          deps.logger.warn({ cause: answer.cause, work }, 'a page could not be read');
        }
        return answer;
      } finally {
        slot.release();
      }
    },
    async close() {
      closed = true;
      await Promise.all([...all].map((worker) => worker.terminate()));
    },
  };
}

/** Resolves with undefined if the thread exits before. */
async function nextMessage(worker: Worker, signal: AbortSignal): Promise<unknown> {
  return Promise.race([
    once(worker, 'message', { signal }).then(([message]) => message as unknown),
    once(worker, 'exit', { signal }).then(() => undefined),
  ]);
}
