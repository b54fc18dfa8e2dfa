import { once } from 'node:events';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { connect, createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StorageService } from '../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { NORMAL, type TestApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { listen } from '../support/listen.ts';
import { shareApp } from '../support/shared-app.ts';
import { type Site, startSite } from '../support/site.ts';

const RESULTS = 20;
const AUTHORIZED = { authorization: `Bearer ${NORMAL}` };
const RPC = '/queuedcrawler.v1.StorageService/BulkGetResults';

const started = shareApp();
let site: Site;

beforeAll(async () => {
  site = await startSite();
});
afterAll(async () => {
  await site?.[Symbol.asyncDispose]();
});

/** The app, which has stored results. */
async function withStored() {
  const app = started();
  const crawler = await createCrawler(app, 'stored', { concurrency: 20 });
  const rids = await Promise.all(
    Array.from({ length: RESULTS }, (_, n) => crawler.push(`${site.url}/page/${n}`)),
  );
  await eventually(async () => expect(await count(app)).toBe(RESULTS));
  return { app, rids };
}

async function count(app: TestApp): Promise<number> {
  const { json } = await app.rest('GET', `/storage/total_count?token=${NORMAL}`);
  return json.totalCount as number;
}

async function take(app: TestApp, rids: readonly string[]): Promise<string[]> {
  const { json } = await app.rest('POST', `/storage/bulk?token=${NORMAL}`, {
    rids,
    auto_delete: true,
  });
  return json.map((result: { readonly rid: string }) => result.rid);
}

/** A connection that carries what the client sends and nothing of what the service answers. */
async function startDeafProxy(app: TestApp) {
  const { port } = new URL(app.url);
  const upstream: Socket[] = [];
  const server = createServer((client) => {
    const socket = connect(Number(port), '127.0.0.1').on('error', () => client.destroy());
    socket.pause();
    upstream.push(socket);
    client.on('data', (data) => socket.write(data)).on('error', () => undefined);
  });
  const opened = await listen(server);
  return {
    port: opened.port,
    /** Ends the connections to the service as a client does that has crashed. */
    reset: () => upstream.forEach((socket) => socket.resetAndDestroy()),
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

test('eight bulk reads at once that remove what they return get each result once', async () => {
  const { app, rids } = await withStored();
  const taken = await Promise.all(Array.from({ length: 8 }, () => take(app, rids)));
  expect(taken.flat().sort()).toEqual([...rids].sort());
  expect(await count(app)).toBe(0);
  expect(await take(app, rids)).toEqual([]);
  const { status } = await app.rest('GET', `/storage?token=${NORMAL}&rid=${rids[0]}`);
  expect(status).toBe(404);
  const listed = await app.rest('GET', `/storage/rids?token=${NORMAL}`);
  expect(listed.json).toEqual([]);
});

test('over gRPC the same', async () => {
  const { app, rids } = await withStored();
  const client = createClient(StorageService, createGrpcTransport({ baseUrl: app.url }));
  const options = { headers: AUTHORIZED };
  const replies = await Promise.all(
    Array.from({ length: 8 }, () => client.bulkGetResults({ rids, autoDelete: true }, options)),
  );
  const taken = replies.flatMap(({ results }) => results.map(({ rid }) => rid));
  expect(taken.sort()).toEqual([...rids].sort());
  expect(await count(app)).toBe(0);
});

describe('a client that reads no byte and resets its connection loses nothing', () => {
  const body = (rids: readonly string[]) => JSON.stringify({ rids, auto_delete: true });

  test.each([50, 300])('over HTTP/1.1, after %i ms', async (afterMs) => {
    const { app, rids } = await withStored();
    const socket = connect(Number(new URL(app.url).port), '127.0.0.1');
    await once(socket, 'connect');
    socket.pause();
    socket.write(
      `POST /storage/bulk?token=${NORMAL} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${body(rids).length}\r\n\r\n${body(rids)}`,
    );
    // Until the reply is made nobody holds the results.
    await eventually(async () => expect(await count(app)).toBe(0));
    await wait(afterMs);
    socket.resetAndDestroy();
    await eventually(async () => expect(await count(app)).toBe(RESULTS));
    expect(await take(app, rids)).toEqual(rids);
  });

  test.each([50, 300])('over HTTP/2, after %i ms', async (afterMs) => {
    const { app, rids } = await withStored();
    await using proxy = await startDeafProxy(app);
    const session = connectHttp2(`http://127.0.0.1:${proxy.port}`).on('error', () => undefined);
    const stream = session.request({
      ':method': 'POST',
      ':path': RPC,
      ...AUTHORIZED,
      'content-type': 'application/json',
    });
    stream.on('error', () => undefined);
    stream.end(body(rids));
    await eventually(async () => expect(await count(app)).toBe(0));
    await wait(afterMs);
    proxy.reset();
    await eventually(async () => expect(await count(app)).toBe(RESULTS));
    session.destroy();
    expect(await take(app, rids)).toEqual(rids);
  });
});

test('results that a client has are removed for good, which the storage quota shows', async () => {
  const { app, rids } = await withStored();
  const used = async (): Promise<number> => {
    const { json } = await app.rest('GET', `/crawler/${NORMAL}/stats`);
    return json.quotas.storage_bytes.used as number;
  };
  expect(await used()).toBeGreaterThan(0);
  await take(app, rids);
  await eventually(async () => expect(await used()).toBe(0));
});

test('many calls on one connection leave nothing behind on it', async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning);
  process.on('warning', onWarning);
  try {
    const { app, rids } = await withStored();
    const session = connectHttp2(app.url);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (const rid of rids) {
      const sent = JSON.stringify({ rids: [rid], auto_delete: true });
      const reply = httpRequest(`${app.url}/storage/bulk?token=${NORMAL}`, {
        method: 'POST',
        agent,
        headers: { 'content-type': 'application/json' },
      });
      reply.end(sent);
      const [response] = (await once(reply, 'response')) as [IncomingMessage];
      await text(response);
      const stream = session.request({
        ':method': 'POST',
        ':path': RPC,
        ...AUTHORIZED,
        'content-type': 'application/json',
      });
      stream.end(sent);
      await text(stream);
    }
    agent.destroy();
    session.close();
  } finally {
    process.off('warning', onWarning);
  }
  expect(warnings).toEqual([]);
});
