import { parentPort } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import type { Packed, ToPack } from './compress.ts';
import { yieldToService } from './thread-priority.ts';

// The program of the thread that compresses the large bodies of one crawl thread. It yields to that
// thread, which crawls for others meanwhile, even more than that one yields to the service.

const port = parentPort;
if (port === null) throw new Error('this file is a worker');
yieldToService(2);
port.on('message', ({ id, body, level }: ToPack) => {
  // Incompressible bytes grow by five in each 16 KiB. Output in one chunk need not be copied.
  const chunkSize = body.byteLength + (body.byteLength >> 10) + 1_024;
  const output = gzipSync(body, { level, chunkSize });
  const memory = output.buffer;
  const packed =
    output.byteOffset === 0
      ? new Uint8Array(memory.transfer(output.byteLength))
      : new Uint8Array(output);
  const answer: Packed = { id, body, packed };
  port.postMessage(answer, [body.buffer, packed.buffer]);
});
