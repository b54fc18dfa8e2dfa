import { createSecureServer, type Http2Session } from 'node:http2';
import { createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createHttpClient } from '../../../src/net/create-http-client.ts';
import type { HttpClient } from '../../../src/net/http-client.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { listen } from '../../support/listen.ts';
import { TLS_FIXTURE } from '../../support/tls-fixture.ts';

// Servers that close connections which they said would stay open.

const ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: keep-alive\r\n\r\npage';
const PAGES = 120;
const LOOPS = 8;

let stack: AsyncDisposableStack;

beforeEach(() => {
  stack = new AsyncDisposableStack();
});

afterEach(async () => {
  await stack.disposeAsync();
});

/** Answers the requests of a connection by `answer`, which gets their number from 1 on. */
async function serve(answer: (socket: Socket, n: number) => void): Promise<string> {
  const server = createServer((socket) => {
    let n = 0;
    socket.on('error', () => undefined);
    socket.on('data', () => answer(socket, ++n));
  });
  return `http://127.0.0.1:${stack.use(await listen(server)).port}`;
}

function open(): HttpClient {
  const client = createHttpClient({ allow: parseNetworkAllow('127.0.0.1'), ca: TLS_FIXTURE.cert });
  stack.defer(() => client.close());
  return client;
}

/** What many requests, several at once, were answered, with how often. */
async function answersOf(url: string): Promise<Record<string, number>> {
  const client = open();
  const counts: Record<string, number> = {};
  let left = PAGES;
  const loop = async (): Promise<void> => {
    while (left-- > 0) {
      const key = await client
        .request({ url, method: 'GET', timeoutMs: 60_000, maxBodyBytes: 1_000 })
        .then(
          ({ status, body }) => `${status} ${Buffer.from(body).toString()}`,
          (error: unknown) => String(error),
        );
      counts[key] = (counts[key] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: LOOPS }, loop));
  return counts;
}

const ALL = { '200 page': PAGES };

test('pages arrive from a server that ends each connection with its second request', async () => {
  const url = await serve((socket, n) => (n === 1 ? socket.write(ANSWER) : socket.end()));
  expect(await answersOf(url)).toEqual(ALL);
});

test('pages arrive from a server that resets each connection with its second request', async () => {
  const url = await serve((socket, n) => {
    if (n === 1) socket.write(ANSWER);
    else socket.resetAndDestroy();
  });
  expect(await answersOf(url)).toEqual(ALL);
});

test('pages arrive from a server that resets each connection soon after its answer', async () => {
  const url = await serve((socket) => {
    socket.write(ANSWER, () => setTimeout(() => socket.resetAndDestroy(), 3));
  });
  expect(await answersOf(url)).toEqual(ALL);
});

test('pages arrive from a server that says 408 to the second request of a connection', async () => {
  const late = 'HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n';
  const url = await serve((socket, n) => (n === 1 ? socket.write(ANSWER) : socket.end(late)));
  expect(await answersOf(url)).toEqual(ALL);
});

test('pages arrive by HTTP/2 from a server that ends each connection after three', async () => {
  const server = createSecureServer(TLS_FIXTURE);
  const served = new WeakMap<Http2Session, number>();
  server.on('stream', (stream) => {
    const { session } = stream;
    if (session === undefined) return;
    const n = (served.get(session) ?? 0) + 1;
    served.set(session, n);
    stream.respond({ ':status': 200 });
    stream.end('page');
    if (n === 3) session.close();
  });
  const { port } = stack.use(await listen(server));
  expect(await answersOf(`https://127.0.0.1:${port}`)).toEqual(ALL);
});

test('a server that answers no request of a URL is asked once', async () => {
  let requests = 0;
  const url = await serve((socket) => {
    requests += 1;
    socket.end();
  });
  const request = { url, method: 'GET', timeoutMs: 60_000, maxBodyBytes: 1_000 } as const;
  await expect(open().request(request)).rejects.toMatchObject({ code: 'connection_failed' });
  expect(requests).toBe(1);
});

test('a server that is gone is connected to once', async () => {
  let lookups = 0;
  const server = createServer((socket) => {
    socket.on('data', () => socket.end(ANSWER.replace('keep-alive', 'close')));
  });
  const opened = await listen(server);
  const client = createHttpClient({
    allow: parseNetworkAllow('127.0.0.0/8'),
    lookup: async () => {
      lookups += 1;
      return ['127.0.0.1', '127.0.0.3'].map((address) => ({ address, family: 4 }));
    },
  });
  stack.defer(() => client.close());
  const url = `http://site.test:${opened.port}/`;
  const request = { url, method: 'GET', timeoutMs: 60_000, maxBodyBytes: 1_000 } as const;
  await client.request(request);
  await opened[Symbol.asyncDispose]();
  await expect(client.request(request)).rejects.toMatchObject({ code: 'connection_failed' });
  expect(lookups).toBe(2);
});

test('a POST is not sent again on another connection', async () => {
  let posts = 0;
  const url = await serve((socket, n) => {
    posts += 1;
    if (n === 1) socket.write(ANSWER);
    else socket.end();
  });
  const client = open();
  const body = Buffer.from('a=1');
  const request = { url, method: 'POST', body, timeoutMs: 60_000, maxBodyBytes: 1_000 } as const;
  await client.request(request);
  await expect(client.request(request)).rejects.toMatchObject({ code: 'connection_failed' });
  expect(posts).toBe(2);
});
