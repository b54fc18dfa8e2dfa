import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Format } from '../../../gen/queuedcrawler/v1/crawl_parameters_pb.ts';
import {
  type CrawlRequest,
  type PushRequest,
  PushService,
} from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { StorageService } from '../../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { DomainError } from '../../../src/domain/errors.ts';
import { compatAdapters } from '../../../src/rest/compat/compat-adapters.ts';
import { partialMethodsOf, startWire, type Wire } from '../../support/wire.ts';

const pushed: PushRequest[] = [];
const crawled: CrawlRequest[] = [];
let page: { body: Uint8Array; contentType: string };
const facts = {
  cbStatus: 200,
  pcStatus: 200,
  originalStatus: 404,
  url: 'http://t/ü?a=b c\nd',
  pushedUrl: 'http://t/to',
};
const originalHeaders = { set_cookie: 'a=ü', status: '1', 'bad name': 'x' };

const methods = [
  ...partialMethodsOf(PushService, {
    push: async (request) => {
      pushed.push(request);
      return { rid: 'r1' };
    },
    crawl: async (request) => {
      crawled.push(request);
      if (request.async === true) return { rid: 'r2' };
      const stored = request.store === true ? { rid: 'r3', storageUrl: 'http://s/' } : {};
      return { ...facts, ...page, ...stored, originalHeaders };
    },
  }),
  ...partialMethodsOf(StorageService, {
    getResult: async ({ rid }) => {
      if (rid !== 'r1') throw new DomainError('not_found', 'rid_not_found', 'RID not found');
      const body = page.body.byteLength === 0 ? page.body : gzipSync(page.body);
      const storedAt = { seconds: 1_700_000_000n, nanos: 5_000_000 };
      return { result: { ...facts, rid, body, storedAt, originalHeaders } };
    },
    deleteResult: async ({ rid }) => {
      if (rid === 'r1') return { success: 'Gone' };
      if (rid === 'r0') throw new DomainError('unauthenticated', 'invalid_token', 'No such token.');
      throw new DomainError('not_found', 'rid_not_found', 'RID not found');
    },
    listRids: async ({ limit }) => ({ rids: ['b', 'a'], scrollId: limit === 1 ? 'next' : '' }),
  }),
];

let wire: Wire;
beforeAll(async () => {
  wire = await startWire({ methods, adapters: [compatAdapters(() => 'http://service.example')] });
});
afterAll(() => wire.edge.close(0));

async function call(path: string, init: RequestInit = {}) {
  page ??= { body: Buffer.from('<p>ü</p>'), contentType: 'text/html' };
  const response = await fetch(wire.url + path, init);
  const headers = Object.fromEntries(response.headers);
  const bytes = Buffer.from(await response.arrayBuffer());
  return { status: response.status, headers, bytes, text: bytes.toString() };
}

test.each([
  [
    'GET',
    '/?token=t&crawler=c&url=http%3A%2F%2Fx%2F%3Fa%3D1%26b&callback=true&page_wait=5&',
    undefined,
  ],
  ['GET', '?crawler=c&url=http%3A%2F%2Fx%2F%3Fa%3D1%26b&page_wait=5', undefined],
  ['POST', '/?crawler=c&url=http%3A%2F%2Fx%2F%3Fa%3D1%26b&page_wait=5', 'a=1'],
  ['PUT', '/?callback=True&url=http%3A%2F%2Fx%2F%3Fa%3D1%26b&page_wait=5&method=GET', 'a=1'],
])('%s %s is a push', async (method, path, body) => {
  const reply = await call(path, { method, ...(body === undefined ? {} : { body }) });
  expect(reply).toMatchObject({
    status: 200,
    text: '{"rid":"r1"}',
    headers: { rid: 'r1', 'content-type': 'application/json; charset=utf-8' },
  });
  const request = pushed.at(-1);
  expect(request).toMatchObject({
    url: 'http://x/?a=1&b',
    method,
    parameters: { pageWait: 5 },
  });
  expect(request?.body && Buffer.from(request.body).toString()).toBe(body);
  expect(request?.postContentType).toBeUndefined();
});

test.each([
  // Parameter, header, what the target is sent; fetch puts text/plain on strings by itself.
  ['', undefined, undefined],
  ['', 'application/json', 'application/json'],
  ['application/xml', 'application/json', 'application/xml'],
])('content type of a push: %j and %j', async (parameter, header, expected) => {
  const headers = header === undefined ? {} : { 'content-type': header };
  const query = parameter === '' ? '' : `&post_content_type=${parameter}`;
  await call(`/?crawler=c${query}`, { method: 'POST', body: '{}', headers });
  expect(pushed.at(-1)?.postContentType).toBe(expected);
});

test('an inline crawl as a page', async () => {
  page = { body: Buffer.from('<p>ü</p>'), contentType: 'text/html' };
  const reply = await call('/?url=http://t/&callback=false&store=true');
  expect(reply).toMatchObject({ status: 200, text: '<p>ü</p>' });
  expect(reply.headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    url: 'http://t/%C3%BC?a=b%20c%0Ad',
    pushed_url: 'http://t/to',
    original_status: '404',
    pc_status: '200',
    cb_status: '200',
    rid: 'r3',
    storage_url: 'http://s/',
    original_set_cookie: 'a=%C3%BC',
    'content-security-policy': 'sandbox',
  });
  expect(crawled.at(-1)).toMatchObject({ url: 'http://t/', method: 'GET', store: true });
});

test('an inline crawl as JSON, text and bytes', async () => {
  page = { body: Buffer.from('<p>ü</p>'), contentType: 'text/html' };
  const reply = await call('/?url=u&format=json&pretty=true');
  expect(crawled.at(-1)?.parameters?.format).toBe(Format.JSON);
  expect(reply.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(reply.text).toContain('\n  "cb_status": 200,\n');
  expect(JSON.parse(reply.text)).toEqual({
    original_status: 404,
    pc_status: 200,
    cb_status: 200,
    url: facts.url,
    pushed_url: 'http://t/to',
    original_set_cookie: 'a=ü',
    body: '<p>ü</p>',
  });
  page = { body: Uint8Array.of(255, 0), contentType: 'image/png' };
  const binary = JSON.parse((await call('/?url=u&format=json')).text);
  expect(binary).toMatchObject({ body: '/wA=', body_encoding: 'base64' });
  const raw = await call('/?url=u');
  expect([...raw.bytes]).toEqual([255, 0]);
  expect(raw.headers['content-type']).toBe('image/png');
});

test('async answers with the rid only', async () => {
  expect(await call('/?url=u&async=true')).toMatchObject({
    text: '{"rid":"r2"}',
    headers: { rid: 'r2' },
  });
});

test('a stored result, html and json', async () => {
  page = { body: Buffer.from('<p>ü</p>'), contentType: 'text/html' };
  const html = await call('/storage?token=t&rid=r1');
  expect(html).toMatchObject({ status: 200, text: '<p>ü</p>' });
  expect(html.headers).toMatchObject({
    'content-type': 'text/plain',
    'content-encoding': 'gzip',
    stored_at: '2023-11-14T22:13:20.005+00:00',
    original_status: '404',
    pc_status: '200',
    cb_status: '200',
    rid: 'r1',
    url: 'http://t/%C3%BC?a=b%20c%0Ad',
    pushed_url: 'http://t/to',
  });
  const json = await call('/storage?token=t&rid=r1&format=json');
  expect(JSON.parse(json.text)).toEqual({
    original_status: 404,
    pc_status: 200,
    cb_status: 200,
    url: facts.url,
    pushed_url: 'http://t/to',
    rid: 'r1',
    stored_at: '2023-11-14T22:13:20.005+00:00',
    original_set_cookie: 'a=ü',
    body: '<p>ü</p>',
  });
  page = { body: new Uint8Array(0), contentType: '' };
  expect(await call('/storage?rid=r1')).toMatchObject({ status: 200, text: '' });
  expect(JSON.parse((await call('/storage?rid=r1&format=json')).text).body).toBe('');
  const missing = await call('/storage?rid=r2');
  expect([missing.status, JSON.parse(missing.text)]).toEqual([
    404,
    { error: 'RID not found', code: 'rid_not_found', request_id: expect.any(String) },
  ]);
});

test.each([
  ['DELETE', '/storage?rid=r1', 200, { success: 'Gone' }],
  ['DELETE', '/storage?rid=r2', 200, { error: 'Not Found' }],
  ['DELETE', '/storage?rid=r0', 401, { error: 'No such token.', code: 'invalid_token' }],
  ['GET', '/storage/rids', 200, ['b', 'a']],
  ['GET', '/storage/rids?scroll=true&limit=1', 200, { rids: ['b', 'a'], scroll_id: 'next' }],
  ['GET', '/storage/rids?scroll_id=next', 200, { rids: ['b', 'a'], scroll_id: '' }],
])('%s %s', async (method, path, status, body) => {
  const reply = await call(path, { method });
  expect([reply.status, JSON.parse(reply.text)]).toMatchObject([status, body]);
});

test('a wrong parameter of either', async () => {
  for (const path of ['/?url=u&format=pdf', '/?crawler=c&format=pdf']) {
    const reply = await call(path);
    expect(reply.status).toBe(422);
    expect(JSON.parse(reply.text)).toMatchObject({ code: 'invalid_format', field: 'format' });
  }
});
