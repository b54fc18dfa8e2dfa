import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import { connect, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createHttpClient } from '../../../src/net/create-http-client.ts';
import type { HttpClient, HttpRequest } from '../../../src/net/http-client.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { eventually } from '../../support/eventually.ts';
import { listen } from '../../support/listen.ts';
import { TLS_FIXTURE } from '../../support/tls-fixture.ts';

// HTTP/2 connections that carry nothing any more and are not closed, and live ones with slow pages.

let stack: AsyncDisposableStack;
let client: HttpClient;
let url: string;
/** Connections of the relay before the site, with whether they are open. */
let connections: { isOpen: boolean; isDead: boolean }[];
/** Responses that the site has not sent, by path. */
let held: Map<string, Http2ServerResponse>;

beforeEach(async () => {
  stack = new AsyncDisposableStack();
  held = new Map();
  connections = [];
  const answer = (request: Http2ServerRequest, response: Http2ServerResponse): void => {
    if (request.url === '/') response.end('page');
    else held.set(request.url, response);
  };
  const site = createSecureServer(TLS_FIXTURE, answer);
  site.on('sessionError', () => undefined);
  const { port } = stack.use(await listen(site));
  const relay = createServer((socket) => {
    const connection = { isOpen: true, isDead: false };
    connections.push(connection);
    const other = connect(port, '127.0.0.1');
    const pass = (from: Socket, to: Socket): void => {
      from.on('data', (chunk) => connection.isDead || to.write(chunk));
      from.on('error', () => undefined);
      from.on('close', () => to.destroy());
    };
    pass(socket, other);
    pass(other, socket);
    socket.once('close', () => {
      connection.isOpen = false;
    });
  });
  url = `https://127.0.0.1:${stack.use(await listen(relay)).port}`;
  client = createHttpClient({ allow: parseNetworkAllow('127.0.0.1'), ca: TLS_FIXTURE.cert });
  stack.defer(() => client.close());
});

afterEach(async () => {
  await stack.disposeAsync();
});

/** The page at a path, or the failure of the request. */
function ask(path = '/', more: Partial<HttpRequest> = {}): Promise<string> {
  return client
    .request({
      url: `${url}${path}`,
      method: 'GET',
      timeoutMs: 60_000,
      maxBodyBytes: 1_000,
      ...more,
    })
    .then(
      ({ body }) => Buffer.from(body).toString(),
      ({ code }: { code: string }) => code,
    );
}

const untilHeld = (path: string): Promise<void> =>
  eventually(() => expect(held.has(path)).toBe(true));

function kill(): void {
  for (const connection of connections) connection.isDead = true;
}

test.each(['GET', 'POST'])('only one %s request waits on a dead connection', async (method) => {
  const body = method === 'POST' ? { body: Buffer.from('text') } : {};
  expect(await ask('/', { method, ...body })).toBe('page');
  kill();
  expect(await ask('/', { method, ...body, timeoutMs: 300 })).toBe('timeout');
  expect(await ask('/', { method, ...body })).toBe('page');
  await eventually(() => expect(connections.map(({ isOpen }) => isOpen)).toEqual([false, true]));
});

test('a slow page between fast ones costs no connection', async () => {
  expect(await ask()).toBe('page');
  const abort = new AbortController();
  const slow = ask('/slow', { signal: abort.signal });
  await untilHeld('/slow');
  expect(await ask()).toBe('page');
  abort.abort();
  expect(await slow).toBe('aborted');
  expect(await ask()).toBe('page');
  expect(connections).toHaveLength(1);
});

test('requests in progress end on the connection that gets no further ones', async () => {
  expect(await ask()).toBe('page');
  const slower = ask('/slower');
  await untilHeld('/slower');
  expect(await ask('/slow', { timeoutMs: 300 })).toBe('timeout');
  expect(await ask()).toBe('page');
  expect(connections).toHaveLength(2);
  held.get('/slower')?.end('slower page');
  expect(await slower).toBe('slower page');
  await eventually(() => expect(connections.map(({ isOpen }) => isOpen)).toEqual([false, true]));
});

test('many slow pages at once cost one connection together', async () => {
  expect(await ask()).toBe('page');
  for (let round = 1; round <= 3; round += 1) {
    const pages = Array.from({ length: 20 }, (_, n) => ask(`/slow-${n}`, { timeoutMs: 300 }));
    expect(new Set(await Promise.all(pages))).toEqual(new Set(['timeout']));
    expect(connections.length).toBeLessThanOrEqual(1 + round);
  }
  expect(await ask()).toBe('page');
  await eventually(() => expect(connections.filter(({ isOpen }) => isOpen)).toHaveLength(1));
});
