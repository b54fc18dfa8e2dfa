import { once } from 'node:events';
import { Agent, request as httpRequest } from 'node:http';
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { Code, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { describe, expect, test } from 'vitest';
import { PushService } from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { eventually } from '../../support/eventually.ts';
import { startWire, type Wire } from '../../support/wire.ts';

const GET = 'GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n';
const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

/** A raw connection that keeps what it receives. */
function dial(port: number): { socket: Socket; received: () => string; closed: Promise<void> } {
  const socket = connect(port, '127.0.0.1').setNoDelay(true);
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk));
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  return { socket, received: () => Buffer.concat(chunks).toString('latin1'), closed };
}

/** Writes each part after the one before has left, in a turn of its own. */
async function writeParts(socket: Socket, parts: readonly string[]): Promise<void> {
  for (const part of parts) {
    await new Promise<void>((resolve) => socket.write(part, 'latin1', () => setImmediate(resolve)));
  }
}

function get(
  url: string,
  agent?: Agent,
): Promise<{ status: number; connection: string; text: string }> {
  return new Promise((resolve, reject) => {
    httpRequest(url, agent === undefined ? {} : { agent }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          connection: response.headers.connection ?? '',
          text,
        }),
      );
      response.on('error', reject);
    })
      .on('error', reject)
      .end();
  });
}

function stream(session: ClientHttp2Session, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = session.request({ ':path': path });
    sent.on('response', (headers) => resolve(Number(headers[':status'])));
    sent.on('error', reject).resume().end();
  });
}

/** Passes one connection on to `port`, and can hold back what comes from there. */
async function startRelay(port: number): Promise<{
  port: number;
  hold: () => void;
  /** Settles once something, or the end, is held back. */
  held: Promise<void>;
  release: () => void;
  close: () => void;
}> {
  const { promise: held, resolve } = Promise.withResolvers<void>();
  const back: Buffer[] = [];
  let isHolding = false;
  let hasEnded = false;
  let client: Socket | undefined;
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    client = socket.on('error', () => undefined);
    const upstream = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    upstream.on('error', () => undefined);
    socket.pipe(upstream);
    upstream.on('data', (chunk) => {
      if (!isHolding) return void socket.write(chunk);
      back.push(chunk);
      resolve();
    });
    upstream.once('end', () => {
      if (!isHolding) return void socket.end();
      hasEnded = true;
      resolve();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    hold: () => (isHolding = true),
    held,
    release() {
      isHolding = false;
      client?.write(Buffer.concat(back));
      if (hasEnded) client?.end();
    },
    close: () => server.close(),
  };
}

describe('first bytes', () => {
  test.each([
    ['in one piece', [GET]],
    ['byte by byte', GET.split('')],
    ['a method that begins as the preface does', ['P', 'R', GET.replace('GET', 'OPFIND')]],
  ])('HTTP/1.1 %s', async (_, parts) => {
    await using wire = await startWire();
    const { socket, received } = dial(wire.port);
    await writeParts(socket, parts);
    await eventually(() => expect(received()).toMatch(/^HTTP\/1\.1 \d{3} /));
    socket.destroy();
  });

  test.each([
    ['in one piece', [`${PREFACE}\0\0\0\x04\0\0\0\0\0`]],
    ['byte by byte', [...PREFACE.split(''), '\0\0\0\x04', '\0\0\0\0\0']],
  ])('HTTP/2 %s', async (_, parts) => {
    await using wire = await startWire();
    const { socket, received } = dial(wire.port);
    await writeParts(socket, parts);
    // The server's SETTINGS, then the acknowledgement of ours, which came after the preface.
    await eventually(() => {
      expect(received()[3]).toBe('\x04');
      expect(received()).toContain('\0\0\0\x04\x01\0\0\0\0');
    });
    socket.destroy();
  });

  test('nothing, or never-ending headers, is cut off', async () => {
    await using wire = await startWire({ limits: { headersTimeoutMs: 30 } });
    const silent = dial(wire.port);
    const partial = dial(wire.port);
    partial.socket.write('PRI *');
    const slow = dial(wire.port);
    slow.socket.write('GET / HTTP/1.1\r\nx: ');
    await Promise.all([silent.closed, partial.closed, slow.closed]);
    expect(slow.received()).toContain('408 Request Timeout');
    // A busy machine may take longer for these headers than the limit above.
    await using patient = await startWire();
    const large = dial(patient.port);
    large.socket.write(`GET / HTTP/1.1\r\nx: ${'y'.repeat(70_000)}`);
    await large.closed;
    expect(large.received()).toContain('413');
  });

  test('a client that leaves half-way leaves nothing behind', async () => {
    const wire = await startWire();
    for (const text of ['', 'PRI', PREFACE, 'GET / HT', GET]) {
      const { socket, closed } = dial(wire.port);
      await writeParts(socket, [text || 'P']);
      socket.end();
      socket.resume();
      await closed;
    }
    // Nothing has to be cut off: it ends at once.
    await wire.edge.close(60_000);
    expect(wire.logger.lines).toEqual([]);
  });
});

describe('paths of the edge', () => {
  test('health, readiness and metrics', async () => {
    let ready: () => boolean = () => true;
    await using wire = await startWire({
      isReady: () => ready(),
      metrics: async () => ({
        status: 200,
        headers: { 'content-type': 'text/plain' },
        body: 'm 1',
      }),
    });
    expect(await get(`${wire.url}/healthz`)).toMatchObject({ status: 200, text: 'ok\n' });
    expect(await get(`${wire.url}/readyz`)).toMatchObject({ status: 200 });
    expect(await get(`${wire.url}/metrics?x`)).toMatchObject({ status: 200, text: 'm 1' });
    ready = () => false;
    expect(await get(`${wire.url}/readyz`)).toMatchObject({ status: 503 });
    ready = () => {
      throw new Error('no database');
    };
    expect(await get(`${wire.url}/readyz`)).toMatchObject({ status: 503 });
    expect(wire.logger.lines).toMatchObject([{ level: 'error', fields: { route: '/readyz' } }]);
  });
});

describe('close', () => {
  async function startedCall(
    wire: Wire,
  ): Promise<{ answer: ReturnType<typeof get>; agent: Agent }> {
    const agent = new Agent({ keepAlive: true });
    const answer = get(`${wire.url}/crawler/t/wait`, agent);
    await wire.seen.waiting.promise;
    return { answer, agent };
  }

  test('finishes what runs, over either version, then closes', async () => {
    const wire = await startWire();
    const { answer, agent } = await startedCall(wire);
    const session = connectHttp2(wire.url);
    const idle = connectHttp2(wire.url);
    expect(await stream(idle, '/healthz')).toBe(200);
    const idleClosed = new Promise((resolve) => idle.once('close', resolve));
    wire.seen.waiting = Promise.withResolvers();
    const second = stream(session, '/crawler/t/wait');
    await wire.seen.waiting.promise;
    const goaway = new Promise((resolve) => session.once('goaway', resolve));

    const closed = wire.edge.close(60_000);
    expect(await goaway).toBe(constants.NGHTTP2_NO_ERROR);
    await idleClosed;
    await expect(get(`${wire.url}/healthz`)).rejects.toThrow('ECONNREFUSED');
    wire.seen.release.resolve();
    expect(await answer).toMatchObject({ status: 200, connection: 'close' });
    expect(await second).toBe(200);
    await closed;
    agent.destroy();
  });

  test('refuses an HTTP/2 request in flight so that its client may send it again', async () => {
    const wire = await startWire();
    const relay = await startRelay(wire.port);
    const session = connectHttp2(`http://127.0.0.1:${relay.port}`);
    expect(await stream(session, '/healthz')).toBe(200);

    relay.hold();
    const closed = wire.edge.close(60_000);
    await relay.held;
    const late = expect(stream(session, '/healthz')).rejects.toThrow('NGHTTP2_REFUSED_STREAM');
    relay.release();
    await late;
    await closed;
    relay.close();
  });

  test('cuts off what does not finish in time, and aborts its call', async () => {
    const wire = await startWire();
    const { answer, agent } = await startedCall(wire);
    const call = await wire.seen.waiting.promise;
    const failed = expect(answer).rejects.toThrow('socket hang up');
    await wire.edge.close(10);
    await failed;
    await eventually(() => expect(call.signal.aborted).toBe(true));
    agent.destroy();
  });

  test('ends streams once what they sent is answered', async () => {
    const wire = await startWire();
    const client = createClient(PushService, createGrpcTransport({ baseUrl: wire.url }));
    const more = Promise.withResolvers<void>();
    async function* requests() {
      yield { sequence: 1n };
      await more.promise;
    }
    const answers = client.pushStream(requests())[Symbol.asyncIterator]();
    expect((await answers.next()).value?.sequence).toBe(1n);
    const ended = expect(answers.next()).rejects.toMatchObject({ code: Code.Unavailable });
    await wire.edge.close(60_000);
    await ended;
    more.resolve();
  });
});

describe('TLS', () => {
  const { cert, key } = makeCertificate();
  const options = { ca: cert, servername: 'localhost', checkServerIdentity: () => undefined };

  test.each([
    ['h2', ['h2', 'http/1.1'], 'h2'],
    ['h2', ['http/1.1', 'h2'], 'h2'],
    ['h2', ['h2'], 'h2'],
    ['h2', ['http/1.1'], 'http/1.1'],
    ['http/1.1', ['h2', 'http/1.1'], 'http/1.1'],
    ['http/1.1', ['h2'], 'h2'],
  ] as const)(
    'preferring %s, a client that offers %j gets %s',
    async (preferred, offer, chosen) => {
      await using wire = await startWire({ tls: { cert, key, preferred } });
      const address = { port: wire.port, host: '127.0.0.1', ALPNProtocols: [...offer] };
      const socket = connectTls({ ...address, ...options });
      await once(socket, 'secureConnect');
      expect(socket.alpnProtocol).toBe(chosen);
      socket.destroy();
    },
  );

  test('a client without ALPN gets HTTP/1.1', async () => {
    await using wire = await startWire({ tls: { cert, key } });
    const socket = connectTls({ port: wire.port, host: '127.0.0.1', ...options });
    let received = '';
    socket.setEncoding('latin1').on('data', (part: string) => (received += part));
    socket.write(GET);
    await eventually(() => expect(received).toContain('HTTP/1.1 200 OK'));
    socket.destroy();
  });

  test('gRPC and REST share the port', async () => {
    await using wire = await startWire({ tls: { cert, key } });
    const transport = createGrpcTransport({ baseUrl: wire.url, nodeOptions: options });
    const { rid } = await createClient(PushService, transport).push({ url: 'u' });
    expect(rid).toBe('u');
    const session = connectHttp2(wire.url, options);
    expect(await stream(session, '/healthz')).toBe(200);
    session.close();
  });
});
