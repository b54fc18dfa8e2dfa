import { createServer } from 'node:tls';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createHttpClient } from '../../../src/net/create-http-client.ts';
import type { HttpClient } from '../../../src/net/http-client.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { listen } from '../../support/listen.ts';
import { TLS_FIXTURE } from '../../support/tls-fixture.ts';

// Servers that speak HTTP/2 alone, and reset streams; node:http2 ends them in order.

const TYPES = { data: 0, headers: 1, reset: 3, settings: 4, goaway: 7 } as const;
const END_STREAM = 1;
const END_HEADERS = 4;
const ACK = 1;
/** `:status: 200`, from the static table. */
const STATUS_200 = Buffer.from([0x88]);
/** `x: y`, a header that is not in a table. */
const TRAILER = Buffer.from([0, 1, 0x78, 1, 0x79]);
const PREFACE_BYTES = 24;
const HEAD_BYTES = 9;

let stack: AsyncDisposableStack;
let client: HttpClient;

beforeEach(() => {
  stack = new AsyncDisposableStack();
  client = createHttpClient({ allow: parseNetworkAllow('127.0.0.1'), ca: TLS_FIXTURE.cert });
  stack.defer(() => client.close());
});

afterEach(async () => {
  await stack.disposeAsync();
});

function frame(type: number, flags: number, stream: number, payload = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

const head = (stream: number): Buffer => frame(TYPES.headers, END_HEADERS, stream, STATUS_200);
const data = (stream: number, text: string, flags = 0): Buffer =>
  frame(TYPES.data, flags, stream, Buffer.from(text));

function reset(stream: number, code: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(code);
  return frame(TYPES.reset, 0, stream, payload);
}

function goaway(lastStream: number, code: number): Buffer {
  const payload = Buffer.alloc(8);
  payload.writeUInt32BE(lastStream);
  payload.writeUInt32BE(code, 4);
  return frame(TYPES.goaway, 0, 0, payload);
}

/** Answers the request on each stream by these frames. */
async function serve(answer: (stream: number) => readonly Buffer[]): Promise<string> {
  const server = createServer({ ...TLS_FIXTURE, ALPNProtocols: ['h2'] }, (socket) => {
    let received = Buffer.alloc(0);
    let skipped = PREFACE_BYTES;
    socket.on('error', () => undefined);
    socket.write(frame(TYPES.settings, 0, 0));
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      for (;;) {
        const at = skipped;
        if (received.length < at + HEAD_BYTES) return;
        const length = received.readUIntBE(at, 3);
        if (received.length < at + HEAD_BYTES + length) return;
        const [type, flags] = [received[at + 3], received[at + 4] ?? 0];
        const stream = received.readUInt32BE(at + 5);
        received = received.subarray(at + HEAD_BYTES + length);
        skipped = 0;
        if (type === TYPES.settings && (flags & ACK) === 0) {
          socket.write(frame(TYPES.settings, ACK, 0));
        }
        if (type === TYPES.headers) for (const each of answer(stream)) socket.write(each);
      }
    });
  });
  server.on('tlsClientError', () => undefined);
  return `https://127.0.0.1:${stack.use(await listen(server)).port}/`;
}

/** The page, or the failure of the request. */
async function ask(url: string): Promise<string> {
  const request = { url, method: 'GET', timeoutMs: 60_000, maxBodyBytes: 1_000, lenient: true };
  return client.request(request).then(
    ({ body }) => Buffer.from(body).toString(),
    ({ code }: { code: string }) => code,
  );
}

test.each([
  ['NO_ERROR', 0],
  ['CANCEL', 8],
])('half a page whose stream the server resets with %s is no page', async (_name, code) => {
  const url = await serve((stream) => [head(stream), data(stream, 'half'), reset(stream, code)]);
  // The second request, by HTTP/1.1, finds no server for it: the first failure counts.
  expect(await ask(url)).toBe('connection_failed');
});

test('a page is whole when its stream ends, whatever comes after that', async () => {
  const url = await serve((stream) => [
    head(stream),
    data(stream, 'whole', END_STREAM),
    reset(stream, 0),
  ]);
  expect(await ask(url)).toBe('whole');
});

test('a page that ends with trailers is whole', async () => {
  const url = await serve((stream) => [
    head(stream),
    data(stream, 'whole'),
    frame(TYPES.headers, END_HEADERS | END_STREAM, stream, TRAILER),
  ]);
  expect(await ask(url)).toBe('whole');
});

/** Answers the first request by a page and all others by a refusal; the numbers of requests are in the result. */
async function refuse(
  refusal: (stream: number) => Buffer,
): Promise<{ readonly url: string; readonly requests: () => number }> {
  let requests = 0;
  const url = await serve((stream) => {
    requests += 1;
    return requests === 1 ? [head(stream), data(stream, 'page', END_STREAM)] : [refusal(stream)];
  });
  return { url, requests: () => requests };
}

test('a server that refuses streams is not reached, and asked twice', async () => {
  const { url, requests } = await refuse((stream) => reset(stream, 7));
  expect(await ask(url)).toBe('page');
  expect(await ask(url)).toBe('connection_failed');
  expect(requests()).toBeLessThanOrEqual(1 + 2);
});

test('a stream that ends by ENHANCE_YOUR_CALM is broken: Node ends those with many headers so', async () => {
  const { url } = await refuse((stream) => reset(stream, 11));
  expect(await ask(url)).toBe('page');
  expect(await ask(url)).toBe('protocol_error');
});

test.each([
  ['after the request', (stream: number) => goaway(stream, 11)],
  ['before the request', () => goaway(0, 11)],
])(
  'a server that ends the connection %s with ENHANCE_YOUR_CALM is not reached',
  async (_, sent) => {
    const { url } = await refuse(sent);
    expect(await ask(url)).toBe('page');
    expect(await ask(url)).toBe('connection_failed');
  },
);
