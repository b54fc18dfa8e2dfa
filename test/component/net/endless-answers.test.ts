import { connect, createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createAddressGuard } from '../../../src/net/address-guard.ts';
import { createHttpClient } from '../../../src/net/create-http-client.ts';
import { startFilteringProxy } from '../../../src/net/filtering-proxy.ts';
import type { HttpClient } from '../../../src/net/http-client.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { createResolver } from '../../../src/net/resolver.ts';
import { eventually } from '../../support/eventually.ts';
import { listen } from '../../support/listen.ts';
import { TLS_FIXTURE } from '../../support/tls-fixture.ts';

const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';

let stack: AsyncDisposableStack;
let client: HttpClient;

beforeEach(() => {
  stack = new AsyncDisposableStack();
  client = createHttpClient({ allow: parseNetworkAllow('127.0.0.1'), ca: TLS_FIXTURE.cert });
  stack.defer(() => client.close());
});
afterEach(() => stack.disposeAsync());

/** Starts a server that answers each request by `answer`, and returns its URL. */
async function serve(answer: (socket: Socket) => void, scheme = 'http'): Promise<string> {
  const onSocket = (socket: Socket): void => {
    socket.on('error', () => socket.destroy());
    socket.on('data', () => answer(socket));
  };
  const server =
    scheme === 'http' ? createServer(onSocket) : createTlsServer(TLS_FIXTURE, onSocket);
  return `${scheme}://127.0.0.1:${stack.use(await listen(server)).port}/`;
}

function get(url: string, maxBodyBytes: number) {
  return client.request({ url, method: 'GET', timeoutMs: 60_000, maxBodyBytes });
}

/** Answers with `begin`, then with `repeated` without end. Returns how many bytes were sent. */
function flood(begin: string, repeated: string) {
  const piece = repeated.repeat(50_000 / repeated.length);
  const sent = { bytes: 0 };
  const answer = (socket: Socket): void => {
    socket.write(begin);
    const send = (): void => {
      do sent.bytes += piece.length;
      while (!socket.destroyed && socket.write(piece));
    };
    socket.on('drain', send);
    send();
  };
  return { sent, answer };
}

test.each([
  ['interim answers', '', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'],
  ['empty lines before the answer', '', '\r\n'],
  ['an extension of a chunk', `${CHUNKED}1;`, 'a'],
])('%s without end are cut off', async (_, begin, repeated) => {
  const { sent, answer } = flood(begin, repeated);
  const url = await serve(answer);
  await expect(get(url, 10_000)).rejects.toMatchObject({ code: 'body_too_large' });
  // The buffers of the system hold some megabytes.
  expect(sent.bytes).toBeLessThan(20_000_000);
});

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

const SETTINGS = frame(4, 0, 0, Buffer.alloc(0));
/** `:status: 200`, the end of the head. */
const STATUS_200 = frame(1, 4, 1, Buffer.from([0x88]));

test.each([
  ['updates of the window', frame(8, 0, 0, Buffer.from([0, 0, 0, 1]))],
  ['empty data with padding', frame(0, 8, 1, Buffer.alloc(256, 255).fill(0, 1))],
  ['other services', frame(10, 0, 1, Buffer.from('\0\0h2=":443"'))],
])('%s without end are cut off over HTTP/2', async (_, repeated) => {
  const piece = Buffer.concat(Array.from({ length: 500 }, () => repeated));
  let ended = 0;
  const server = createTlsServer({ ...TLS_FIXTURE, ALPNProtocols: ['h2'] }, (socket) => {
    socket.on('error', () => socket.destroy());
    socket.on('close', () => (ended += 1));
    let received = 0;
    const onData = ({ length }: Buffer): void => {
      received += length;
      // The preface, and the request.
      if (received < 60) return;
      socket.off('data', onData).resume();
      socket.write(Buffer.concat([SETTINGS, STATUS_200]));
      const send = (): void => {
        while (!socket.destroyed && socket.write(piece));
      };
      socket.on('drain', send);
      send();
    };
    socket.on('data', onData);
  });
  const url = `https://localhost:${stack.use(await listen(server)).port}/`;
  const asked = { url, method: 'GET', timeoutMs: 60_000, maxBodyBytes: 10_000 } as const;
  await expect(client.request(asked)).rejects.toMatchObject({ code: 'body_too_large' });
  await eventually(() => expect(ended).toBe(1));
});

test('empty lines without end are cut off in the proxy of a page, too', async () => {
  const { sent, answer } = flood('', '\r\n');
  const url = await serve(answer);
  await using proxy = await startFilteringProxy({
    guard: createAddressGuard(parseNetworkAllow('127.0.0.1')),
    lookup: createResolver(),
    maxBytes: 1_000_000,
    maxSentBytes: 1_000_000,
    maxAnswerBytes: 10_000,
  });
  proxy.begin();
  const { username, password } = proxy.credentials;
  const credentials = Buffer.from(`${username}:${password}`).toString('base64');
  const page = connect(Number(new URL(proxy.url).port), '127.0.0.1');
  page.setTimeout(10_000, () => page.destroy(new Error('it was not cut off')));
  page.write(`GET ${url} HTTP/1.1\r\nhost: a\r\nproxy-authorization: Basic ${credentials}\r\n\r\n`);
  expect(await text(page)).toBe('');
  expect(proxy.failureAt(new URL(url).host)).toBe('body_too_large');
  expect(sent.bytes).toBeLessThan(20_000_000);
});

test.each(['http', 'https'])(
  'what a kept connection has received before does not count: %s',
  async (scheme) => {
    const body = 'x'.repeat(400_000);
    const connections = new Set<Socket>();
    const url = await serve((socket) => {
      connections.add(socket);
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    }, scheme);
    for (let at = 0; at < 15; at += 1) {
      expect((await get(url, body.length)).body).toHaveLength(body.length);
    }
    expect(connections.size).toBe(1);
  },
);
