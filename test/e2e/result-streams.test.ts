import { randomBytes } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import { expect, test } from 'vitest';
import { StorageService } from '../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { JAVASCRIPT, NORMAL, startApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { byLength } from '../support/length.ts';
import { rssOf, startProcess } from '../support/service-process.ts';
import { startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const token = NORMAL;
const MIB = 1024 * 1024;

function storageOf(baseUrl: string, kind: 'grpc' | 'connect' = 'grpc') {
  const transport =
    kind === 'grpc'
      ? createGrpcTransport({ baseUrl })
      : createConnectTransport({ baseUrl, httpVersion: '1.1' });
  return createClient(StorageService, transport);
}

type Storage = ReturnType<typeof storageOf>;
type Request = Parameters<Storage['streamResults']>[0];

/** What a stream sends until it has sent all. */
async function readAll(storage: Storage, request: Request) {
  const rids: string[] = [];
  const tokens: string[] = [];
  let isAtEnd = false;
  for await (const { result, resumeToken } of storage.streamResults({ token, ...request })) {
    isAtEnd = result === undefined;
    if (result === undefined) continue;
    rids.push(result.rid);
    tokens.push(resumeToken);
  }
  expect(isAtEnd).toBe(true);
  return { rids, tokens };
}

test('every result once and whole, of a crawler or all, from any token; acknowledged ones are gone', async () => {
  await using site = await startSite();
  await using app = await startApp();
  const shop = await createCrawler(app, 'shop');
  const news = await createCrawler(app, 'news');
  const ofShop = await Promise.all([1, 2, 3].map((n) => shop.push(`${site.url}/page/${n}`)));
  const ofNews = await news.push(`${site.url}/page/4`);
  for (const rid of [...ofShop, ofNews]) await shop.stored(rid);
  const query = `token=${NORMAL}&url=${encodeURIComponent(`${site.url}/page/5`)}&store=true`;
  const inline = (await app.rest('GET', `/?${query}&format=json`)).json.rid as string;

  const storage = storageOf(app.url);
  const all = await readAll(storage, {});
  expect(new Set(all.rids)).toEqual(new Set([...ofShop, ofNews, inline]));
  expect(all.rids.at(-1)).toBe(inline);
  expect((await readAll(storageOf(app.url, 'connect'), {})).rids).toEqual(all.rids);
  expect((await readAll(storage, { resumeToken: all.tokens[1] ?? '' })).rids).toEqual(
    all.rids.slice(2),
  );
  const shopOnly = await readAll(storage, { crawler: 'shop' });
  expect(new Set(shopOnly.rids)).toEqual(new Set(ofShop));
  expect((await readAll(storage, { token: JAVASCRIPT })).rids).toEqual([]);
  for await (const { result } of storage.streamResults({ token, crawler: 'news' })) {
    if (result === undefined) break;
    expect(result).toMatchObject({ rid: ofNews, cbStatus: 200, originalStatus: 200 });
    expect(gunzipSync(result.body).toString()).toContain('Page 4');
  }

  const lines = await app.rest('GET', `/storage/stream?token=${NORMAL}&crawler=shop`);
  const messages = lines.text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(messages.map((each) => each.result?.rid)).toEqual([...shopOnly.rids, undefined]);
  expect(gunzipSync(Buffer.from(messages[0].result.body, 'base64')).toString()).toContain('Page');

  // A token of another stream removes nothing.
  for (const more of [{}, { crawler: 'news' }, { token: JAVASCRIPT, crawler: '' }]) {
    const request = { token, crawler: 'shop', resumeToken: all.tokens.at(-1) ?? '', ...more };
    const other = { ...request, ...('crawler' in more ? { resumeToken: shopOnly.tokens[1] } : {}) };
    await expect(storage.acknowledgeResults(other)).rejects.toMatchObject({
      code: Code.InvalidArgument,
      rawMessage: 'resume_token must be one of a message of this stream.',
    });
  }
  expect((await readAll(storage, {})).rids).toEqual(all.rids);

  const acknowledged = await app.rest('POST', `/storage/acknowledge?token=${NORMAL}`, {
    crawler: 'shop',
    resume_token: shopOnly.tokens[1],
  });
  expect([acknowledged.status, acknowledged.json]).toEqual([200, { removed: 2 }]);
  expect((await readAll(storage, {})).rids).toEqual(
    all.rids.filter((rid) => !shopOnly.rids.slice(0, 2).includes(rid)),
  );
});

test('what makes no sense is refused by name, and an account has up to 10 streams', async () => {
  await using app = await startApp();
  const storage = storageOf(app.url);
  const refusal = async (request: Request): Promise<ConnectError> => {
    const first = storage.streamResults(request)[Symbol.asyncIterator]().next();
    return ConnectError.from(
      await first.then(
        () => 'no error',
        (error: unknown) => error,
      ),
    );
  };
  expect((await refusal({ token: 'nobody-at-all' })).code).toBe(Code.Unauthenticated);
  expect((await refusal({ token, crawler: 'shop' })).code).toBe(Code.NotFound);
  const bad = await refusal({ token, resumeToken: '12' });
  expect([bad.code, bad.rawMessage]).toEqual([
    Code.InvalidArgument,
    'resume_token must be one of a message of StreamResults.',
  ]);
  const leaving = new AbortController();
  const options = { signal: leaving.signal };
  const open = async (account: string) => {
    const stream = storage.streamResults({ token: account, follow: true }, options);
    const reading = stream[Symbol.asyncIterator]();
    await reading.next();
    return reading;
  };
  await Promise.all(Array.from({ length: 10 }, () => open(token)));
  expect((await refusal({ token, follow: true })).code).toBe(Code.ResourceExhausted);
  leaving.abort();
  await eventually(async () => {
    await readAll(storage, {});
  });
  expect(app.log.filter((line) => line.includes('"level":50'))).toEqual([]);
});

test('a consumer that follows gets every result, across kill -9 of the service and its own lost messages', async () => {
  await using folder = await temporaryFolder();
  await using site = await startSite();
  const count = byLength(60, 400);
  const env = { DATA_DIR: folder.path };
  let service = await startProcess(env);
  const seen = new Set<string>();
  const consuming = new AbortController();

  /**
   * Acknowledges every tenth; continues by the last token that it has kept, with any process of the
   * service.
   */
  async function consume(): Promise<void> {
    let kept = '';
    while (!consuming.signal.aborted) {
      try {
        const storage = storageOf(service.url);
        const stream = storage.streamResults(
          { token, crawler: 'shop', resumeToken: kept, follow: true },
          { signal: consuming.signal },
        );
        let got = 0;
        for await (const { result, resumeToken } of stream) {
          if (result !== undefined) seen.add(result.rid);
          got += 1;
          if (got % 3 === 0) kept = resumeToken;
          if (got % 10 === 0) {
            await storage.acknowledgeResults({ token, crawler: 'shop', resumeToken });
          }
        }
      } catch {
        // The service was killed, or the test has ended.
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }

  const reading = consume();
  try {
    await service.rest('POST', `/crawler/${NORMAL}`, { name: 'shop', concurrency: 5 });
    const items = Array.from({ length: count }, (_, n) => ({
      url: `${site.url}/page/${n}?delay=30`,
    }));
    const pushed = await service.rest('POST', `/crawler/${NORMAL}/shop/push_batch`, { items });
    const rids: string[] = pushed.json.results.map((each: { rid: string }) => each.rid);
    for (const share of [0.2, 0.6]) {
      await eventually(() => expect(seen.size).toBeGreaterThan(share * count));
      await service.kill9();
      service = await startProcess(env);
    }
    await eventually(() => expect(seen.size).toBe(count));
    expect(seen).toEqual(new Set(rids));
  } finally {
    consuming.abort();
    await reading;
    await service.kill9();
  }
});

test('a stream is not held up by one of another crawler, which has no results', async () => {
  await using site = await startSite();
  await using app = await startApp();
  await createCrawler(app, 'idle');
  const busy = await createCrawler(app, 'busy');
  const storage = storageOf(app.url);
  const leaving = new AbortController();
  const open = (crawler: string) => {
    const request = { token, crawler, follow: true };
    const stream = storage.streamResults(request, { signal: leaving.signal });
    return stream[Symbol.asyncIterator]();
  };
  const streams = [open('idle'), open('busy')] as const;
  // Each says that there is nothing, and then waits.
  for (const stream of streams) expect((await stream.next()).value?.result).toBeUndefined();
  // A stream without results says so again after 20 s.
  const next = Promise.race(streams.map((stream) => stream.next()));
  const rid = await busy.push(`${site.url}/page/1`);
  expect((await next).value?.result?.rid).toBe(rid);
  leaving.abort();
});

test('a consumer that does not read holds a small part of its results, and nobody up', async () => {
  const pages = byLength(40, 150);
  await using folder = await temporaryFolder();
  await using site = await startSite({
    routes: {
      '/random': (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/html' });
        response.end(randomBytes(MIB).toString('base64'));
      },
    },
  });
  await using service = await startProcess({ DATA_DIR: folder.path });
  await service.rest('POST', `/crawler/${NORMAL}`, { name: 'shop' });
  const items = Array.from({ length: pages }, (_, n) => ({ url: `${site.url}/random?${n}` }));
  await service.rest('POST', `/crawler/${NORMAL}/shop/push_batch`, { items });
  await eventually(async () => {
    const { json } = await service.rest('GET', `/storage/total_count?token=${NORMAL}`);
    expect(json.totalCount).toBe(pages);
  });
  const before = rssOf(service);
  const leaving = new AbortController();
  const storage = storageOf(service.url);
  const readers = await Promise.all(
    Array.from({ length: 8 }, async () => {
      const stream = storage.streamResults({ token }, { signal: leaving.signal });
      const reader = stream[Symbol.asyncIterator]();
      await reader.next();
      return reader;
    }),
  );
  // The others' calls are answered, and a stream that reads gets all.
  expect((await readAll(storageOf(service.url), {})).rids).toHaveLength(pages);
  const held = rssOf(service) - before;
  expect(held / MIB).toBeLessThan(8 * pages * 0.5);
  leaving.abort();
  await Promise.allSettled(readers.map(async (reader) => reader.return?.()));
});
