import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startWire, type Wire } from '../../support/wire.ts';

let wire: Wire;
beforeAll(async () => {
  wire = await startWire({ maxBodyBytes: 1_000 });
});
afterAll(() => wire.edge.close(0));

async function call(method: string, path: string, init: RequestInit = {}) {
  const response = await fetch(wire.url + path, { method, ...init });
  const text = await response.text();
  const type = response.headers.get('content-type');
  return {
    status: response.status,
    headers: response.headers,
    type,
    text,
    json:
      type?.startsWith('application/json') === true && text !== '' ? JSON.parse(text) : undefined,
  };
}

test('a reply in the words of REST', async () => {
  const body = JSON.stringify({ name: 'n', callback_url: 'http://h/', unknown: { a: 1 } });
  const reply = await call('POST', '/crawler/to%2Fken', {
    body,
    headers: { authorization: 'bearer abc', 'x-request-id': 'r' },
  });
  expect(reply).toMatchObject({ status: 200, type: 'application/json; charset=utf-8' });
  expect(reply.json).toEqual({
    crawler: {
      name: 'n',
      delivery: '',
      callback_url: 'http://h/',
      token_type: 'normal',
      concurrency: 20,
      status: '',
      max_proxy_megabytes_a_day: 0,
      max_retries: 0,
      retry_window_hours: 0,
      group_by_domain: false,
      notify_after_minutes: 0,
      notify_batches: false,
      attention: [],
      etag: '',
      processes: [],
      created_at: '1970-01-01T00:00:01Z',
    },
    created: true,
  });
  expect(wire.seen.calls.at(-1)).toMatchObject({ bearer: 'abc', requestId: 'r', protocol: 'rest' });
});

test.each([
  ['lowerCamelCase', 'POST', '/crawler/t', '{"name":"x","callbackUrl":"u"}', 'u'],
  [
    'the body wins over the query',
    'POST',
    '/crawler/t?callback_url=q',
    '{"callback_url":"b"}',
    'b',
  ],
  ['the query fills in', 'POST', '/crawler/t?callback_url=q&', '{}', 'q'],
  ['a plus is a space', 'POST', '/crawler/t?callback_url=a+b%2B', undefined, 'a b+'],
  ['broken escapes are text', 'POST', '/crawler/t?callback_url=%zz%', undefined, '%zz%'],
])('%s', async (_, method, path, body, expected) => {
  const reply = await call(method, path, body === undefined ? {} : { body });
  expect(reply.json?.crawler.callback_url).toBe(expected);
});

test.each([
  ['GET', '/crawler/t/n', { name: 'n' }],
  // A whole 64-bit integer, as a number.
  ['POST', '/crawler/t/n/purge', '{"purged":1152921504606846976}'],
  ['GET', '/storage/total_count?token=t', '{"totalCount":7}'],
  ['GET', '/?url=u&crawler=c', { rid: 'u' }],
  ['GET', '?url=u', { rid: 'u' }],
])('%s %s', async (method, path, expected) => {
  const reply = await call(method, path);
  expect(reply.status).toBe(200);
  if (typeof expected === 'string') expect(reply.text).toBe(expected);
  else expect(reply.json).toMatchObject(expected);
});

test('a bare array', async () => {
  const body = JSON.stringify({ rids: ['a', 'b'] });
  const reply = await call('POST', '/storage/bulk?token=t', { body });
  expect(reply.json).toMatchObject([{ rid: 'a', body: '', original_headers: {} }, { rid: 'b' }]);
});

describe('errors', () => {
  test.each([
    ['invalid', 422, { error: 'name: 100% "ü", not a/b.', code: 'invalid_name', field: 'name' }],
    ['unauthenticated', 401, { code: 'invalid_token' }],
    ['forbidden', 403, { code: 'wrong_token_type' }],
    ['not_found', 404, { error: 'No such crawler.', code: 'crawler_not_found' }],
    ['conflict', 409, { code: 'crawler_exists' }],
    ['failed_precondition', 409, { code: 'mode_fixed' }],
    ['exhausted', 429, { code: 'rate_limited', limit: 30, crawler: 'c' }],
    ['unavailable', 503, { code: 'database_unavailable' }],
    ['internal', 500, { error: 'Broken.', code: 'broken' }],
    ['unknown', 500, { error: 'An internal error occurred.', code: 'internal' }],
  ])('%s is %i', async (kind, status, body) => {
    const reply = await call('GET', `/crawler/t/${kind}`);
    expect(reply).toMatchObject({ status, type: 'application/json; charset=utf-8' });
    expect(reply.json).toMatchObject(body);
    const retryAfter = { exhausted: '2', unavailable: '1' }[kind] ?? null;
    expect(reply.headers.get('retry-after')).toBe(retryAfter);
    expect(JSON.stringify(wire.logger.lines)).not.toContain('/crawler/t');
  });

  test('a method that is not in the table is 501', async () => {
    const reply = await call('POST', '/crawler/t/n/pause');
    expect(reply).toMatchObject({ status: 501, json: { code: 'unimplemented' } });
  });

  test.each([
    // What, path, body, field, expected.
    ['number', '/crawler/t', '{"concurrency":"many"}', 'concurrency', 'a whole number'],
    ['fraction', '/crawler/t', '{"concurrency":1.5}', 'concurrency', 'a whole number'],
    ['range', '/crawler/t', '{"concurrency":3000000000}', 'concurrency', 'a whole number'],
    ['string', '/crawler/t', '{"name":1}', 'name', 'a string'],
    [
      'bool',
      '/crawler/t',
      '{"politeness":{"robots_txt":1}}',
      'politeness.robots_txt',
      'true or false',
    ],
    ['object', '/crawler/t', '{"politeness":[]}', 'politeness', 'an object'],
    ['enum', '/crawler/t', '{"delivery":"post"}', 'delivery', 'one of webhook, storage'],
    ['array', '/storage/bulk', '{"rids":"a"}', 'rids', 'an array'],
    ['element', '/storage/bulk', '{"rids":["a",2]}', 'rids[1]', 'a string'],
    [
      'nested',
      '/crawler/t',
      '{"politeness":{"hosts":[{"pattern":5}]}}',
      'politeness.hosts[0].pattern',
      'a string',
    ],
    ['query number', '/?page_wait=1e3', 'x', 'page_wait', 'a whole number'],
    ['query bool', '/?scroll=yes', 'x', 'scroll', 'true or false'],
    ['query enum', '/?format=pdf', 'x', 'format', 'one of html, json, md'],
    [
      'query nested',
      '/crawler/t?politeness.delay_ms=x',
      '{}',
      'politeness.delay_ms',
      'a whole number',
    ],
  ])('wrong %s is 422', async (_, path, body, field, expected) => {
    const reply = await call('POST', path, { body });
    expect(reply.status).toBe(422);
    const leaf = field
      .replace(/\[\d+\]/g, '')
      .split('.')
      .at(-1);
    expect(reply.json).toMatchObject({
      error: `${field} must be ${expected}.`,
      code: `invalid_${leaf}`,
      field,
    });
    if (expected.startsWith('one of')) {
      expect(reply.json.allowed).toEqual(expected.slice('one of '.length).split(', '));
    }
  });

  test.each(['{', 'name=x', '[]', '"a"', 'null', '\u0000'])('%j is 400', async (body) => {
    const reply = await call('POST', '/crawler/t', { body });
    expect(reply).toMatchObject({ status: 400, json: { code: 'invalid_json' } });
  });

  test.each(['/nothing', '/crawler', '/crawler/', '/crawler/t/n/x/y', '/storage/rids/x'])(
    '%s is 404',
    async (path) => {
      expect(await call('GET', path)).toMatchObject({ status: 404, json: { code: 'not_found' } });
    },
  );

  test.each([
    ['DELETE', '/', 'GET, POST, PUT'],
    ['HEAD', '/', 'GET, POST, PUT'],
    ['DELETE', '/crawler/t/n', 'GET, HEAD, PUT'],
    ['GET', '/crawler/t/n/pause', 'POST'],
    ['PATCH', '/storage', 'DELETE, GET, HEAD'],
  ])('%s %s is 405', async (method, path, allow) => {
    const reply = await call(method, path);
    expect(reply.status).toBe(405);
    if (method !== 'HEAD') expect(reply.json).toMatchObject({ code: 'method_not_allowed' });
    expect(reply.headers.get('allow')).toBe(allow);
  });
});

describe('bodies', () => {
  test('gzip', async () => {
    const body = gzipSync('{"name":"z"}');
    const headers = { 'content-encoding': 'gzip' };
    const reply = await call('POST', '/crawler/t', { body, headers });
    expect(reply.json?.crawler.name).toBe('z');
    expect(await call('POST', '/crawler/t', { body: 'x', headers })).toMatchObject({ status: 400 });
  });

  // RFC 9110: names of codings have no case (8.4.1), and x-gzip is gzip (8.4.1.3).
  test.each(['GZIP', 'x-gzip', 'X-Gzip'])('gzip, named %s', async (coding) => {
    const headers = { 'content-encoding': coding };
    const reply = await call('POST', '/crawler/t', { body: gzipSync('{"name":"z"}'), headers });
    expect(reply.json?.crawler.name).toBe('z');
  });

  test('a body that says it is not encoded', async () => {
    const headers = { 'content-encoding': 'Identity' };
    const reply = await call('POST', '/crawler/t', { body: '{"name":"z"}', headers });
    expect(reply.json?.crawler.name).toBe('z');
  });

  test('a bomb is 413, another encoding 415', async () => {
    const body = gzipSync(Buffer.alloc(1_000_000));
    const gzip = { 'content-encoding': 'gzip' };
    expect(await call('POST', '/crawler/t', { body, headers: gzip })).toMatchObject({
      status: 413,
      json: { code: 'body_too_large', limit: 1_000 },
    });
    const headers = { 'content-encoding': 'br' };
    expect(await call('POST', '/crawler/t', { body, headers })).toMatchObject({ status: 415 });
  });

  test.each([
    ['with a length', { 'content-length': '5000' }],
    ['chunked', { 'transfer-encoding': 'chunked' }],
  ])('too long %s is 413, and the connection stays open', async (_, headers) => {
    const socket = connect(wire.port, '127.0.0.1');
    const request = (path: string, more: object, body: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        const sent = httpRequest(
          { path, method: 'POST', headers: { ...more }, createConnection: () => socket },
          (response) => response.resume().on('end', () => resolve(response.statusCode)),
        );
        sent.on('error', reject).setHeader('connection', 'keep-alive');
        sent.end(body);
      });
    try {
      expect(await request('/crawler/t', headers, 'x'.repeat(5_000))).toBe(413);
      expect(await request('/crawler/t', {}, '{}')).toBe(200);
    } finally {
      socket.destroy();
    }
  });
});

test('HEAD is GET without the body', async () => {
  const reply = await call('HEAD', '/storage/total_count');
  expect(reply).toMatchObject({ status: 200, text: '' });
  expect(reply.headers.get('content-length')).toBe('16');
});

test('pages of another origin may call', async () => {
  const preflight = await call('OPTIONS', '/crawler/t', {
    headers: { origin: 'http://c', 'access-control-request-headers': 'authorization,x' },
  });
  expect(preflight.status).toBe(204);
  expect(preflight.headers.get('access-control-allow-origin')).toBe('*');
  expect(preflight.headers.get('access-control-allow-headers')).toBe('authorization,x');
  const reply = await call('GET', '/crawler/t', { headers: { origin: 'http://c' } });
  expect(reply.headers.get('access-control-allow-origin')).toBe('*');
  expect((await call('GET', '/crawler/t')).headers.get('access-control-allow-origin')).toBeNull();
});

test('a client that goes away aborts the call', async () => {
  const controller = new AbortController();
  const sent = fetch(`${wire.url}/crawler/t/wait`, { signal: controller.signal });
  const call = await wire.seen.waiting.promise;
  const aborted = new Promise((resolve) => call.signal.addEventListener('abort', resolve));
  controller.abort();
  await expect(sent).rejects.toThrow('aborted');
  await aborted;
});
