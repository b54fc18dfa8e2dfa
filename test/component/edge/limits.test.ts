import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect as connectHttp2, constants, type Settings } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { createConnectionLimit } from '../../../src/edge/connection-limit.ts';
import { DEFAULT_EDGE_LIMITS } from '../../../src/edge/edge-limits.ts';
import { createHttp2Server } from '../../../src/edge/http-servers.ts';
import { paced } from '../../../src/http/paced.ts';
import { BodyFault, receiveBody } from '../../../src/http/receive-body.ts';
import { eventually } from '../../support/eventually.ts';
import { listen } from '../../support/listen.ts';
import { startWire } from '../../support/wire.ts';

/** Answers each request with what became of its body, and hands its connection to `use`. */
async function withReceiver(
  receive: (request: IncomingMessage) => Promise<Buffer>,
  use: (dial: () => { socket: Socket; answer: Promise<string> }) => Promise<void>,
): Promise<void> {
  const server = createServer((request, response) => {
    receive(request).then(
      (body) => response.end(`${body.byteLength} ${body.toString('latin1').slice(0, 20)}`),
      (error: unknown) => response.end(error instanceof BodyFault ? error.kind : String(error)),
    );
  });
  await using open = await listen(server);
  const sockets: Socket[] = [];
  try {
    await use(() => {
      const socket = connect(open.port, '127.0.0.1').setNoDelay(true);
      sockets.push(socket.on('error', () => undefined));
      const answer = new Promise<string>((resolve) =>
        socket.once('data', (data: Buffer) => resolve(data.toString().split('\r\n\r\n')[1] ?? '')),
      );
      return { socket, answer };
    });
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}

const POST = 'POST / HTTP/1.1\r\nhost: x\r\n';

test('a body that does not come in time is given up', async () => {
  await withReceiver(
    (request) => receiveBody(request, 1_000, 30),
    async (dial) => {
      const said = dial();
      said.socket.write(`${POST}content-length: 100\r\n\r\nabc`);
      expect(await said.answer).toContain('too_slow');
      const chunked = dial();
      chunked.socket.write(`${POST}transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n`);
      expect(await chunked.answer).toContain('too_slow');
    },
  );
});

test('a body in a thousand chunks is one, up to its limit', async () => {
  await withReceiver(
    (request) => receiveBody(request, 1_000, 20_000),
    async (dial) => {
      for (const [bytes, expected] of [
        [1_000, '1000 xxxxxxxxxxxxxxxxxxxx'],
        [1_001, 'too_large'],
      ] as const) {
        const { socket, answer } = dial();
        const chunks = '1\r\nx\r\n'.repeat(bytes);
        socket.write(`${POST}transfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`);
        expect(await answer).toContain(expected);
      }
    },
  );
});

test('a reader that stops amid a long reply is told of', async () => {
  let stalled = 0;
  const pieces = paced([new Uint8Array(1_000_000)], () => (stalled += 1), 20);
  const first = await pieces.next();
  expect(first.value?.byteLength).toBe(256 * 1024);
  await eventually(() => expect(stalled).toBe(1));
  const rest: number[] = [];
  for await (const piece of pieces) rest.push(piece.byteLength);
  expect(rest.reduce((sum, bytes) => sum + bytes, 256 * 1024)).toBe(1_000_000);
});

test('a client that takes nothing of its reply is cut off', async () => {
  await using wire = await startWire({ limits: { stallTimeoutMs: 30 } });
  const session = connectHttp2(wire.url, { settings: { initialWindowSize: 0 } });
  try {
    const stream = session.request({ ':path': '/healthz' });
    const closed = new Promise<void>((resolve) => stream.once('close', () => resolve()));
    stream.on('error', () => undefined);
    await closed;
    expect(stream.rstCode).toBe(constants.NGHTTP2_CANCEL);
  } finally {
    session.destroy();
  }
});

test('a stream takes little of a body that nobody reads yet', async () => {
  await using wire = await startWire();
  const session = connectHttp2(wire.url);
  try {
    const [settings] = (await once(session, 'remoteSettings')) as [Settings];
    // 1,000 calls of an account may wait for memory; what they have sent is in no budget.
    expect(settings.initialWindowSize).toBeLessThanOrEqual(64 * 1024);
  } finally {
    session.destroy();
  }
});

test('clients that abandon long replies keep their connection', async () => {
  const server = createHttp2Server(DEFAULT_EDGE_LIMITS, (request, response) => {
    response.end(request.url === '/long' ? Buffer.alloc(1024 * 1024) : 'short');
  });
  await using open = await listen(server);
  const session = connectHttp2(`http://127.0.0.1:${open.port}`);
  try {
    for (let n = 0; n < 12; n += 1) {
      const stream = session.request({ ':path': '/long' });
      await once(stream, 'response');
      stream.close(constants.NGHTTP2_CANCEL);
      await once(stream, 'close');
    }
    const [headers] = await once(session.request({ ':path': '/short' }), 'response');
    expect(headers).toMatchObject({ ':status': 200 });
  } finally {
    session.destroy();
  }
});

test('connections over the limit are refused, and said to be once', async () => {
  await using wire = await startWire({ limits: { maxConnections: 2 } });
  const dial = () => connect(wire.port, '127.0.0.1').on('error', () => undefined);
  const kept = [dial(), dial()];
  await Promise.all(
    kept.map((socket) => new Promise((resolve) => socket.once('connect', resolve))),
  );
  const refused = [dial(), dial(), dial()];
  await Promise.all(
    refused.map((socket) => new Promise((resolve) => socket.once('close', resolve))),
  );
  expect(wire.logger.lines).toMatchObject([{ level: 'warn', fields: { remote: '127.0.0.1' } }]);
  for (const socket of kept) socket.destroy();
  await eventually(async () => expect((await fetch(`${wire.url}/healthz`)).status).toBe(200));
});

test('one address has a share of the connections, this machine and its proxies all of them', () => {
  const refused: string[] = [];
  const bounds = { maxConnections: 8, maxPerAddress: 2, isTrusted: () => false };
  const limit = createConnectionLimit(bounds, (remote) => refused.push(remote));
  const open = (remoteAddress: string) => {
    const socket = Object.assign(new EventEmitter(), {
      remoteAddress,
      destroy: () => socket.emit('close'),
    });
    return limit.admit(socket as unknown as Socket) ? socket : undefined;
  };
  const kept = ['203.0.113.5', '203.0.113.5', '127.0.0.1', '::1', '127.0.0.1'].map(open);
  expect(kept.every((socket) => socket !== undefined)).toBe(true);
  expect(open('203.0.113.5')).toBeUndefined();
  expect(refused).toEqual(['203.0.113.5']);
  // Who leaves makes room; one that was refused never took any.
  kept[0]?.emit('close');
  expect(open('203.0.113.5')).toBeDefined();
  for (let n = 0; n < 3; n += 1) expect(open('::ffff:127.0.0.1')).toBeDefined();
  expect(open('127.0.0.1')).toBeUndefined();
});
