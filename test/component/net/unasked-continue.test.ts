import { createServer, type Server, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createHttpClient } from '../../../src/net/create-http-client.ts';
import type { HttpClient } from '../../../src/net/http-client.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { listen } from '../../support/listen.ts';
import { TLS_FIXTURE } from '../../support/tls-fixture.ts';

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

let stack: AsyncDisposableStack;
let requests: number;
let connections: number;

beforeEach(() => {
  stack = new AsyncDisposableStack();
  requests = 0;
  connections = 0;
});
afterEach(() => stack.disposeAsync());

/** Starts a server that gives each request the same answer, in these segments, and returns its port. */
async function serve(
  segments: readonly string[],
  create: (onSocket: (socket: Socket) => void) => Server = (onSocket) => createServer(onSocket),
): Promise<number> {
  const server = create((socket) => {
    connections += 1;
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy());
    socket.on('data', () => {
      requests += 1;
      void writeAll(socket, segments);
    });
  });
  return stack.use(await listen(server)).port;
}

async function writeAll(socket: Socket, segments: readonly string[]): Promise<void> {
  for (const segment of segments) {
    socket.write(Buffer.from(segment, 'latin1'));
    await turn();
  }
}

function openClient(): HttpClient {
  const client = createHttpClient({
    allow: parseNetworkAllow('127.0.0.1'),
    ca: TLS_FIXTURE.cert,
  });
  stack.defer(() => client.close());
  return client;
}

async function post(client: HttpClient, url: string): Promise<[number, string]> {
  const { status, body } = await client.request({
    url,
    method: 'POST',
    body: Buffer.from('a=1'),
    timeoutMs: 60_000,
    maxBodyBytes: 1_000,
  });
  return [status, Buffer.from(body).toString('latin1')];
}

// RFC 9110, 15.2: a client takes 1xx responses that it does not expect.
test.each([
  ['in a segment with the answer', [CONTINUE + OK]],
  ['ahead of the answer', [CONTINUE, OK]],
  ['byte by byte', (CONTINUE + OK).split('')],
  ['with a header', [`HTTP/1.1 100 Continue\r\ndate: now\r\n\r\n${OK}`]],
  ['by HTTP/1.0, without a reason', [`HTTP/1.0 100\r\n\r\n${OK}`]],
  ['twice, and then other hints', [CONTINUE, CONTINUE, `HTTP/1.1 103 Hints\r\n\r\n${OK}`]],
])('100 Continue that nobody asked for, %s', async (_, segments) => {
  const port = await serve(segments);
  const client = openClient();
  for (let n = 0; n < 3; n += 1) {
    expect(await post(client, `http://127.0.0.1:${port}/`)).toEqual([200, 'ok']);
  }
  expect([requests, connections]).toEqual([3, 1]);
});

test('100 Continue over TLS', async () => {
  const port = await serve([CONTINUE, OK], (onSocket) => createTlsServer(TLS_FIXTURE, onSocket));
  expect(await post(openClient(), `https://127.0.0.1:${port}/`)).toEqual([200, 'ok']);
});

test('a body that looks like one stays whole', async () => {
  const head = `HTTP/1.1 200 OK\r\ncontent-length: ${CONTINUE.length * 2}\r\n\r\n`;
  const port = await serve([head, CONTINUE, CONTINUE]);
  const answer = [200, CONTINUE.repeat(2)];
  expect(await post(openClient(), `http://127.0.0.1:${port}/`)).toEqual(answer);
});

test('a server that sends nothing else is not listened to for long', async () => {
  const port = await serve(Array.from({ length: 1_000 }, () => CONTINUE));
  const answer = post(openClient(), `http://127.0.0.1:${port}/`);
  await expect(answer).rejects.toMatchObject({ code: 'protocol_error' });
});

test('a connection that ends within one has failed', async () => {
  const port = await serve(['HTTP/1.1 100 Con'], (onSocket) =>
    createServer((socket) => {
      onSocket(socket);
      socket.once('data', () => setTimeout(() => socket.end(), 50));
    }),
  );
  const answer = post(openClient(), `http://127.0.0.1:${port}/`);
  await expect(answer).rejects.toMatchObject({ name: 'HttpError' });
});
