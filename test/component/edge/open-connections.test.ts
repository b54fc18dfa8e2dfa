import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { connect, createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createOpenConnections } from '../../../src/edge/open-connections.ts';
import { collectGarbage } from '../../support/collect-garbage.ts';
import { eventually } from '../../support/eventually.ts';

let server: ReturnType<typeof createServer>;
/** What the server knows of the sessions that were opened. */
let sessions: WeakRef<ServerHttp2Session>[];

/** Starts the server; each of its streams takes `streamMs`. */
async function start(idleSessionMs: number, streamMs: number): Promise<string> {
  const connections = createOpenConnections(createHttpServer(), idleSessionMs);
  server.on('session', (session) => {
    sessions.push(new WeakRef(session));
    connections.trackSession(session);
  });
  server.on('stream', (stream) => {
    stream.respond();
    setTimeout(() => stream.end('done'), streamMs);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function get(client: ReturnType<typeof connect>): Promise<string> {
  const request = client.request({ ':path': '/' }).setEncoding('utf8');
  let text = '';
  for await (const piece of request) text += String(piece);
  return text;
}

beforeEach(() => {
  server = createServer();
  sessions = [];
});

afterEach(() => void server.close());

test('a session that has ended is not kept in memory', async () => {
  const url = await start(60_000, 0);
  for (let n = 0; n < 5; n += 1) {
    const client = connect(url);
    const closed = once(client, 'close');
    expect(await get(client)).toBe('done');
    client.close();
    await closed;
  }
  await eventually(async () => {
    await collectGarbage();
    expect(sessions.filter((each) => each.deref() !== undefined).length).toBe(0);
  });
  expect(sessions).toHaveLength(5);
});

test('a session is closed when it has had no stream for the time, and not before', async () => {
  const client = connect(await start(1_000, 2_500));
  let told = '';
  client.on('goaway', () => {
    told += 'goaway ';
  });
  const text = await get(client);
  expect(told + text).toBe('done');
  await eventually(() => expect(client.closed).toBe(true));
});
