import { request as httpRequest } from 'node:http';
import { gzipSync } from 'node:zlib';
import { create } from '@bufbuild/protobuf';
import { Code, createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import { describe, expect, test } from 'vitest';
import { ActivityService } from '../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import {
  CrawlerService,
  ListCrawlersRequestSchema,
} from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import {
  PushRequestSchema,
  PushService,
  PushStreamRequestSchema,
} from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import {
  WatchActivityRequestSchema,
  WatchService,
} from '../../../gen/queuedcrawler/v1/watch_service_pb.ts';
import { type Admission, withAdmission } from '../../../src/api/admission.ts';
import type { Call } from '../../../src/api/method.ts';
import type { TokenOwner } from '../../../src/domain/account.ts';
import { DomainError } from '../../../src/domain/errors.ts';
import { createFairPool } from '../../../src/fairness/fair-pool.ts';
import { createRoom, createRoomPools, createUnlimitedPools } from '../../../src/http/room.ts';
import { eventually } from '../../support/eventually.ts';
import { partialMethodsOf, startWire } from '../../support/wire.ts';

function ownerNamed(accountId: string): TokenOwner {
  return { account: { accountId }, tokenType: 'normal' } as unknown as TokenOwner;
}

/** Lets tokens in that begin with `good`; each is an account of its own. */
const admission: Admission = {
  async admit({ access }, token, call) {
    const given = token === '' ? (call.bearer ?? '') : token;
    if (access === 'public') return;
    if (!given.startsWith('good')) {
      throw new DomainError('unauthenticated', 'invalid_token', 'No such token.');
    }
    call.caller = { token: given, owner: ownerNamed(given) };
  },
};

const grpc = (url: string) => createClient(PushService, createGrpcTransport({ baseUrl: url }));
const KIB = 1024;

describe('the size of a message', () => {
  test.each([
    ['without a bearer', {}, 'x'.repeat(60 * KIB), undefined],
    ['without a bearer', {}, 'x'.repeat(70 * KIB), Code.ResourceExhausted],
    ['with one', { authorization: 'Bearer good' }, 'x'.repeat(500 * KIB), undefined],
    ['with a wrong one', { authorization: 'Bearer bad' }, 'x', Code.Unauthenticated],
  ])('%s', async (_, headers, url, code) => {
    await using wire = await startWire({ admission, maxBodyBytes: 1024 * KIB });
    for (const transport of [
      createGrpcTransport({ baseUrl: wire.url }),
      createConnectTransport({ baseUrl: wire.url, httpVersion: '1.1' }),
      createConnectTransport({ baseUrl: wire.url, httpVersion: '1.1', useBinaryFormat: false }),
    ]) {
      const call = createClient(PushService, transport).push({ token: 'good', url }, { headers });
      if (code === undefined) expect((await call).rid).toHaveLength(url.length);
      else await expect(call).rejects.toMatchObject({ code });
    }
  });

  test('of every message of a stream', async () => {
    await using wire = await startWire({ admission, maxBodyBytes: 1024 * KIB });
    async function* requests() {
      yield { sequence: 1n, items: [{ url: 'u' }] };
      yield { sequence: 2n, items: [{ url: 'x'.repeat(70 * KIB) }] };
    }
    const seen: bigint[] = [];
    const reading = (async () => {
      for await (const { sequence } of grpc(wire.url).pushStream(requests())) seen.push(sequence);
    })();
    await expect(reading).rejects.toMatchObject({ code: Code.ResourceExhausted });
    expect(seen).toEqual([1n]);
  });
});

test('a packed body is not unpacked for a wrong token, and its connection stays open', async () => {
  await using wire = await startWire({ admission, maxBodyBytes: 1024 * KIB });
  const { Agent } = await import('node:http');
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const post = (path: string, body: Buffer) =>
    new Promise<[number | undefined, boolean]>((resolve, reject) => {
      const sent = httpRequest(
        `${wire.url}${path}`,
        { method: 'POST', agent, headers: { 'content-encoding': 'gzip' } },
        (response) =>
          response.resume().on('end', () => resolve([response.statusCode, sent.reusedSocket])),
      );
      sent.on('error', reject).end(body);
    });
  try {
    // Not gzip at all: unpacking it would fail.
    expect(await post('/crawler/bad', Buffer.alloc(200 * KIB))).toEqual([401, false]);
    expect(await post('/crawler/good', gzipSync('{"name":"n"}'))).toEqual([200, true]);
    expect(await post('/storage/bulk', Buffer.alloc(100))).toEqual([401, true]);
    expect(await post('/storage/bulk?token=good', gzipSync('{"rids":["a"]}'))).toEqual([200, true]);
  } finally {
    agent.destroy();
  }
});

describe('a stream whose handler checks no token', () => {
  const methods = withAdmission(
    [
      ...partialMethodsOf(WatchService, {
        async *watchActivity() {
          yield {};
        },
      }),
      ...partialMethodsOf(PushService, {
        async *pushStream(requests) {
          for await (const { sequence } of requests) yield { sequence };
        },
      }),
    ],
    admission,
    { slots: createFairPool({ name: 'calls', capacity: 1 }) },
  );
  const methodOf = (name: string) => methods.find(({ desc }) => desc.name === name);

  test.each([['bad'], ['']])('of replies sends nothing with the token %o', async (token) => {
    const watch = methodOf('WatchActivity');
    if (watch?.kind !== 'server_streaming') throw new Error('not a stream');
    const replies = watch.handle(create(WatchActivityRequestSchema, { token }), callOf(''));
    await expect(Array.fromAsync(replies)).rejects.toMatchObject({ kind: 'unauthenticated' });
  });

  test('of requests gets those with a right token only', async () => {
    const push = methodOf('PushStream');
    if (push?.kind !== 'bidi_streaming') throw new Error('not a stream');
    async function* requests() {
      yield create(PushStreamRequestSchema, { token: 'good', sequence: 1n });
      yield create(PushStreamRequestSchema, { sequence: 2n });
      yield create(PushStreamRequestSchema, { token: 'bad', sequence: 3n });
    }
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const reply of push.handle(requests(), callOf(''))) seen.push(reply);
    })();
    await expect(reading).rejects.toMatchObject({ kind: 'unauthenticated' });
    expect(seen).toEqual([{ sequence: 1n }, { sequence: 2n }]);
  });
});

describe('the memory of bodies', () => {
  test('a body waits for room, is told to come back when there is no room, and gives it back', async () => {
    const memory = createFairPool({ name: 'memory', capacity: 100 * KIB });
    const pools = { ...createRoomPools(memory, 200 * KIB), waitMs: 50 };
    await using wire = await startWire({ admission, pools });
    const push = () =>
      fetch(`${wire.url}/?token=good&crawler=c`, { method: 'POST', body: 'x'.repeat(30 * KIB) });
    const taken = await memory.acquire({ accountId: 'other' }, 60 * KIB);
    const refused = await push();
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '2']);
    await refused.text();
    taken.release();
    const accepted = await push();
    expect(accepted.status).toBe(200);
    await accepted.text();
    await eventually(() => expect(memory.used).toBe(0));
  });

  test('a room that is released gives back what it is granted afterwards, too', async () => {
    const pools = createUnlimitedPools();
    const room = createRoom(
      pools,
      () => ({ accountId: 'a', remote: '' }),
      () => undefined,
    );
    const grant = await room.take(10);
    await room.take(5);
    grant.release();
    expect(pools.memory.used).toBe(5);
    room.release();
    await room.take(7);
    expect(pools.memory.used).toBe(0);
  });
});

/** A call with a room of its own in the pools. */
function callOf(token: string, pools = createUnlimitedPools()): Call {
  const call = { bearer: token } as Call;
  const owner = () => ({ accountId: call.caller?.owner.account.accountId, remote: '' });
  return Object.assign(call, { room: createRoom(pools, owner, () => undefined) });
}

test('long lists wait for memory and keep what their replies take; short calls do not wait', async () => {
  const MIB = KIB * KIB;
  const memory = createFairPool({ name: 'memory', capacity: 64 * MIB, maxWaiting: 100 });
  const pools = createRoomPools(memory, 64 * MIB);
  const release = Promise.withResolvers<void>();
  let running = 0;
  const methods = withAdmission(
    [
      ...partialMethodsOf(ActivityService, {
        async listResults() {
          running += 1;
          await release.promise;
          return { results: [{ url: 'x'.repeat(MIB) }] };
        },
      }),
      ...partialMethodsOf(CrawlerService, { getCrawler: async () => ({}) }),
    ],
    admission,
    { slots: createFairPool({ name: 'calls', capacity: 100 }), waitMs: 60_000 },
  );
  const handle = (name: string, call: Call) => {
    const method = methods.find(({ desc }) => desc.name === name);
    if (method?.kind !== 'unary') throw new Error(name);
    return method.handle({} as never, call);
  };
  const calls = Array.from({ length: 20 }, (_, n) => callOf(`good-${n}`, pools));
  const lists = calls.map((call) => handle('ListResults', call));
  await eventually(() => expect(memory.waiting).toBe(16));
  expect(running).toBe(4);
  await handle('GetCrawler', callOf('good-short', pools));
  release.resolve();
  await Promise.all(lists);
  for (const { room } of calls) {
    expect(room.held()).toBeGreaterThanOrEqual(2 * MIB);
    expect(room.held()).toBeLessThan(2.1 * MIB);
    room.release();
  }
  expect(memory.used).toBe(0);
});

describe('slots', () => {
  test('a thousand slow calls of one account leave the others their turn, and pushes take none', async () => {
    const slots = createFairPool({ name: 'calls', capacity: 4, reserve: 4, maxWaiting: 1_000 });
    const release = Promise.withResolvers<void>();
    let running = 0;
    let most = 0;
    const methods = withAdmission(
      [
        ...partialMethodsOf(CrawlerService, {
          async listCrawlers(_, call) {
            if (call.caller?.token !== 'good-busy') return {};
            running += 1;
            most = Math.max(most, running);
            await release.promise;
            running -= 1;
            return {};
          },
        }),
        ...partialMethodsOf(PushService, { push: async () => ({ rid: 'r' }) }),
      ],
      admission,
      { slots, waitMs: 60_000 },
    );
    const handle = (name: string, request: object, token: string) => {
      const method = methods.find(({ desc }) => desc.name === name);
      if (method?.kind !== 'unary') throw new Error(name);
      return method.handle(request as never, callOf(token));
    };
    const list = (token: string) =>
      handle('ListCrawlers', create(ListCrawlersRequestSchema), token);
    const busy = Array.from({ length: 1_000 }, () => list('good-busy'));
    await eventually(() => expect(running).toBe(4));
    expect(await list('good-other')).toEqual({});
    expect(await handle('Push', create(PushRequestSchema), 'good-busy')).toEqual({ rid: 'r' });
    await expect(
      Promise.all(Array.from({ length: 5 }, () => list('good-busy'))),
    ).rejects.toMatchObject({
      reason: 'too_many_waiting',
    });
    release.resolve();
    await Promise.all(busy);
    expect(most).toBe(4);
    await eventually(() => expect(slots.used).toBe(0));
  });
});
