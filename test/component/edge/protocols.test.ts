import { connect as connectHttp2 } from 'node:http2';
import {
  Code,
  ConnectError,
  createClient,
  type Interceptor,
  type Transport,
} from '@connectrpc/connect';
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
} from '../../../gen/google/rpc/error_details_pb.ts';
import { CrawlerService } from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { PushService } from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { StorageService } from '../../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { NORMAL, startApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { startWire, stubErrors, type Wire } from '../../support/wire.ts';

const RID = 'a'.repeat(24);

const authorized: Interceptor = (next) => (request) => {
  request.header.set('authorization', `Bearer ${NORMAL}`);
  return next(request);
};

let wire: Wire;
beforeAll(async () => {
  wire = await startWire();
});
afterAll(() => wire.edge.close(0));

type MakeTransport = (options: {
  readonly baseUrl: string;
  readonly httpVersion: '1.1' | '2';
  readonly useBinaryFormat: boolean;
}) => Transport;

const gzip = { sendCompression: compressionGzip, compressMinBytes: 1 };
const protocols: Readonly<Record<string, MakeTransport>> = {
  connect: createConnectTransport,
  'connect gzip': (options) => createConnectTransport({ ...options, ...gzip }),
  grpc: createGrpcTransport,
  'grpc-web': createGrpcWebTransport,
};

const codes: Readonly<Record<string, Code>> = {
  invalid: Code.InvalidArgument,
  unauthenticated: Code.Unauthenticated,
  forbidden: Code.PermissionDenied,
  not_found: Code.NotFound,
  conflict: Code.AlreadyExists,
  failed_precondition: Code.FailedPrecondition,
  exhausted: Code.ResourceExhausted,
  unavailable: Code.Unavailable,
  internal: Code.Internal,
  unknown: Code.Internal,
};

const matrix = Object.keys(protocols).flatMap((name) =>
  (['1.1', '2'] as const)
    // gRPC needs trailers, which the client library takes over HTTP/2 only.
    .filter((version) => name !== 'grpc' || version === '2')
    .flatMap((version) => ['binary', 'json'].map((format) => [name, version, format] as const)),
);

test.each(matrix)('%s over HTTP/%s, %s', async (name, httpVersion, format) => {
  const make = protocols[name] ?? createConnectTransport;
  const transport = make({
    baseUrl: wire.url,
    httpVersion,
    useBinaryFormat: format === 'binary',
  });
  const crawlers = createClient(CrawlerService, transport);
  const headers = { authorization: 'Bearer tok', 'x-request-id': 'r-1' };
  const reply = await crawlers.createCrawler(
    { name: 'a', callbackUrl: 'http://x/' },
    { headers, timeoutMs: 60_000 },
  );
  expect(reply.crawler?.callbackUrl).toBe('http://x/');
  const call = wire.seen.calls.at(-1);
  expect(call).toMatchObject({ bearer: 'tok', requestId: 'r-1', protocol: name.split(' ')[0] });
  expect((await crawlers.purgeCrawler({ name: 'a' })).purged).toBe(2n ** 60n);

  for (const kind of Object.keys(stubErrors)) {
    const error = await crawlers
      .getCrawler({ name: kind })
      .catch((reason: unknown) => ConnectError.from(reason));
    expect(error, kind).toMatchObject({ code: codes[kind] });
  }
  const pushes = createClient(PushService, transport);
  const batch = await pushes.pushBatch({ items: [{ url: 'u' }, { url: 'v'.repeat(5_000) }] });
  expect(batch.results.map(({ rid }) => rid.length)).toEqual([1, 5_000]);
});

test('a resource that is not there is named, and a retry only where it helps', async () => {
  await using app = await startApp();
  const transport = createGrpcTransport({
    baseUrl: app.url,
    interceptors: [authorized],
  });
  const failure = async (call: Promise<unknown>) =>
    ConnectError.from(await call.catch((error: unknown) => error));
  const crawlers = createClient(CrawlerService, transport);
  const storage = createClient(StorageService, transport);
  await crawlers.createCrawler({ name: 'shop' });
  const named = [
    [failure(crawlers.getCrawler({ name: 'nobody' })), 'crawler', 'nobody'],
    [failure(crawlers.createCrawler({ name: 'shop', concurrency: 3 })), 'crawler', 'shop'],
    [failure(crawlers.deleteJob({ name: 'shop', rid: RID })), 'job', RID],
    [failure(crawlers.getDelivery({ name: 'shop', rid: RID })), 'delivery', RID],
    [failure(storage.getResult({ rid: RID })), 'result', RID],
    [failure(storage.getResult({ url: 'http://a.example/' })), 'result', 'http://a.example/'],
  ] as const;
  for (const [call, resourceType, resourceName] of named) {
    const error = await call;
    expect(error.findDetails(ResourceInfoSchema)[0]).toMatchObject({ resourceType, resourceName });
    expect(error.findDetails(RetryInfoSchema)).toEqual([]);
  }
  const tooLong = await failure(crawlers.getCrawler({ name: 'x'.repeat(100_000) }));
  expect(tooLong.code).toBe(Code.ResourceExhausted);
  expect(tooLong.findDetails(RetryInfoSchema)).toEqual([]);
});

test('error details survive the wire', async () => {
  const transport = createGrpcTransport({ baseUrl: wire.url });
  const client = createClient(CrawlerService, transport);
  const invalid = ConnectError.from(await client.getCrawler({ name: 'invalid' }).catch((e) => e));
  expect(invalid.findDetails(BadRequestSchema)[0]?.fieldViolations).toMatchObject([
    { field: 'name', description: 'name: 100% "ü", not a/b.' },
  ]);
  expect(invalid.findDetails(ErrorInfoSchema)[0]).toMatchObject({
    reason: 'invalid_name',
    domain: 'queuedcrawler',
  });
  const limited = ConnectError.from(await client.getCrawler({ name: 'exhausted' }).catch((e) => e));
  expect(limited.findDetails(RetryInfoSchema)[0]?.retryDelay).toMatchObject({
    seconds: 1n,
    nanos: 500_000_000,
  });
  expect(limited.findDetails(ErrorInfoSchema)[0]?.metadata).toEqual({ limit: '30', crawler: 'c' });
  const unknown = ConnectError.from(await client.getCrawler({ name: 'unknown' }).catch((e) => e));
  expect(unknown.rawMessage).toBe('An internal error occurred.');
  expect(wire.logger.lines).toContainEqual({
    level: 'error',
    message: 'a call failed unexpectedly',
    fields: expect.objectContaining({ route: 'queuedcrawler.v1.CrawlerService/GetCrawler' }),
  });
});

test('a deadline ends the call at the server, cancelling ends its signal', async () => {
  await using own = await startWire();
  const client = createClient(CrawlerService, createGrpcTransport({ baseUrl: own.url }));
  const late = client.getCrawler({ name: 'wait' }, { timeoutMs: 1_000 });
  // A deadline that passes before the call has arrived would show nothing of the server.
  const { signal } = await own.seen.waiting.promise;
  await expect(late).rejects.toMatchObject({ code: Code.DeadlineExceeded });
  await eventually(() => expect(signal.aborted).toBe(true));

  own.seen.waiting = Promise.withResolvers();
  const controller = new AbortController();
  const cancelled = client.getCrawler({ name: 'wait' }, { signal: controller.signal });
  const call = await own.seen.waiting.promise;
  const aborted = new Promise((resolve) => call.signal.addEventListener('abort', resolve));
  controller.abort();
  await expect(cancelled).rejects.toMatchObject({ code: Code.Canceled });
  await aborted;
  expect(own.logger.lines.filter(({ level }) => level === 'error')).toEqual([]);
});

test('messages over the limit are refused', async () => {
  const client = createClient(PushService, createGrpcTransport({ baseUrl: wire.url }));
  const large = client.pushBatch({ items: [{ url: 'u'.repeat(100_000) }] });
  await expect(large).rejects.toMatchObject({ code: Code.ResourceExhausted });
});

test('a stream answers each request in order', async () => {
  const client = createClient(PushService, createGrpcTransport({ baseUrl: wire.url }));
  async function* requests() {
    for (const sequence of [1n, 2n, 3n]) yield { sequence, items: [{ url: `u${sequence}` }] };
  }
  const answers: string[] = [];
  for await (const { sequence, results } of client.pushStream(requests())) {
    answers.push(`${sequence} ${results[0]?.rid}`);
  }
  expect(answers).toEqual(['1 u1', '2 u2', '3 u3']);
});

test('REST over HTTP/2', async () => {
  const session = connectHttp2(wire.url);
  try {
    const stream = session.request({ ':method': 'POST', ':path': '/crawler/js' });
    stream.end(JSON.stringify({ name: 'h2' }));
    const status = new Promise((resolve) => {
      stream.on('response', (headers) => resolve([headers[':status'], headers['content-type']]));
    });
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    expect(await status).toEqual([200, 'application/json; charset=utf-8']);
    expect(JSON.parse(Buffer.concat(chunks).toString())).toMatchObject({
      crawler: { name: 'h2', token_type: 'javascript' },
    });
  } finally {
    session.close();
  }
});

test('a body over the limit is 413 over HTTP/2 too, and does not hold the stream', async () => {
  const session = connectHttp2(wire.url);
  try {
    const stream = session.request({ ':method': 'POST', ':path': '/crawler/t' });
    const status = new Promise((resolve) => {
      stream.on('response', (headers) => resolve(headers[':status']));
    });
    // Never ended by the client.
    stream.on('error', () => undefined).write(Buffer.alloc(100_000));
    stream.resume();
    expect(await status).toBe(413);
    await new Promise((resolve) => stream.once('close', resolve));
    expect(stream.rstCode).toBe(0);
  } finally {
    session.close();
  }
});
