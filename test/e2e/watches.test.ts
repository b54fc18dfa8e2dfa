import { setTimeout } from 'node:timers/promises';
import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { expect, test } from 'vitest';
import { BatchService } from '../../gen/queuedcrawler/v1/batch_service_pb.ts';
import { PushService } from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import { StorageService } from '../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { WatchService } from '../../gen/queuedcrawler/v1/watch_service_pb.ts';
import { ADMIN, JAVASCRIPT, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startSite } from '../support/site.ts';

const transports: Readonly<Record<string, (baseUrl: string) => Transport>> = {
  gRPC: (baseUrl) => createGrpcTransport({ baseUrl }),
  'gRPC-Web': (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: '1.1' }),
  Connect: (baseUrl) => createConnectTransport({ baseUrl, httpVersion: '1.1' }),
};

/** Reads a stream in the background, until `stop`; `end` is what it ended with. */
function reading<Message>(open: (signal: AbortSignal) => AsyncIterable<Message>) {
  const abort = new AbortController();
  const messages: Message[] = [];
  const end = (async () => {
    try {
      for await (const message of open(abort.signal)) messages.push(message);
      return undefined;
    } catch (error) {
      return ConnectError.from(error);
    }
  })();
  return {
    messages,
    end,
    async [Symbol.asyncDispose]() {
      abort.abort();
      await end;
    },
  };
}

/** Reads the lines of a REST stream in the background. */
function readingLines(url: string) {
  const lines = async function* (signal: AbortSignal) {
    const response = await fetch(url, { signal });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8');
    let text = '';
    for await (const bytes of response.body ?? []) {
      text += Buffer.from(bytes).toString();
      const whole = text.split('\n');
      text = whole.pop() ?? '';
      // oxlint-disable-next-line typescript/no-explicit-any -- lines of many shapes
      yield* whole.map((line): any => JSON.parse(line));
    }
  };
  return reading(lines);
}

function watcher(app: TestApp, protocol: string, token = NORMAL) {
  const transport = transports[protocol]?.(app.url);
  if (transport === undefined) throw new Error(`no protocol ${protocol}`);
  const client = createClient(WatchService, transport);
  const options = (signal: AbortSignal) => ({
    signal,
    headers: { authorization: `Bearer ${token}` },
  });
  return {
    crawlers: (nameContains = '') =>
      reading((signal) => client.watchCrawlers({ nameContains }, options(signal))),
    crawler: (name: string) => reading((signal) => client.watchCrawler({ name }, options(signal))),
    activity: () => reading((signal) => client.watchActivity({}, options(signal))),
  };
}

test('a client sees crawlers, one crawler and the account change as it happens, over each protocol', async () => {
  await using site = await startSite();
  await using app = await startApp();
  const shop = await createCrawler(app, 'shop');
  await createCrawler(app, 'idle');
  await app.rest('POST', `/crawler/${JAVASCRIPT}`, { name: 'browser' });

  await using listed = watcher(app, 'Connect').crawlers();
  await using filtered = watcher(app, 'gRPC-Web').crawlers('IDL');
  await using one = watcher(app, 'gRPC').crawler('shop');
  await using account = readingLines(`${app.url}/watch/${NORMAL}/activity`);
  await using lines = readingLines(`${app.url}/watch/${NORMAL}/crawlers?name_contains=shop`);
  await eventually(() => {
    expect(listed.messages[0]?.crawlers.map(({ name }) => name)).toEqual(['idle', 'shop']);
    expect(one.messages[0]?.crawler?.activity?.pushed).toBe(0n);
    expect(account.messages[0]?.activity).toMatchObject({ account: 'default', concurrency: 60 });
  });
  expect(listed.messages[0]).toMatchObject({ isComplete: true, removed: [] });
  expect(filtered.messages[0]?.crawlers.map(({ name }) => name)).toEqual(['idle']);

  const rid = await shop.push(`${site.url}/page/1`);
  await shop.stored(rid);
  await eventually(() => {
    const completed = { activity: { completed: 1n } };
    expect(listed.messages.at(-1)?.crawlers).toMatchObject([{ name: 'shop', ...completed }]);
    expect(one.messages.at(-1)).toMatchObject({ crawler: completed, crawlTimes: { count: 1 } });
    expect(account.messages.at(-1)?.activity?.totals).toMatchObject({ completed: 1, pushed: 1 });
    expect(lines.messages.at(-1)?.crawlers[0]?.activity).toMatchObject({ completed: 1 });
  });
  // Who watches other names hears nothing of it.
  const names = filtered.messages.flatMap(({ crawlers }) => crawlers.map(({ name }) => name));
  expect(new Set(names)).toEqual(new Set(['idle']));

  await shop.post('delete');
  await eventually(() => expect(listed.messages.at(-1)?.removed).toEqual(['shop']));
  expect(await one.end).toMatchObject({ code: Code.NotFound });

  // A stop ends streams in order: with UNAVAILABLE, over REST in a last line.
  await app.stop();
  expect(await listed.end).toMatchObject({ code: Code.Unavailable });
  expect(await account.end).toBeUndefined();
  expect(account.messages.at(-1)).toMatchObject({ code: 'unavailable' });
});

test('a stream is refused, and ends, as other calls are', async () => {
  await using app = await startApp();
  await createCrawler(app, 'one');
  const unknown = await app.rest('GET', `/watch/${NORMAL}/crawlers/nobody`);
  expect(unknown.json).toMatchObject({ code: 'crawler_not_found' });
  expect(unknown.status).toBe(404);
  const stranger = await app.rest('GET', '/watch/not-a-token/activity');
  expect(stranger.status).toBe(401);
  const head = await app.rest('HEAD', `/watch/${NORMAL}/activity`);
  expect(head.status).toBe(405);
  const long = await app.rest('GET', `/watch/${NORMAL}/crawlers?name_contains=${'x'.repeat(65)}`);
  expect(long.json).toMatchObject({ code: 'invalid_name_contains' });

  const streams = Array.from({ length: 20 }, () => watcher(app, 'gRPC').activity());
  await eventually(() => {
    // A stream says again that it lives while the machine is slow.
    for (const { messages } of streams) expect(messages).not.toHaveLength(0);
  });
  const beyond = await app.rest('GET', `/watch/${NORMAL}/activity`);
  expect(beyond.json).toMatchObject({ code: 'too_many_streams', limit: 20 });
  expect(beyond.status).toBe(429);
  await Promise.all(streams.map((stream) => stream[Symbol.asyncDispose]()));
  await eventually(async () => {
    await using again = watcher(app, 'gRPC').activity();
    let isRefused = false;
    void again.end.then(() => {
      isRefused = true;
    });
    await eventually(() => expect(isRefused || again.messages.length > 0).toBe(true));
    expect(again.messages).not.toHaveLength(0);
  });
  expect(app.log.filter((line) => line.includes('"level":50'))).toEqual([]);
});

test('streams end when their token is replaced or their account removed, though nothing happens', async () => {
  await using app = await startApp();
  const shop = await createCrawler(app, 'shop');
  await shop.post('pause');
  await shop.post('push_batch', { items: [{ url: 'https://shop.example/', batch: 'list' }] });
  const admin = { authorization: `Bearer ${ADMIN}` };
  const made = await app.rest('POST', '/accounts', { name: 'leaves' }, admin);
  const { normal_token: token } = made.json as { normal_token: string };
  const headers = { authorization: `Bearer ${token}` };
  const transport = createGrpcTransport({ baseUrl: app.url });
  await using followed = reading((signal) =>
    createClient(StorageService, transport).streamResults({ follow: true }, { headers, signal }),
  );
  await using watched = reading((signal) =>
    createClient(WatchService, transport).watchActivity({}, { headers, signal }),
  );
  await using open = watcher(app, 'Connect').activity();
  await using listed = reading((signal) =>
    createClient(BatchService, transport).watchBatch(
      { name: 'shop', batch: 'list' },
      { headers: { authorization: `Bearer ${NORMAL}` }, signal },
    ),
  );
  const streams = [followed, watched, open];
  await eventually(() => expect(listed.messages).not.toHaveLength(0));
  await eventually(() => {
    for (const { messages } of streams) expect(messages).not.toHaveLength(0);
  });
  const rotation = { token_type: 'normal' };
  const rotated = await app.rest('POST', '/accounts/default/rotate_token', rotation, admin);
  expect(rotated.status).toBe(200);
  expect((await app.rest('DELETE', '/accounts/leaves', undefined, admin)).status).toBe(200);
  for (const { end, messages } of streams) {
    expect(await end).toMatchObject({ code: Code.Unauthenticated });
    // The rates come a second after the first message, a further one after 15 seconds.
    expect(messages.length).toBeLessThanOrEqual(2);
  }
  expect(await listed.end).toMatchObject({ code: Code.Unauthenticated });
  expect(app.log.filter((line) => line.includes('"level":50'))).toEqual([]);
});

test('a stream that pushes takes nothing more when its token is replaced', async () => {
  await using app = await startApp();
  const shop = await createCrawler(app, 'shop');
  await shop.post('pause');
  const client = createClient(PushService, createGrpcTransport({ baseUrl: app.url }));
  let next = Promise.withResolvers<void>();
  async function* requests() {
    for (;;) {
      yield { crawler: 'shop', items: [{ url: 'https://shop.example/' }] };
      await next.promise;
    }
  }
  const headers = { authorization: `Bearer ${NORMAL}` };
  await using pushed = reading((signal) => client.pushStream(requests(), { headers, signal }));
  await eventually(() => expect(pushed.messages).toHaveLength(1));
  const admin = { authorization: `Bearer ${ADMIN}` };
  const rotation = { token_type: 'normal' };
  await app.rest('POST', '/accounts/default/rotate_token', rotation, admin);
  await eventually(async () => {
    const { resolve } = next;
    next = Promise.withResolvers();
    resolve();
    const state = await Promise.race([pushed.end, setTimeout(20, 'open')]);
    expect(state).toMatchObject({ code: Code.Unauthenticated });
  });
});
