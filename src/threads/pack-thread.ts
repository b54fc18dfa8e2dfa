import { parentPort } from 'node:worker_threads';
import type { ToPack } from './compress.ts';
import { createPackQueue } from './pack-queue.ts';
import { yieldToService } from './thread-priority.ts';

// The program of the thread that compresses the large bodies of one crawl thread. It yields to that
// thread, which crawls for others meanwhile, as that one yields to the service.

const port = parentPort;
if (port === null) throw new Error('this file is a worker');
yieldToService();
const queue = createPackQueue();
let isWorking = false;

/** Compresses a slice, and goes on when what has come meanwhile is in the queue. */
function work(): void {
  const packed = queue.step();
  if (packed !== undefined) port?.postMessage(packed, [packed.body.buffer, packed.packed.buffer]);
  isWorking = queue.isBusy;
  if (isWorking) setImmediate(work);
}

port.on('message', (body: ToPack) => {
  queue.add(body);
  if (isWorking) return;
  isWorking = true;
  setImmediate(work);
});
