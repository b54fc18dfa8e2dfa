import { createServer, type Server, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { createServer as createTlsServer } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createHttpClient, type HttpClientDeps } from '../../../src/net/create-http-client.ts';
import type { HttpRequest } from '../../../src/net/http-client.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { listen } from '../../support/listen.ts';
import { startProxy } from '../../support/proxy.ts';
import { TLS_FIXTURE } from '../../support/tls-fixture.ts';

const FOLDED =
  'HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\ncontent-length: 5\nx-folded: one\n\ttwo\n\nwhole';

let stack: AsyncDisposableStack;
let requests: number;

beforeEach(() => {
  stack = new AsyncDisposableStack();
  requests = 0;
});
afterEach(() => stack.disposeAsync());

type Answer = (socket: Socket, request: number) => unknown;

/** Starts a server that counts the requests, and returns its port. */
async function serve(
  answer: Answer,
  create: (onSocket: (socket: Socket) => void) => Server = (onSocket) => createServer(onSocket),
): Promise<number> {
  const server = create((socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('data', () => {
      requests += 1;
      answer(socket, requests);
    });
  });
  return stack.use(await listen(server)).port;
}

function send(url: string, more: Partial<HttpRequest> = {}, deps: Partial<HttpClientDeps> = {}) {
  const client = createHttpClient({ allow: parseNetworkAllow('127.0.0.1'), ...deps });
  stack.defer(() => client.close());
  return client.request({
    url,
    method: 'GET',
    timeoutMs: 60_000,
    maxBodyBytes: 1_000_000,
    lenient: true,
    ...more,
  });
}

async function expectRepaired(response: ReturnType<typeof send>): Promise<void> {
  const { status, headers, body } = await response;
  expect(status).toBe(200);
  expect(headers).toContainEqual(['x-folded', 'one two']);
  expect(Buffer.from(body).toString()).toBe('whole');
  expect(requests).toBe(2);
}

test('a response is repaired that comes byte by byte', async () => {
  const port = await serve(async (socket) => {
    socket.setNoDelay(true);
    for (const byte of FOLDED) {
      socket.write(byte);
      await turn();
    }
    socket.end();
  });
  await expectRepaired(send(`http://127.0.0.1:${port}/`));
});

test('a response is repaired over TLS', async () => {
  const port = await serve(
    (socket) => socket.end(FOLDED),
    (onSocket) =>
      createTlsServer({ ...TLS_FIXTURE, ALPNProtocols: ['h2', 'http/1.1'] }, onSocket).on(
        'tlsClientError',
        () => undefined,
      ),
  );
  await expectRepaired(
    send(`https://127.0.0.1:${port}/`, {}, { ca: TLS_FIXTURE.cert, http2: false }),
  );
});

test('a response is repaired that comes through a proxy', async () => {
  const port = await serve((socket) => socket.end(FOLDED));
  const proxy = stack.use(await startProxy({ target: `127.0.0.1:${port}` }));
  await expectRepaired(send(`http://127.0.0.1:${port}/`, { proxy: proxy.url }));
  expect(proxy.asked).toHaveLength(2);
});

test('a broken response is not taken, and not requested again, unless that was asked for', async () => {
  const port = await serve((socket) => socket.end(FOLDED));
  const url = `http://127.0.0.1:${port}/`;
  await expect(send(url, { lenient: false })).rejects.toMatchObject({ code: 'protocol_error' });
  expect(requests).toBe(1);
  // The method may change something at the target.
  const post = send(url, { method: 'POST', body: Buffer.from('a') });
  await expect(post).rejects.toMatchObject({ code: 'protocol_error' });
  expect(requests).toBe(2);
});

test('what cannot be repaired fails after two requests', async () => {
  const port = await serve((socket) => socket.end('HTTP/1.1 100 Continue\r\n\r\n'.repeat(5_000)));
  const response = send(`http://127.0.0.1:${port}/`);
  await expect(response).rejects.toMatchObject({ code: 'protocol_error' });
  expect(requests).toBe(2);
});

test('gzip with every field of its header is decoded before other bytes', async () => {
  const gzip = gzipSync('whole');
  const fields = Buffer.from('\x04\x00abcdname\0comment\0cc', 'latin1');
  const header = Buffer.concat([gzip.subarray(0, 10), fields]);
  header[3] = 0x02 | 0x04 | 0x08 | 0x10;
  const body = Buffer.concat([header, gzip.subarray(10), Buffer.from('more')]);
  const head = `HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${body.length}\r\n\r\n`;
  const port = await serve(async (socket) => {
    socket.setNoDelay(true);
    socket.write(head);
    for (const byte of body) {
      socket.write(Buffer.from([byte]));
      await turn();
    }
    socket.end();
  });
  const { body: decoded } = await send(`http://127.0.0.1:${port}/`);
  expect(Buffer.from(decoded).toString()).toBe('whole');
});
