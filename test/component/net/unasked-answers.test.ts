import { createServer, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createHttpClient } from '../../../src/net/create-http-client.ts';
import type { HttpClient, HttpRequest } from '../../../src/net/http-client.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { listen } from '../../support/listen.ts';

// Servers that answer more than they were asked.

let stack: AsyncDisposableStack;
let client: HttpClient;

beforeEach(() => {
  stack = new AsyncDisposableStack();
  client = createHttpClient({ allow: parseNetworkAllow('127.0.0.1') });
  stack.defer(() => client.close());
});

afterEach(async () => {
  await stack.disposeAsync();
});

const page = (text: string): string =>
  `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`;

/** Asks for a path on behalf of an account, and returns the page. */
async function ask(
  base: string,
  path: string,
  accountId: string,
  more: Partial<HttpRequest> = {},
): Promise<string> {
  const { body } = await client.request({
    url: `${base}${path}`,
    method: 'GET',
    timeoutMs: 60_000,
    maxBodyBytes: 1_000,
    lenient: true,
    claimant: { accountId, crawlerId: 'crawler' },
    ...more,
  });
  return Buffer.from(body).toString();
}

/** A server that takes the body of a POST for the next request, and answers each with its path. */
async function serveByLines(): Promise<string> {
  async function answer(socket: Socket, paths: readonly string[]): Promise<void> {
    for (const path of paths) {
      socket.write(page(path));
      // The client has sent its next request by then.
      await setTimeout(20);
    }
  }
  const server = createServer((socket) => {
    let answered = Promise.resolve();
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      const requests = data.toString().matchAll(/^(?:GET|POST) (\S+) HTTP/gm);
      const paths = Array.from(requests, ([, path = '']) => path);
      answered = answered.then(() => answer(socket, paths));
    });
  });
  return `http://127.0.0.1:${stack.use(await listen(server)).port}`;
}

const SMUGGLED = Buffer.from('GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n');

test('what the body of a request asks for is the answer to no other one of the account', async () => {
  const base = await serveByLines();
  for (let n = 0; n < 5; n += 1) {
    expect(await ask(base, '/sent', 'one', { method: 'POST', body: SMUGGLED })).toBe('/sent');
    expect(await ask(base, '/wanted', 'one')).toBe('/wanted');
  }
});

test('what one account was answered without asking for it is no answer to another account', async () => {
  const base = await serveByLines();
  for (let n = 0; n < 5; n += 1) {
    await ask(base, '/sent', 'one', { method: 'POST', body: SMUGGLED, lenient: false });
    expect(await ask(base, '/wanted', 'two')).toBe('/wanted');
  }
});

test('after an answer that nobody had asked for, each connection serves one request', async () => {
  const closed = Promise.withResolvers<void>();
  const requests: number[] = [];
  const server = createServer((socket) => {
    const connection = requests.push(0) - 1;
    socket.on('error', () => undefined);
    socket.on('close', closed.resolve);
    socket.on('data', () => {
      requests[connection] = (requests[connection] ?? 0) + 1;
      socket.write(page('wanted'), () => {
        if (connection === 0) void setTimeout(20).then(() => socket.write(page('unasked')));
      });
    });
  });
  const base = `http://127.0.0.1:${stack.use(await listen(server)).port}`;
  expect(await ask(base, '/', 'one')).toBe('wanted');
  await closed.promise;
  for (let n = 0; n < 3; n += 1) expect(await ask(base, '/', 'one')).toBe('wanted');
  expect(requests).toEqual([1, 1, 1, 1]);
});

test('an upgrade that nobody had asked for breaks the rules of HTTP', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () =>
      socket.end('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
    );
  });
  const base = `http://127.0.0.1:${stack.use(await listen(server)).port}`;
  await expect(ask(base, '/', 'one', { lenient: false })).rejects.toMatchObject({
    code: 'protocol_error',
  });
});

test.each([
  ['is sent again when it may be repeated', true, 3],
  ['fails when it may not be repeated', false, 2],
] as const)('a POST whose kept connection was closed %s', async (_what, mayRepeat, requests) => {
  let received = 0;
  const server = createServer((socket) => {
    let n = 0;
    socket.on('error', () => undefined);
    socket.on('data', () => {
      received += 1;
      n += 1;
      if (n === 1) socket.write(page('taken'));
      else socket.destroy();
    });
  });
  const base = `http://127.0.0.1:${stack.use(await listen(server)).port}`;
  const post = { method: 'POST', body: Buffer.from('{}'), lenient: false, mayRepeat };
  expect(await ask(base, '/', 'one', post)).toBe('taken');
  const second = await ask(base, '/', 'one', post).catch((error: { code: string }) => error.code);
  expect(second).toBe(mayRepeat ? 'taken' : 'connection_failed');
  expect(received).toBe(requests);
});

test('a receiver that answers 408 gets a result once in an attempt', async () => {
  let received = 0;
  const late = 'HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n';
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', () => socket.write(received++ === 0 ? page('taken') : late));
  });
  const base = `http://127.0.0.1:${stack.use(await listen(server)).port}`;
  const post = { method: 'POST', body: Buffer.from('{}'), lenient: false, mayRepeat: true };
  for (let n = 0; n < 2; n += 1) await ask(base, '/', 'one', post);
  expect(received).toBe(2);
});
