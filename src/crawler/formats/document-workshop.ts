import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Logger } from '../../domain/logger.ts';

/** One page to be read. */
export interface DocumentTask {
  readonly html: string;
  readonly url: string;
  /** `md`, `readable_md`, `autoparse`, or the name of a scraper. */
  readonly work: string;
}

/** What came of it. `failed` is for the client, `cause` for the log: where the thread threw. */
export type DocumentAnswer =
  | { readonly text: string }
  | { readonly failed: string; readonly cause?: string | undefined };

/** What a client is told of a page that broke its reader. */
export const UNREADABLE = 'the page could not be read';

const TOO_MUCH = 'the page took too long or too much memory';

/** Reads documents, one after the other, in a thread of their own. */
export interface DocumentWorkshop {
  /** Never rejects: a page that cannot be read in time, or at all, has `failed`. */
  read(task: DocumentTask): Promise<DocumentAnswer>;
  close(): Promise<void>;
}

/** Makes the workshop; its thread starts with the first task and is replaced when a task takes longer than `timeoutMs`. */
export function createDocumentWorkshop(deps: {
  readonly timeoutMs: number;
  readonly logger?: Pick<Logger, 'warn'>;
}): DocumentWorkshop {
  let worker: Worker | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let closed = false;

  function start(): Worker {
    const started = new Worker(new URL('./document-worker.ts', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 },
    });
    // It must not keep a process alive that has nothing else to do.
    started.unref();
    started.once('exit', () => {
      if (worker === started) worker = undefined;
    });
    return started;
  }

  async function perform(task: DocumentTask): Promise<DocumentAnswer> {
    if (closed) return { failed: 'the service is closing' };
    worker ??= start();
    const current = worker;
    const ended = new AbortController();
    const { signal } = ended;
    const timer = setTimeout(() => void current.terminate(), deps.timeoutMs);
    try {
      current.postMessage(task);
      return await Promise.race([
        once(current, 'message', { signal }).then(([answer]) => answer as DocumentAnswer),
        once(current, 'exit', { signal }).then(() => ({
          failed: TOO_MUCH,
        })),
      ]);
    } catch (error) {
      // `once` rejects with the thread's own error: out of memory.
      return { failed: TOO_MUCH, cause: String(error) };
    } finally {
      clearTimeout(timer);
      ended.abort();
    }
  }

  return {
    read(task) {
      const answer = last.then(() => perform(task));
      last = answer;
      void answer.then((end) => {
        if (!('cause' in end) || end.cause === undefined) return;
        deps.logger?.warn({ cause: end.cause, work: task.work }, 'a page could not be read');
      });
      return answer;
    },
    async close() {
      closed = true;
      await last;
      await worker?.terminate();
    },
  };
}
