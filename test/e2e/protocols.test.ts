import { gunzipSync } from 'node:zlib';
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  CrawlerService,
  CrawlerStatus,
  JobStatus,
  PausedBy,
} from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import {
  PushService,
  PushStreamRequestSchema,
} from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import { StatsService } from '../../gen/queuedcrawler/v1/stats_service_pb.ts';
import { StorageService } from '../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { JAVASCRIPT, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { createGrpcClient } from '../support/grpc-client.ts';
import { startSite } from '../support/site.ts';

/** Calls a method with a token; rejects with an error that has a numeric gRPC `code`. */
interface Caller extends Disposable {
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    token?: string,
  ): Promise<MessageShape<O>>;
}

function connectCaller(transport: Transport): Caller {
  return {
    async call(method, request, token) {
      const client = createClient(method.parent, transport) as Record<string, unknown>;
      const send = client[method.localName] as (
        request: unknown,
        options: { headers?: Record<string, string> },
      ) => Promise<never>;
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
      return send(request, { headers });
    },
    [Symbol.dispose]: () => undefined,
  };
}

const callers: Readonly<Record<string, (app: TestApp) => Caller>> = {
  'gRPC by grpc-js': (app) => createGrpcClient(`127.0.0.1:${app.port}`),
  gRPC: (app) => connectCaller(createGrpcTransport({ baseUrl: app.url })),
  'gRPC-Web': (app) =>
    connectCaller(createGrpcWebTransport({ baseUrl: app.url, httpVersion: '1.1' })),
  'Connect JSON': (app) =>
    connectCaller(
      createConnectTransport({ baseUrl: app.url, httpVersion: '1.1', useBinaryFormat: false }),
    ),
  'Connect binary over HTTP/2': (app) =>
    connectCaller(
      createConnectTransport({ baseUrl: app.url, httpVersion: '2', useBinaryFormat: true }),
    ),
};

function codeOf(error: unknown): number {
  return error instanceof ConnectError ? error.code : Number((error as { code?: number }).code);
}

const crawlers = CrawlerService.method;

let app: TestApp;
async function start(): Promise<void> {
  app = await startApp();
}
async function stop(): Promise<void> {
  await app[Symbol.asyncDispose]();
}

describe.each(Object.entries(callers))('%s', (_name, callerOf) => {
  beforeAll(start);
  afterAll(stop);

  test('create, push, find, crawl, read, stats: the same as over REST', async () => {
    await using site = await startSite();
    using caller = callerOf(app);
    const made = await caller.call(crawlers.createCrawler, { name: 'rpc' }, NORMAL);
    expect(made).toMatchObject({ created: true, crawler: { name: 'rpc', concurrency: 20 } });
    const paused = await caller.call(crawlers.pauseCrawler, { name: 'rpc' }, NORMAL);
    expect(paused.crawler).toMatchObject({
      status: CrawlerStatus.PAUSED,
      pausedBy: PausedBy.USER,
    });

    const url = `${site.url}/page/3`;
    const { rid } = await caller.call(PushService.method.push, { crawler: 'rpc', url }, NORMAL);
    const found = await caller.call(crawlers.findJob, { name: 'rpc', rid }, NORMAL);
    expect(found).toMatchObject({ status: JobStatus.QUEUED, requestInfo: { rid, url, retry: 0 } });
    const overRest = await app.rest('GET', `/crawler/${NORMAL}/rpc/find_by_rid/${rid}`);
    expect(overRest.json.request_info.created_at).toBe(found.requestInfo?.createdAt);

    await caller.call(crawlers.unpauseCrawler, { name: 'rpc' }, NORMAL);
    const { result } = await eventually(() =>
      caller.call(StorageService.method.getResult, { rid }, NORMAL),
    );
    expect(result).toMatchObject({ rid, url, cbStatus: 200, originalStatus: 200 });
    expect(gunzipSync(result?.body ?? new Uint8Array()).toString()).toContain('Page 3');
    const after = await caller.call(crawlers.findJob, { name: 'rpc', rid }, NORMAL);
    expect(after).toMatchObject({ status: JobStatus.NOT_QUEUED, requestInfo: { rid } });
    expect(after.requestInfo?.url).toBeUndefined();
    const stats = await caller.call(StatsService.method.getStats, {}, NORMAL);
    expect(stats).toMatchObject({ completed: 1n, failed: 0n, concurrency: { limit: 20n } });
  });

  test('errors have the code of their kind', async () => {
    using caller = callerOf(app);
    await caller.call(crawlers.createCrawler, { name: 'taken' }, NORMAL);
    const callback = { name: 'taken', callbackUrl: 'https://example.com/' };
    const cases: [() => Promise<unknown>, Code][] = [
      [() => caller.call(crawlers.getCrawler, { name: 'taken' }), Code.Unauthenticated],
      [() => caller.call(crawlers.getCrawler, { name: 'taken' }, 'nobody'), Code.Unauthenticated],
      [
        () => caller.call(crawlers.getCrawler, { name: 'taken' }, JAVASCRIPT),
        Code.PermissionDenied,
      ],
      [() => caller.call(crawlers.getCrawler, { name: 'none' }, NORMAL), Code.NotFound],
      [() => caller.call(crawlers.createCrawler, callback, NORMAL), Code.AlreadyExists],
      [() => caller.call(crawlers.createCrawler, { name: '' }, NORMAL), Code.InvalidArgument],
      [
        () => caller.call(crawlers.updateCrawler, { name: 'taken', delivery: 1 }, NORMAL),
        Code.FailedPrecondition,
      ],
    ];
    for (const [call, code] of cases) {
      const error = await call().then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect(Code[codeOf(error)]).toBe(Code[code]);
    }
  });

  test('a batch has a result for each item, and repeats nothing for the same request_id', async () => {
    using caller = callerOf(app);
    await caller.call(crawlers.createCrawler, { name: 'batch' }, NORMAL);
    await caller.call(crawlers.pauseCrawler, { name: 'batch' }, NORMAL);
    const request = {
      crawler: 'batch',
      requestId: 'once',
      items: [
        { url: 'https://example.com/1' },
        { url: 'nonsense' },
        { url: 'https://example.com/2' },
      ],
    };
    const { results } = await caller.call(PushService.method.pushBatch, request, NORMAL);
    expect(results.map((each) => each.error?.code)).toEqual([undefined, 'invalid_url', undefined]);
    expect(results[1]?.error?.field).toBe('url');
    const again = await caller.call(PushService.method.pushBatch, request, NORMAL);
    expect(again.results.map((each) => each.rid)).toEqual(results.map((each) => each.rid));
    const details = await caller.call(crawlers.getCrawler, { name: 'batch' }, NORMAL);
    expect(details.crawler?.activity).toMatchObject({ waiting: 2n, pushed: 2n });
  });
});

describe('PushStream', () => {
  beforeAll(start);
  afterAll(stop);

  test('answers every request in order, over grpc-js', async () => {
    using client = createGrpcClient(`127.0.0.1:${app.port}`);
    await client.call(crawlers.createCrawler, { name: 'stream' }, NORMAL);
    await client.call(crawlers.pauseCrawler, { name: 'stream' }, NORMAL);
    const stream = client.stream(PushService.method.pushStream, NORMAL);
    const sequences: bigint[] = [];
    const rids: string[] = [];
    const ended = new Promise<void>((resolve, reject) => {
      stream.on('data', (response) => {
        sequences.push(response.sequence);
        rids.push(...response.results.map((each: { rid: string }) => each.rid));
      });
      stream.on('end', resolve);
      stream.on('error', reject);
    });
    for (let n = 1; n <= 20; n++) {
      const items = Array.from({ length: 50 }, (_, k) => ({
        url: `https://example.com/${n}/${k}`,
      }));
      // The crawler is named once; what follows goes to the same.
      const crawler = n === 1 ? 'stream' : '';
      stream.write(create(PushStreamRequestSchema, { crawler, items, sequence: BigInt(n) }));
    }
    stream.end();
    await ended;
    expect(sequences).toEqual(Array.from({ length: 20 }, (_, n) => BigInt(n + 1)));
    expect(new Set(rids).size).toBe(1_000);
    expect(rids.every((rid) => /^[0-9a-f]{24}$/.test(rid))).toBe(true);
  });

  test('without a valid token ends with UNAUTHENTICATED', async () => {
    using client = createGrpcClient(`127.0.0.1:${app.port}`);
    const stream = client.stream(PushService.method.pushStream, 'nobody');
    const failed = new Promise<{ code: number }>((resolve) => stream.on('error', resolve as never));
    stream.on('data', () => undefined);
    stream.write(
      create(PushStreamRequestSchema, { crawler: 'x', items: [{ url: 'https://e.com' }] }),
    );
    expect((await failed).code).toBe(status.UNAUTHENTICATED);
  });
});
