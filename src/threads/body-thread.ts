import { parentPort } from 'node:worker_threads';
import { type BodyAnswer, type BodyTask, createBodyQueue } from './body-queue.ts';
import { transferable } from './messages.ts';
import { yieldToService } from './thread-priority.ts';

// The program of the thread that reads and compresses the large bodies of one crawl thread. It yields to
// that thread, which crawls for others at the same time, as that one yields to the service.

const port = parentPort;
if (port === null) throw new Error('this file is a worker');
yieldToService();
const queue = createBodyQueue();
let isWorking = false;

function moved(answer: BodyAnswer): ArrayBuffer[] {
  if (answer.kind === 'failed') return [];
  if (answer.kind === 'read') return transferable(answer.result.body);
  return transferable(answer.result.body, answer.result.packed);
}

/**
 * Takes a step, and takes the next one when all messages that arrived during it are in the queue.
 */
function work(): void {
  const done = queue.step();
  if (done !== undefined) port?.postMessage(done, moved(done.answer));
  isWorking = queue.isBusy;
  if (isWorking) setImmediate(work);
}

port.on('message', (task: BodyTask) => {
  queue.add(task);
  if (isWorking) return;
  isWorking = true;
  setImmediate(work);
});
