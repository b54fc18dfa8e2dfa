import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { createAddressGuard } from '../../../src/net/address-guard.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { connectToTarget } from '../../../src/net/target-connector.ts';
import { listen } from '../../support/listen.ts';

/** As long as one address had before the next was tried. */
const PATIENCE_MS = 20_000;

/** An address whose connections are never made: its queue of them is full, and nobody takes any. */
async function startBlackHole(stack: AsyncDisposableStack, port: number): Promise<string> {
  const address = '127.0.0.2';
  const worker = new Worker(
    `const { parentPort, workerData } = require('node:worker_threads');
     require('node:net').createServer().listen({ ...workerData, backlog: 1 }, () => {
       parentPort.postMessage('up');
       Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
     });`,
    { eval: true, workerData: { host: address, port } },
  );
  stack.defer(async () => void (await worker.terminate()));
  await once(worker, 'message');
  for (;;) {
    const socket: Socket = connect(port, address);
    socket.on('error', () => undefined);
    stack.defer(() => void socket.destroy());
    const isMade = await Promise.race([
      once(socket, 'connect').then(() => true),
      new Promise<boolean>((resolve) => setTimeout(resolve, 1_000, false)),
    ]);

    if (!isMade) return address;
  }
}

test('an address that does not answer does not hold up the others of a name', async () => {
  await using stack = new AsyncDisposableStack();
  const server = createServer((socket) => socket.on('error', () => undefined));
  const { port } = stack.use(await listen(server));
  const dead = await startBlackHole(stack, port);
  const guard = createAddressGuard(parseNetworkAllow('127.0.0.0/8'), {});
  const answers = [dead, '127.0.0.1'].map((address) => ({ address, family: 4 }) as const);
  const startedAt = performance.now();
  const socket = await connectToTarget(
    { guard, lookup: async () => answers },
    { hostname: 'site.test', port },
  );
  stack.defer(() => void socket.destroy());
  expect(socket.remoteAddress).toBe('127.0.0.1');
  expect(performance.now() - startedAt).toBeLessThan(PATIENCE_MS);
});
