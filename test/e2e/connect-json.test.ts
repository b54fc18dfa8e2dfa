import { connect } from 'node:http2';
import { buffer } from 'node:stream/consumers';
import { create } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import { Code, createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { expect, test } from 'vitest';
import {
  ActivityService,
  type JobState,
  MatchAction,
} from '../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { type Format } from '../../gen/queuedcrawler/v1/crawl_parameters_pb.ts';
import {
  CrawlerService,
  type DeliveryMode,
} from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { PushService } from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import { StorageService } from '../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { NORMAL } from '../support/app.ts';
import { shareApp } from '../support/shared-app.ts';

const app = shareApp();

/** Calls a method as programs without a generated client do. */
async function callJson(method: string, type: string, body: string | Uint8Array<ArrayBuffer>) {
  const response = await fetch(`${app().url}/queuedcrawler.v1.${method}`, {
    method: 'POST',
    headers: { 'content-type': type, authorization: `Bearer ${NORMAL}` },
    body,
  });
  return { status: response.status, text: await response.text() };
}

function unary(method: string, message: object) {
  return callJson(method, 'application/json', JSON.stringify(message));
}

/** A message after the five bytes of its frame. */
function framed(message: object): Buffer<ArrayBuffer> {
  const data = Buffer.from(JSON.stringify(message));
  const frame = Buffer.concat([Buffer.alloc(5), data]);
  frame.writeUInt32BE(data.byteLength, 1);
  return frame;
}

/** The one message of a stream. */
function streamed(method: string, message: object) {
  return callJson(method, 'application/connect+json', framed(message));
}

/** Sends the messages of a stream in both directions; returns those of the reply and its end. */
async function pushStreamed(messages: readonly object[]) {
  const client = connect(app().url);
  const stream = client.request({
    ':method': 'POST',
    ':path': '/queuedcrawler.v1.PushService/PushStream',
    'content-type': 'application/connect+json',
    authorization: `Bearer ${NORMAL}`,
  });
  stream.end(Buffer.concat(messages.map(framed)));
  const reply = await buffer(stream);
  client.close();
  const replies = [];
  for (let at = 0; at < reply.byteLength; ) {
    const end = at + 5 + reply.readUInt32BE(at + 1);
    replies.push(JSON.parse(reply.subarray(at + 5, end).toString()));
    at = end;
  }
  return replies;
}

test.each([
  ['a member', { name: 'shop', concurency: 3 }, 'concurency'],
  ['a member of a member', { name: 'shop', politeness: { dealyMs: 200 } }, 'dealyMs'],
  ['a value of an enum', { name: 'shop', delivery: 'webhook' }, 'DELIVERY_MODE_WEBHOOK'],
])('%s that is not known is refused, and nothing is created', async (_, message, named) => {
  const { status, text } = await unary('CrawlerService/CreateCrawler', message);
  expect([status, text]).toEqual([400, expect.stringContaining(named)]);
  expect(JSON.parse(text)).toMatchObject({ code: 'invalid_argument' });
  expect((await app().rest('GET', `/crawler/${NORMAL}/shop`)).status).toBe(404);
});

test('an unknown condition of a filter is refused, and nothing is removed', async () => {
  const path = `/crawler/${NORMAL}`;
  await app().rest('POST', path, { name: 'filtered' });
  const url = encodeURIComponent('http://127.0.0.1:9/');
  const push = `token=${NORMAL}&crawler=filtered&callback=true&delay=3600&url=${url}`;
  expect((await app().rest('GET', `/?${push}`)).status).toBe(200);
  const { text } = await streamed('ActivityService/ActOnMatches', {
    name: 'filtered',
    action: 'MATCH_ACTION_REMOVE_JOBS',
    filter: { reasn: 'timeout' },
  });
  expect(text).toMatch(/"invalid_argument".*reasn/);
  const { json } = await app().rest('GET', `${path}/filtered/jobs?state=scheduled`);
  expect(json).toMatchObject({ jobs: [{}] });
});

test('a push may have members of its own', async () => {
  await app().rest('POST', `/crawler/${NORMAL}`, { name: 'lenient' });
  const item = { url: 'http://127.0.0.1:9/', sku: 5, parameters: { post_type: 'json' } };
  const { text } = await unary('PushService/PushBatch', { crawler: 'lenient', items: [item] });
  expect(JSON.parse(text)).toEqual({ results: [{ rid: expect.any(String) }] });
});

/** The reason and the field of a refusal. */
function refusalOf(text: string) {
  const { details } = JSON.parse(text);
  const debug = (type: string) =>
    details.find((detail: { type: string }) => detail.type === type)?.debug;
  return {
    reason: debug('google.rpc.ErrorInfo')?.reason,
    field: debug('google.rpc.BadRequest')?.fieldViolations[0].field,
  };
}

test('a value of a push that its field does not have is refused, with its field', async () => {
  await app().rest('POST', `/crawler/${NORMAL}`, { name: 'spelling' });
  const parameters = { format: 'json' };
  const push = { crawler: 'spelling', url: 'http://127.0.0.1:9/', parameters };
  const { status, text } = await unary('PushService/Push', push);
  expect(status).toBe(400);
  expect(refusalOf(text)).toEqual({ reason: 'invalid_format', field: 'parameters.format' });
  expect(JSON.parse(text).message).toBe(
    'parameters.format must be one of FORMAT_HTML, FORMAT_JSON, FORMAT_MD.',
  );
});

const ITEMS = [
  { url: 'http://127.0.0.1:9/1', parameters: { format: 'json' } },
  { url: 'http://127.0.0.1:9/2', parameters: { format: 'FORMAT_JSON' } },
  { url: 'http://127.0.0.1:9/3', priority: 'high' },
  'http://127.0.0.1:9/4',
];
const OUTCOMES = [
  { error: { code: 'invalid_format', field: 'format', message: expect.any(String) } },
  { rid: expect.any(String) },
  { error: { code: 'invalid_priority', field: 'priority', message: expect.any(String) } },
  { error: { code: 'invalid_items', field: 'items', message: expect.any(String) } },
];

test('items of a batch that cannot be read are refused by themselves', async () => {
  await app().rest('POST', `/crawler/${NORMAL}`, { name: 'apart' });
  const { text } = await unary('PushService/PushBatch', { crawler: 'apart', items: ITEMS });
  const { results } = JSON.parse(text);
  expect(results).toEqual(OUTCOMES);
  expect(results[0].error.message).toBe(
    'items[0].parameters.format must be one of FORMAT_HTML, FORMAT_JSON, FORMAT_MD.',
  );
});

test('items of a stream that cannot be read are refused by themselves', async () => {
  await app().rest('POST', `/crawler/${NORMAL}`, { name: 'stream' });
  const good = { crawler: 'stream', items: ITEMS.slice(1, 2) };
  const replies = await pushStreamed([good, { items: ITEMS, sequence: 7 }, good]);
  expect(replies).toEqual([
    { results: [OUTCOMES[1]] },
    { results: OUTCOMES, sequence: '7' },
    { results: [OUTCOMES[1]] },
    {},
  ]);
});

test.each([
  ['a wrong type', { name: 5 }, 'invalid_name', 'name', 'a string'],
  ['a fraction', { name: 'a', concurrency: 1.5 }, 'invalid_concurrency', 'concurrency', 'a whole'],
  ['words', { name: 'a', maxRetries: 'ten' }, 'invalid_max_retries', 'max_retries', 'a whole'],
  ['2^53', { name: 'a', concurrency: 2 ** 53 }, 'invalid_concurrency', 'concurrency', 'a whole'],
  ['an enum', { name: 'a', delivery: 99 }, 'invalid_delivery', 'delivery', 'one of DELIVERY_MODE_'],
  ['a list', { name: 'a', politeness: [] }, 'invalid_politeness', 'politeness', 'an object'],
  [
    'an element',
    { name: 'a', politeness: { hosts: [{ pattern: 'b', paused: 'no' }] } },
    'invalid_paused',
    'politeness.hosts[0].paused',
    'true or false',
  ],
  ['a member', { name: 'a', concurency: 3 }, 'unknown_member', 'concurency', 'no member'],
  ['a name', { max_retries: 1, maxRetries: 2 }, 'invalid_max_retries', 'max_retries', 'given once'],
])(
  '%s that is wrong is refused with a reason and its field',
  async (_, body, reason, field, text) => {
    const reply = await unary('CrawlerService/CreateCrawler', body);
    expect(reply.status).toBe(400);
    expect(refusalOf(reply.text)).toEqual({ reason, field });
    expect(JSON.parse(reply.text).message).toContain(text);
  },
);

test.each(['{"name":', '[]', '"shop"', 'null', 'name=shop'])(
  'a body that is no object of JSON is refused with a reason: %s',
  async (body) => {
    const { status, text } = await callJson(
      'CrawlerService/CreateCrawler',
      'application/json',
      body,
    );
    expect([status, refusalOf(text).reason]).toEqual([400, 'malformed_message']);
  },
);

test('text that is not UTF-8, and an object with a member twice, are refused', async () => {
  await app().rest('POST', `/crawler/${NORMAL}`, { name: 'bytes' });
  const push = JSON.stringify({ crawler: 'bytes', url: 'http://127.0.0.1:9/\u00e9' });
  const batch = JSON.stringify({ items: [{ url: 'http://127.0.0.1:9/\u00e9' }] });
  const twice = (text: string) => Buffer.from(text.replace('{"url', '{"url":"","url'));
  for (const [how, broken] of [
    ['it is not UTF-8', (text: string) => Buffer.from(text, 'latin1')],
    ['an object has a member twice', twice],
  ] as const) {
    const error = `The message is malformed: ${how}.`;
    const item = push.replace('"url', '"parameters":{"url":1},"url');
    const connect = await callJson('PushService/Push', 'application/json', broken(item));
    expect([connect.status, JSON.parse(connect.text).message]).toEqual([400, error]);
    expect(refusalOf(connect.text).reason).toBe('malformed_message');
    const rest = await fetch(`${app().url}/crawler/${NORMAL}/bytes/push_batch`, {
      method: 'POST',
      body: broken(batch),
    });
    expect([rest.status, await rest.json()]).toMatchObject([400, { error }]);
  }
  expect((await app().rest('GET', `/crawler/${NORMAL}/bytes`)).json.activity.pushed).toBe(0);
});

test('a number that an enum does not have is refused in binary messages, too', async () => {
  const { rest, url: baseUrl } = app();
  const path = `/crawler/${NORMAL}`;
  await rest('POST', path, { name: 'numbers' });
  await rest('POST', `${path}/numbers/pause`);
  await rest('POST', `${path}/numbers/push_batch`, { items: [{ url: 'http://127.0.0.1:9/' }] });
  const transport = createConnectTransport({
    baseUrl,
    httpVersion: '1.1',
    interceptors: [
      (next) => (request) => {
        request.header.set('authorization', `Bearer ${NORMAL}`);
        return next(request);
      },
    ],
  });
  const crawlers = createClient(CrawlerService, transport);
  await expect(
    crawlers.createCrawler({ name: 'other', delivery: 99 as DeliveryMode }),
  ).rejects.toMatchObject({
    code: Code.InvalidArgument,
    rawMessage: 'delivery must be one of DELIVERY_MODE_WEBHOOK, DELIVERY_MODE_STORAGE.',
  });
  const action = MatchAction.REMOVE_JOBS;
  const acted = createClient(ActivityService, transport).actOnMatches({
    name: 'numbers',
    action,
    jobState: 99 as JobState,
  });
  await expect(acted[Symbol.asyncIterator]().next()).rejects.toMatchObject({
    code: Code.InvalidArgument,
    rawMessage: expect.stringContaining('job_state must be one of JOB_STATE_WAITING'),
  });
  expect((await rest('GET', `${path}/numbers`)).json.activity.waiting).toBe(1);
  expect((await rest('GET', `${path}/other`)).status).toBe(404);
  const farAway = create(TimestampSchema, { seconds: 2n ** 62n });
  const { results } = await createClient(PushService, transport).pushBatch({
    crawler: 'numbers',
    items: [
      { url: 'http://127.0.0.1:9/1', notBefore: farAway },
      { url: 'http://127.0.0.1:9/2', parameters: { format: 99 as Format } },
      { url: 'http://127.0.0.1:9/3' },
    ],
  });
  const codes = results.map(({ error }) => error?.code);
  expect(codes).toEqual(['invalid_not_before', 'invalid_format', undefined]);
});

test('fields have their proto names or those of JSON', async () => {
  await app().rest('POST', `/crawler/${NORMAL}`, { name: 'names' });
  for (const minutes of [{ queue_timeout: 5 }, { queueTimeout: 5 }]) {
    const message = {
      crawler: 'names',
      url: 'http://127.0.0.1:9/',
      parameters: { format: 'FORMAT_JSON' },
      ...minutes,
    };
    expect((await unary('PushService/Push', message)).status).toBe(200);
  }
});

test.each([true, false])(
  'a method that is not there is unimplemented (binary: %j)',
  async (binary) => {
    const transport = createConnectTransport({
      baseUrl: app().url,
      httpVersion: '1.1',
      useBinaryFormat: binary,
    });
    const { countResults, streamResults } = StorageService.method;
    const newer = { ...countResults, name: 'NewerCount' };
    const counted = transport.unary(newer, undefined, undefined, undefined, {});
    await expect(counted).rejects.toMatchObject({
      code: Code.Unimplemented,
      rawMessage: 'There is no method queuedcrawler.v1.StorageService/NewerCount.',
    });
    const requests = (async function* () {
      yield {};
    })();
    const streaming = { ...streamResults, name: 'NewerStream' };
    const opened = transport.stream(streaming, undefined, undefined, undefined, requests);
    await expect(opened).rejects.toMatchObject({ code: Code.Unimplemented });
  },
);
