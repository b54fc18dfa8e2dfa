import { once } from 'node:events';
import { connect } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import {
  PushService,
  type PushStreamRequest,
  PushStreamRequestSchema,
  type PushStreamResponse,
} from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { createGrpcClient, type GrpcClient } from '../support/grpc-client.ts';

const request = create(PushStreamRequestSchema, {
  crawler: 'shop',
  items: [{ url: 'http://a.example/' }],
  sequence: 1n,
});

type Stream = ClientDuplexStream<PushStreamRequest, PushStreamResponse>;

async function answeredStream(client: GrpcClient): Promise<Stream> {
  const stream: Stream = client.stream(PushService.method.pushStream, NORMAL);
  stream.on('error', () => undefined);
  stream.write(request);
  await once(stream, 'data');
  return stream;
}

/** Waits until the service has nothing more to say of streams that ended, then gives what it logged as errors. */
async function errorsOf(app: TestApp): Promise<string[]> {
  const client = createGrpcClient(`127.0.0.1:${app.port}`);
  // A stream that is refused is the last thing that happens.
  const last: Stream = client.stream(PushService.method.pushStream, 'nobody');
  last.on('error', () => undefined);
  last.write(request);
  await once(last, 'error');
  client[Symbol.dispose]();
  return app.log.filter((line) => (JSON.parse(line) as { level: number }).level >= 50);
}

async function startShop(): Promise<TestApp> {
  const app = await startApp();
  const crawler = await createCrawler(app, 'shop');
  await crawler.post('pause');
  return app;
}

test('a stream that its client cancels is no error of the service', async () => {
  await using app = await startShop();
  using client = createGrpcClient(`127.0.0.1:${app.port}`);
  const streams = await Promise.all(Array.from({ length: 10 }, () => answeredStream(client)));
  for (const stream of streams) stream.cancel();
  await Promise.all(streams.map((stream) => once(stream, 'close').catch(() => undefined)));
  expect(await errorsOf(app)).toEqual([]);
});

test('nor is one whose client dies, or whose message is cut short', async () => {
  await using app = await startShop();
  const session = connect(app.url);
  session.on('error', () => undefined);
  const stream = session.request({
    ':method': 'POST',
    ':path': `/${PushService.typeName}/PushStream`,
    'content-type': 'application/grpc',
    authorization: `Bearer ${NORMAL}`,
    te: 'trailers',
  });
  stream.on('error', () => undefined);
  const message = toBinary(PushStreamRequestSchema, request);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.byteLength, 1);
  stream.write(Buffer.concat([head, message]));
  await once(stream, 'data');
  stream.write(head.subarray(0, 3));
  await eventually(() => expect(session.socket.writableLength).toBe(0));
  session.destroy();
  expect(await errorsOf(app)).toEqual([]);
});
