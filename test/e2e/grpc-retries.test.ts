import { connect, constants } from 'node:http2';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Client, credentials, Metadata, status } from '@grpc/grpc-js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { GetCrawlerRequestSchema } from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import {
  PushRequestSchema,
  PushResponseSchema,
} from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';

let app: TestApp;

beforeAll(async () => {
  app = await startApp({ env: { PUSH_RATE_PER_SECOND: '4' } });
  await app.rest('POST', `/crawler/${NORMAL}`, { name: 'retried' });
  await app.rest('POST', `/crawler/${NORMAL}/retried/pause`);
});

afterAll(() => app[Symbol.asyncDispose]());

/** A call over gRPC as it is on the wire: the blocks of headers, and whether the first one is the end. */
async function wireCall(method: string, message: Uint8Array, token: string) {
  const session = connect(app.url);
  try {
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(message.length, 1);
    const stream = session.request({
      ':method': 'POST',
      ':path': `/queuedcrawler.v1.${method}`,
      'content-type': 'application/grpc',
      te: 'trailers',
      authorization: `Bearer ${token}`,
    });
    let isEnd = false;
    let headers: Record<string, unknown> = {};
    let trailers: Record<string, unknown> | undefined;
    stream.on('response', (block, flags) => {
      headers = block;
      isEnd = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    });
    stream.on('trailers', (block) => {
      trailers = block;
    });
    stream.end(Buffer.concat([prefix, message])).resume();
    await new Promise((resolve, reject) => stream.once('close', resolve).once('error', reject));
    return { headers, isEnd, trailers };
  } finally {
    session.close();
  }
}

// gRPC calls it Trailers-Only. Its clients repeat a call by themselves only after such a reply.
test.each([
  ['of a unary method', 'CrawlerService/GetCrawler', NORMAL, status.NOT_FOUND],
  ['of a stream', 'WatchService/WatchCrawler', NORMAL, status.NOT_FOUND],
  ['of a stranger', 'CrawlerService/GetCrawler', 'nobody', status.UNAUTHENTICATED],
])('a refusal %s is a single block of headers', async (_title, method, token, code) => {
  const request = create(GetCrawlerRequestSchema, { name: 'a, b: c' });
  const message = toBinary(GetCrawlerRequestSchema, request);
  const { headers, isEnd, trailers } = await wireCall(method, message, token);
  expect(isEnd).toBe(true);
  expect(trailers).toBeUndefined();
  expect(headers).toMatchObject({
    ':status': 200,
    'content-type': 'application/grpc+proto',
    'grpc-status': String(code),
    'grpc-status-details-bin': expect.any(String),
    'x-request-id': expect.any(String),
  });
  if (code === status.NOT_FOUND) {
    expect(headers['grpc-message']).toBe('There is no crawler "a, b: c".');
  }
});

test('a reply with a message has its status in trailers', async () => {
  const request = create(GetCrawlerRequestSchema, { name: 'retried' });
  const message = toBinary(GetCrawlerRequestSchema, request);
  const reply = await wireCall('CrawlerService/GetCrawler', message, NORMAL);
  expect(reply.isEnd).toBe(false);
  expect(reply.headers['grpc-status']).toBeUndefined();
  expect(reply.trailers).toMatchObject({ 'grpc-status': '0' });
});

test('a retry policy of grpc-js repeats what is refused for rate', async () => {
  const retryPolicy = {
    maxAttempts: 5,
    initialBackoff: '1s',
    maxBackoff: '4s',
    backoffMultiplier: 2,
    retryableStatusCodes: ['RESOURCE_EXHAUSTED'],
  };
  const serviceConfig = { methodConfig: [{ name: [{}], retryPolicy }] };
  const client = new Client(`127.0.0.1:${app.port}`, credentials.createInsecure(), {
    'grpc.service_config': JSON.stringify(serviceConfig),
  });
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${NORMAL}`);
  const push = (url: string) =>
    new Promise<string>((resolve, reject) => {
      client.makeUnaryRequest(
        '/queuedcrawler.v1.PushService/Push',
        (request) => Buffer.from(toBinary(PushRequestSchema, request)),
        (bytes) => fromBinary(PushResponseSchema, bytes),
        create(PushRequestSchema, { crawler: 'retried', url }),
        metadata,
        (error, reply) => (reply === undefined ? reject(error) : resolve(reply.rid)),
      );
    });
  try {
    const rids = await Promise.all(
      Array.from({ length: 7 }, (_, n) => push(`http://127.0.0.1:9/${n}`)),
    );
    expect(new Set(rids).size).toBe(7);
  } finally {
    client.close();
  }
});
