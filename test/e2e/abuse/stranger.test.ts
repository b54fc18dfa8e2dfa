import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { Code, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Health } from '../../../gen/health/v1/health_pb.ts';
import { PushService } from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { JAVASCRIPT, NORMAL } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { byLength } from '../../support/length.ts';
import {
  processorMs,
  rssOf,
  type ServiceProcess,
  startProcess,
} from '../../support/service-process.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

// What somebody without a token can do to the service, which runs in a process of its own, and what its users notice of it.

const MIB = 1024 * 1024;
const PUSH_BATCH = `/crawler/no-such-token-in-here/crawler/push_batch`;
const gzipJson = { 'content-type': 'application/json', 'content-encoding': 'gzip' };

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let service: ServiceProcess;

beforeAll(async () => {
  folder = await temporaryFolder();
  service = await startProcess({ DATA_DIR: folder.path, LOG_LEVEL: 'info' });
  await service.rest('POST', `/crawler/${NORMAL}`, { name: 'victim' });
  await service.rest('POST', `/crawler/${NORMAL}/victim/pause`);
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

/** A user who pushes all the while; when he stops, how much the service worked during his slowest push, in milliseconds of processor time. */
function startVictim(): {
  stop(): Promise<{ readonly slowestMs: number; readonly pushes: number }>;
} {
  let running = true;
  let slowestMs = 0;
  let pushes = 0;
  const query = `token=${NORMAL}&crawler=victim&callback=true&url=`;
  const done = (async () => {
    while (running) {
      const startedAt = processorMs(service);
      const url = encodeURIComponent(`https://example.com/${pushes}`);
      const reply = await service.rest('GET', `/?${query}${url}`);
      expect(reply.status).toBe(200);
      pushes += 1;
      slowestMs = Math.max(slowestMs, processorMs(service) - startedAt);
    }
  })();
  return {
    async stop() {
      running = false;
      await done;
      return { slowestMs, pushes };
    },
  };
}

/** What the service took for itself while `attack` ran, and how its user fared. */
async function during(attack: () => Promise<void>) {
  const before = rssOf(service);
  const victim = startVictim();
  await attack();
  const { slowestMs, pushes } = await victim.stop();
  return { grownBytes: rssOf(service) - before, slowestMs, pushes };
}

// Far above what a push takes with what runs next to it, far below what sixteen such requests took the loop.
const BEARABLE_MS = 20_000;

async function post(path: string, body: Buffer<ArrayBuffer>, headers: Record<string, string>) {
  const response = await fetch(service.url + path, { method: 'POST', body, headers });
  return { status: response.status, text: await response.text() };
}

const objects = `{"items":[${'{},'.repeat(5_000_000)}{}]}`;
const nested = '['.repeat(15 * MIB);
const unknownFields = Buffer.alloc(16 * MIB, Uint8Array.of(0x78, 0x00));
const emptyItems = Buffer.alloc(16 * MIB, Uint8Array.of(0x1a, 0x00));

test('a packed body without a token is answered 401 and never unpacked', async () => {
  const body = gzipSync(objects);
  const seen = await during(async () => {
    for (let n = 0; n < 16; n += 1) {
      expect(await post(PUSH_BATCH, body, gzipJson)).toMatchObject({ status: 401 });
    }
  });
  expect(seen.grownBytes).toBeLessThan(100 * MIB);
  expect(seen.slowestMs).toBeLessThan(BEARABLE_MS);
});

test.each([
  ['protobuf with unknown fields', 'application/proto', unknownFields, Health, 'Check'],
  ['protobuf with empty items', 'application/proto', emptyItems, PushService, 'PushBatch'],
  ['JSON with empty items', 'application/json', Buffer.from(objects), PushService, 'PushBatch'],
  ['JSON, nested', 'application/json', Buffer.from(nested), Health, 'Check'],
] as const)('over Connect: %s', async (_, type, content, rpc, method) => {
  const body = gzipSync(content);
  const headers = { 'content-type': type, 'content-encoding': 'gzip' };
  const seen = await during(async () => {
    const replies = await Promise.all(
      Array.from({ length: 16 }, () => post(`/${rpc.typeName}/${method}`, body, headers)),
    );
    for (const { status, text } of replies) {
      expect([status, text]).toEqual([429, expect.stringContaining('resource_exhausted')]);
    }
  });
  expect(seen.grownBytes).toBeLessThan(100 * MIB);
  expect(seen.slowestMs).toBeLessThan(BEARABLE_MS);
});

test('with a token, what is sent in a batch is counted before it is built', async () => {
  const small = Buffer.from(objects.slice(0, 9 * MIB).replace(/,\{?$/, ']}'));
  const seen = await during(async () => {
    for (const [type, content] of [
      ['application/json', small],
      ['application/proto', emptyItems.subarray(0, 9 * MIB)],
    ] as const) {
      const headers = {
        'content-type': type,
        'content-encoding': 'gzip',
        authorization: `Bearer ${NORMAL}`,
      };
      const reply = await post(`/${PushService.typeName}/PushBatch`, gzipSync(content), headers);
      expect([reply.status, reply.text]).toEqual([400, expect.stringContaining('fields')]);
    }
    const rest = await post(`/crawler/${NORMAL}/victim/push_batch`, gzipSync(small), gzipJson);
    expect([rest.status, JSON.parse(rest.text).code]).toEqual([400, 'too_many_fields']);
  });
  expect(seen.slowestMs).toBeLessThan(BEARABLE_MS);
});

test('bodies that never end take no room without a token', async () => {
  const sockets: Socket[] = [];
  try {
    const seen = await during(async () => {
      const answered = Array.from({ length: 60 }, () => {
        const socket = connect(service.port, '127.0.0.1').on('error', () => undefined);
        sockets.push(socket);
        const head = `POST ${PUSH_BATCH} HTTP/1.1\r\nhost: x\r\ncontent-length: ${16 * MIB}\r\n\r\n`;
        socket.write(head);
        socket.write(Buffer.alloc(8 * MIB));
        return new Promise<string>((resolve) =>
          socket.once('data', (chunk: Buffer) => resolve(chunk.toString('latin1'))),
        );
      });
      for (const reply of await Promise.all(answered)) expect(reply).toContain('401 Unauthorized');
    });
    expect(seen.grownBytes).toBeLessThan(100 * MIB);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});

test('HTTP/2 streams whose messages never end share little room, and calls with a token pass them', async () => {
  const session = connectHttp2(service.url).on('error', () => undefined);
  const frame = Buffer.alloc(30_000);
  frame.writeUInt32BE(60_000, 1);
  try {
    const seen = await during(async () => {
      for (let n = 0; n < 500; n += 1) {
        const stream = session.request({
          ':method': 'POST',
          ':path': `/${PushService.typeName}/Push`,
          'content-type': 'application/grpc',
          te: 'trailers',
        });
        stream.on('error', () => undefined).resume();
        stream.write(frame);
      }
      const client = createClient(PushService, createGrpcTransport({ baseUrl: service.url }));
      const headers = { authorization: `Bearer ${NORMAL}` };
      for (let n = 0; n < 20; n += 1) {
        const request = { crawler: 'victim', url: `https://example.com/h2/${n}` };
        expect((await client.push(request, { headers })).rid).toMatch(/^[0-9a-f]{24}$/);
      }
    });
    const { text } = await service.rest('GET', '/metrics');
    const used = Number(/queued_crawler_pool_used\{pool="strangers"\} (\d+)/.exec(text)?.[1]);
    expect(used).toBeGreaterThan(0);
    expect(used).toBeLessThanOrEqual(10 * MIB);
    expect(seen.grownBytes).toBeLessThan(150 * MIB);
    expect(seen.slowestMs).toBeLessThan(BEARABLE_MS);
  } finally {
    session.destroy();
  }
  await eventually(async () => {
    const { text } = await service.rest('GET', '/metrics');
    expect(text).toContain('queued_crawler_pool_used{pool="strangers"} 0');
  });
});

/** Opens streams whose message never comes on connections of their own. Counts those that stay open. */
async function openHalf(connections: number, streamsEach: number, path: string) {
  let open = 0;
  const sessions = Array.from({ length: connections }, () =>
    connectHttp2(service.url).on('error', () => undefined),
  );
  for (const session of sessions) {
    await once(session, 'remoteSettings');
    for (let n = 0; n < streamsEach; n += 1) {
      const stream = session.request({
        ':method': 'POST',
        ':path': path,
        'content-type': 'application/grpc',
        te: 'trailers',
      });
      open += 1;
      stream.on('error', () => undefined);
      stream.on('close', () => (open -= 1));
    }
  }
  return {
    open: () => open,
    close: () => {
      for (const session of sessions) session.destroy();
    },
  };
}

test('streams whose message never comes are few, cost little, and hold up nobody with a token', async () => {
  // The first ones load what every connection uses.
  (await openHalf(1, 100, `/${Health.typeName}/Check`)).close();
  const rounds = byLength(1, 33);
  const seen = await during(async () => {
    for (let round = 0; round < rounds; round += 1) {
      const path = round % 2 === 0 ? `/${Health.typeName}/Check` : `/${PushService.typeName}/Push`;
      const half = await openHalf(30, 100, path);
      try {
        // Of one address 250 stay.
        await eventually(() => expect(half.open()).toBeLessThanOrEqual(250));
        const client = createClient(PushService, createGrpcTransport({ baseUrl: service.url }));
        const request = { crawler: 'victim', url: `https://example.com/half/${round}` };
        const headers = { authorization: `Bearer ${NORMAL}` };
        expect((await client.push(request, { headers })).rid).toMatch(/^[0-9a-f]{24}$/);
      } finally {
        half.close();
      }
    }
  });
  expect(seen.grownBytes).toBeLessThan(60 * MIB);
  expect(seen.slowestMs).toBeLessThan(BEARABLE_MS);
});

test('watchers of the health are counted, and share one look at the database', async () => {
  const sessions: ClientHttp2Session[] = [];
  const refused: string[] = [];
  let watching = 0;
  const path = `/${Health.typeName}/Watch`;
  try {
    for (let n = 0; n < 9; n += 1) {
      const session = connectHttp2(service.url).on('error', () => undefined);
      sessions.push(session);
      for (let k = 0; k < 100; k += 1) {
        const stream = session.request({
          ':method': 'POST',
          ':path': path,
          'content-type': 'application/grpc',
          te: 'trailers',
        });
        stream.on('error', () => undefined);
        stream.on('data', () => (watching += 1));
        stream.on('trailers', (trailers) => refused.push(String(trailers['grpc-status'])));
        stream.on('response', (headers) => {
          if (headers['grpc-status'] !== undefined) refused.push(String(headers['grpc-status']));
        });
        stream.end(Buffer.alloc(5));
      }
    }
    await eventually(() => expect(watching + refused.length).toBe(900));
    expect(watching).toBe(500);
    expect(new Set(refused)).toEqual(new Set([String(Code.ResourceExhausted)]));
    const seen = await during(async () => {
      for (let n = 0; n < 20; n += 1)
        expect((await service.rest('GET', '/healthz')).status).toBe(200);
    });
    expect(seen.slowestMs).toBeLessThan(BEARABLE_MS);
  } finally {
    for (const session of sessions) session.destroy();
  }
  // Those who are gone leave their places to others.
  const client = createClient(Health, createGrpcTransport({ baseUrl: service.url }));
  await eventually(async () => {
    const controller = new AbortController();
    const watch = client.watch({}, { signal: controller.signal })[Symbol.asyncIterator]();
    expect((await watch.next()).done).toBe(false);
    controller.abort();
  });
});

test('guessing tokens is slowed and logged, and does not lock the address out', async () => {
  const statuses = new Map<number, number>();
  for (let n = 0; n < 150; n += 1) {
    const { status } = await service.rest('GET', `/storage/total_count?token=guess-number-${n}`);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
  expect(statuses.get(429)).toBeGreaterThan(20);
  expect(statuses.get(401)).toBeGreaterThan(10);
  expect((await service.rest('GET', `/storage/total_count?token=${NORMAL}`)).status).toBe(200);
  // Also a token that was never used before.
  const unused = `/storage/total_count?token=${JAVASCRIPT}`;
  expect((await service.rest('GET', unused)).status).toBe(200);
  await eventually(() => expect(service.output).toContain('access tokens were refused'));
  expect(service.output).not.toContain('guess-number');
  const { text } = await service.rest('GET', '/metrics');
  expect(text).toMatch(/queued_crawler_wrong_tokens_total \d{2,}/);
});

test('pages of another origin read neither metrics nor readiness', async () => {
  for (const path of ['/metrics', '/readyz']) {
    const reply = await fetch(service.url + path, { headers: { origin: 'https://evil.example' } });
    expect([reply.status, reply.headers.get('access-control-allow-origin')]).toEqual([200, null]);
    await reply.text();
  }
});

test('a call with a token that works is answered before those of strangers that came first', async () => {
  const client = createClient(PushService, createGrpcTransport({ baseUrl: service.url }));
  const headers = { authorization: `Bearer ${NORMAL}` };
  const push = (n: number) =>
    client.push({ crawler: 'victim', url: `https://example.com/order/${n}` }, { headers });
  await push(0);
  const sessions = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const session = connectHttp2(service.url).on('error', () => undefined);
      await once(session, 'remoteSettings');
      return session;
    }),
  );
  let ended = 0;
  let answered = 0;
  try {
    const strangers = sessions.flatMap((session) =>
      Array.from({ length: 100 }, () => {
        const stream = session.request({
          ':method': 'POST',
          ':path': `/${PushService.typeName}/Push`,
          'content-type': 'application/grpc',
          authorization: 'Bearer token-of-nobody-at-all',
          te: 'trailers',
        });
        stream.on('error', () => undefined).resume();
        stream.on('response', () => (answered += 1));
        stream.on('close', () => (ended += 1));
        stream.end(Buffer.alloc(5));
        return stream;
      }),
    );
    // Until the first is answered, the others have reached the service.
    await eventually(() => expect(answered).toBeGreaterThan(0));
    await push(1);
    expect(answered).toBeLessThan(500);
    await eventually(() => expect(ended).toBe(strangers.length));
    // More than a thousand of one address do not wait.
    expect(answered).toBeLessThanOrEqual(1_100);
  } finally {
    for (const session of sessions) session.destroy();
  }
  await eventually(() => expect(service.output).toContain('calls without a known token'));
});
