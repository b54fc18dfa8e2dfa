import { createServer } from 'node:http';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { receivedWhole } from '../../../src/http/received.ts';
import { listen } from '../../support/listen.ts';

/** Reads a reply of one piece, ends its side in order or by a reset, and says so. */
const CLIENT = `
const { workerData: { port, ended, resets } } = require('node:worker_threads');
const socket = require('node:net').connect(port, '127.0.0.1');
const say = () => setTimeout(() => { Atomics.store(ended, 0, 1); Atomics.notify(ended, 0); }, 50);
socket.write('GET / HTTP/1.1\\r\\nhost: service\\r\\nconnection: close\\r\\n\\r\\n');
socket.on('error', () => undefined);
socket.on('data', (chunk) => {
  if (!String(chunk).endsWith('page')) return;
  if (resets) { socket.resetAndDestroy(); say(); } else socket.end(say);
});
`;

test.each([
  ['in order', true],
  ['by a reset', false],
])('a client that ends its side %s before the service does', async (how, isReceived) => {
  const ended = new Int32Array(new SharedArrayBuffer(4));
  const verdict = Promise.withResolvers<boolean>();
  const server = createServer((_request, response) => {
    receivedWhole(response).then(verdict.resolve, verdict.reject);
    response.writeHead(200, { 'content-length': 4 });
    response.write('page');
    setImmediate(() => {
      // A busy service closes the connection before it sees that end.
      Atomics.wait(ended, 0, 0, 10_000);
      response.end();
    });
  });
  await using opened = await listen(server);
  const workerData = { port: opened.port, ended, resets: how === 'by a reset' };
  const client = new Worker(CLIENT, { eval: true, workerData });
  try {
    expect(await verdict.promise).toBe(isReceived);
  } finally {
    await client.terminate();
  }
});
