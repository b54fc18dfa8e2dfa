import { Worker } from 'node:worker_threads';
import type { Content } from '../domain/result-fields.ts';
import type { BodyRead, ReceivedBody } from '../engine/http/read-body.ts';
import type { Claimant } from '../fairness/fair-pool.ts';
import type { BodyAnswer, BodyTask, BodyWork, Packed } from './body-queue.ts';
import type { PackedCoding } from './compress.ts';
import { threadEnvironment } from './thread-environment.ts';
import { withOwnMemory } from './thread-messages.ts';

/** Without large bodies for this long, the thread ends. */
const IDLE_MS = 2_000;

/** The thread, while there are large bodies. */
let thread: BodyThread | undefined;

/**
 * What takes long with a large body, done by a thread of its own with a lower priority. The thread gets
 * the memory of each body; what it returns replaces the body.
 */
export const largeBodies = {
  async read(received: ReceivedBody, claimant: Claimant): Promise<BodyRead> {
    const body = withOwnMemory(received.body);
    const answer = await perform({ kind: 'read', received: { ...received, body } }, body, claimant);
    if (answer.kind !== 'read') throw new Error('the wrong answer for a body that is read');
    return answer.result;
  },
  async pack(content: Content, coding: PackedCoding, claimant: Claimant): Promise<Packed> {
    const body = withOwnMemory(content.body);
    const work = { kind: 'pack', content: { ...content, body }, coding } as const;
    const answer = await perform(work, body, claimant);
    if (answer.kind !== 'packed') throw new Error('the wrong answer for a body that is packed');
    return answer.result;
  },
};

function perform(work: BodyWork, body: Uint8Array<ArrayBuffer>, claimant: Claimant) {
  thread ??= startThread();
  return thread(work, body, claimant);
}

/** Has the thread work on a body. */
type BodyThread = (
  work: BodyWork,
  body: Uint8Array<ArrayBuffer>,
  claimant: Claimant,
) => Promise<Exclude<BodyAnswer, { readonly kind: 'failed' }>>;

/** Starts the thread. It does not keep the process alive, and ends when it has had nothing to do. */
function startThread(): BodyThread {
  const worker = new Worker(new URL('./body-thread.ts', import.meta.url), {
    env: threadEnvironment(),
    resourceLimits: { maxYoungGenerationSizeMb: 1 },
  });
  worker.unref();
  const waiting = new Map<number, (answer: BodyAnswer) => void>();
  let lastId = 0;

  function end(message: string): void {
    if (thread === performIn) thread = undefined;
    clearTimeout(idle);
    for (const resolve of waiting.values()) resolve({ kind: 'failed', message });
    waiting.clear();
  }

  const idle = setTimeout(() => {
    if (waiting.size > 0) return;
    thread = undefined;
    void worker.terminate();
  }, IDLE_MS);
  idle.unref();
  worker.on('message', ({ id, answer }: { id: number; answer: BodyAnswer }) => {
    waiting.get(id)?.(answer);
    waiting.delete(id);
    idle.refresh();
  });
  worker.once('error', ({ message }) => end(message));
  worker.once('exit', () => end('the thread of large bodies has ended'));

  const performIn: BodyThread = async (work, body, { accountId, crawlerId }) => {
    lastId += 1;
    const { promise, resolve } = Promise.withResolvers<BodyAnswer>();
    waiting.set(lastId, resolve);
    // A claimant may be more than its names, such as a whole crawl.
    const task: BodyTask = { id: lastId, claimant: { accountId, crawlerId }, work };
    worker.postMessage(task, [body.buffer]);
    const answer = await promise;
    if (answer.kind === 'failed') throw new Error(answer.message);
    return answer;
  };
  return performIn;
}
