import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { HealthCheckResponseSchema } from '../../../gen/health/v1/health_pb.ts';
import {
  GetCrawlerRequestSchema,
  GetCrawlerResponseSchema,
} from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { NORMAL, startApp, type TestApp } from '../../support/app.ts';
import { createCrawler } from '../../support/crawler-client.ts';

// gRPC-Web in base64, which Google's generated clients for browsers use unless told otherwise.

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app[Symbol.asyncDispose]());

const GET_CRAWLER = 'queuedcrawler.v1.CrawlerService/GetCrawler';

function framed(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.byteLength, 1);
  return Buffer.concat([head, message]);
}

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

const requestFor = (name: string): Buffer =>
  framed(toBinary(GetCrawlerRequestSchema, create(GetCrawlerRequestSchema, { name })));

const post = (path: string, body: string, signal?: AbortSignal): Promise<Response> =>
  fetch(`${app.url}/${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/grpc-web-text+proto',
      'x-grpc-web': '1',
      authorization: `Bearer ${NORMAL}`,
    },
    body,
    ...(signal === undefined ? {} : { signal }),
  });

/** The frames of base64 text, whose padding may stand after each piece. */
function framesOf(text: string): { readonly flags: number; readonly data: Buffer }[] {
  const runs = text.match(/[^=]+=*/g) ?? [];
  let bytes = Buffer.concat(runs.map((run) => Buffer.from(run, 'base64')));
  const frames = [];
  while (bytes.byteLength > 0) {
    const end = 5 + bytes.readUInt32BE(1);
    frames.push({ flags: bytes[0] ?? 0, data: bytes.subarray(5, end) });
    bytes = bytes.subarray(end);
  }
  return frames;
}

test('a call is answered in base64, message and trailers', async () => {
  await createCrawler(app, 'shop');
  const request = requestFor('shop');
  const whole = base64(request);
  // A client may end its pieces anywhere.
  const padded = base64(request.subarray(0, 4)) + base64(request.subarray(4));
  for (const body of [whole, padded]) {
    const reply = await post(GET_CRAWLER, body);
    expect([reply.status, reply.headers.get('content-type')]).toEqual([
      200,
      'application/grpc-web-text+proto',
    ]);
    const [message, trailers] = framesOf(await reply.text());
    expect(fromBinary(GetCrawlerResponseSchema, message?.data ?? new Uint8Array())).toMatchObject({
      crawler: { name: 'shop' },
    });
    expect(trailers?.flags).toBe(0x80);
    expect(trailers?.data.toString()).toMatch(/grpc-status: 0\r\n/i);
  }
});

test('errors come in trailers, also for what is not base64', async () => {
  const statusOf = async (body: string) => {
    const reply = await post(GET_CRAWLER, body);
    const text = await reply.text();
    const trailers =
      framesOf(text)
        .find(({ flags }) => flags === 0x80)
        ?.data.toString() ?? '';
    return reply.headers.get('grpc-status') ?? /grpc-status: (\d+)/i.exec(trailers)?.[1];
  };
  expect(await statusOf(base64(requestFor('nobody')))).toBe('5');
  expect(await statusOf('!!!!')).toBe('3');
  expect(await statusOf(`${base64(requestFor('shop')).replaceAll('=', '')}A`)).toBe('3');
});

test('a stream is readable message by message', async () => {
  const closing = new AbortController();
  const reply = await post(
    'grpc.health.v1.Health/Watch',
    base64(framed(Buffer.alloc(0))),
    closing.signal,
  );
  const reader = reply.body?.getReader();
  const { value } = (await reader?.read()) ?? {};
  const [message] = framesOf(Buffer.from(value ?? []).toString());
  expect(fromBinary(HealthCheckResponseSchema, message?.data ?? new Uint8Array()).status).toBe(1);
  closing.abort();
  await reader?.closed.catch(() => undefined);
});
