import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { JAVASCRIPT, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';

test('an empty callback_url never makes a storage crawler', async () => {
  await using app = await startApp();
  for (const callback_url of ['', ' ']) {
    const made = await app.rest('POST', `/crawler/${NORMAL}`, { name: 'shop', callback_url });
    expect([made.status, made.json.field]).toEqual([422, 'callback_url']);
  }
  expect((await app.rest('GET', `/crawler/${NORMAL}/shop`)).status).toBe(404);
});

test('an update in which nothing can take effect is refused, and says why', async () => {
  await using app = await startApp();
  const hook = 'http://127.0.0.1:3000/hook';
  const crawler = await createCrawler(app, 'shop', { callback_url: hook });
  for (const body of [
    {},
    { name: 'other' },
    { status: 'paused' },
    { colour: 'blue', CONCURRENCY: 3 },
    { callback_url: null },
    { delivery: 'webhook', token_type: 'normal' },
  ]) {
    const reply = await app.rest('PUT', crawler.path, body);
    expect([body, reply.status, reply.json.code]).toEqual([body, 422, 'nothing_to_change']);
    expect(reply.json.error).toMatch(/status is changed by pause and unpause; name/);
  }
  const empty = await app.rest('PUT', crawler.path, { callback_url: '' });
  expect([empty.status, empty.json.field]).toEqual([422, 'callback_url']);
  const whole = await app.rest('PUT', crawler.path, {
    ...(await crawler.details()),
    concurrency: 3,
  });
  expect([whole.status, whole.json]).toMatchObject([200, { concurrency: 3, callback_url: hook }]);
});

describe('a callback_url', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startApp({ env: { NETWORK_ALLOW: '127.0.0.1:3000' } });
  });
  afterAll(() => app[Symbol.asyncDispose]());

  test.each([
    'http://10.0.0.1/hook',
    'http://192.168.1.1:8080/',
    'http://169.254.169.254/latest',
    'http://0x7f.2/',
    'http://[::1]/',
    'http://[::ffff:10.0.0.1]/',
    'http://localhost:3001/',
    'http://hook.localhost./',
    'http://example.com:0/',
    'ftp://example.com/',
    'http://example.com:99999/',
    'example.com/hook',
  ])('%s can never be called, so it is refused', async (callback_url) => {
    const made = await app.rest('POST', `/crawler/${NORMAL}`, { name: 'bad', callback_url });
    expect([made.status, made.json.field]).toEqual([422, 'callback_url']);
    const crawler = await createCrawler(app, 'good', {
      callback_url: 'http://127.0.0.1:3000/hook',
    });
    const changed = await app.rest('PUT', crawler.path, { callback_url });
    expect([changed.status, changed.json.field]).toEqual([422, 'callback_url']);
  });
});

test('what may be callable is taken: names, public addresses, what the operator allows', async () => {
  await using app = await startApp({ env: { NETWORK_ALLOW: 'localhost:3000,10.0.0.0/8' } });
  for (const [index, callback_url] of [
    'https://hooks.example.com/in',
    'http://93.184.216.34:8080/',
    'http://localhost:3000/',
    'http://10.1.2.3/',
  ].entries()) {
    await createCrawler(app, `c${index}`, { callback_url });
  }
});

test('a refusal says what is missing, what is full, and where a token goes', async () => {
  await using app = await startApp({ env: { CRAWLER_QUEUE_LIMIT: '1' } });
  const nameless = await app.rest('POST', `/crawler/${NORMAL}`, {});
  expect(nameless.json).toMatchObject({
    error: 'The name is missing.',
    code: 'missing_name',
    field: 'name',
  });
  for (const path of ['/storage?rid=x', '/?token=wrong&url=http://a.example/']) {
    const { status, json } = await app.rest('GET', path);
    expect([status, json.error]).toEqual([401, expect.stringContaining('?token=TOKEN')]);
    expect(json.error).toContain('Authorization: Bearer TOKEN');
  }
  const crawler = await createCrawler(app, 'shop');
  await crawler.post('pause');
  await crawler.push('http://a.example/');
  const full = await crawler.tryPush('http://a.example/');
  expect([full.status, full.json.error]).toEqual([429, expect.stringContaining('is full')]);
  const day = await app.rest('GET', `/crawler/${NORMAL}/stats?history_from=2026-02-30`);
  expect([day.status, day.json.error]).toEqual([422, 'history_from: there is no day 2026-02-30.']);
});

test('an unknown crawler is named by the field of the request that named it', async () => {
  await using app = await startApp();
  const details = await app.rest('GET', `/crawler/${NORMAL}/nobody`);
  expect(details.json).toMatchObject({ code: 'crawler_not_found', field: 'name' });
  const push = await app.rest('GET', `/?token=${NORMAL}&crawler=nobody&url=http://a.example/`);
  expect(push.json).toMatchObject({ code: 'crawler_not_found', field: 'crawler' });
});

test.each([
  ['token', ''],
  ['format', 'format=html&format=json'],
  ['callback', 'callback=false'],
  ['crawler', 'crawler=other'],
  ['device', 'device=mobile&device=tablet'],
])('a push with two values of %s is refused, and nothing is queued', async (name, query) => {
  await using app = await startApp();
  const crawler = await createCrawler(app, 'shop');
  const given = name === 'token' ? `token=${JAVASCRIPT}` : query;
  const url = encodeURIComponent('http://127.0.0.1:9/');
  const reply = await app.rest(
    'GET',
    `/?${given}&token=${NORMAL}&crawler=shop&callback=true&url=${url}`,
  );
  expect([reply.status, reply.json]).toEqual([
    422,
    expect.objectContaining({ code: `invalid_${name}`, field: name }),
  ]);
  expect(reply.json.error).toBe(`${name} must be given once.`);
  expect((await crawler.details()).activity.pushed).toBe(0);
});

test.each(['', '&crawler=none'])(
  'a URL as `callback` is told where it belongs, in a call with the query "%s"',
  async (query) => {
    await using app = await startApp();
    const url = encodeURIComponent('https://example.com/');
    const path = `/?token=${NORMAL}${query}&callback=${url}&url=${url}`;
    expect(await app.rest('GET', path)).toMatchObject({
      status: 422,
      json: {
        code: 'invalid_callback',
        field: 'callback',
        error: expect.stringContaining('callback_url of the crawler'),
      },
    });
  },
);

test('a crawl in the call with callback=true before callback=false is refused', async () => {
  await using app = await startApp();
  const url = encodeURIComponent('http://127.0.0.1:9/');
  const reply = await app.rest('GET', `/?token=${NORMAL}&callback=true&callback=false&url=${url}`);
  expect([reply.status, reply.json.field]).toEqual([422, 'callback']);
});

test('a parameter may be repeated with its value, in a list, and when it is not known', async () => {
  await using app = await startApp();
  await createCrawler(app, 'shop');
  const url = encodeURIComponent('http://127.0.0.1:9/');
  const push = `token=${NORMAL}&crawler=shop&callback=true&url=${url}&format=json`;
  const pushed = await app.rest('GET', `/?${push}&format=json&sku=1&sku=2&delay=3600`);
  expect([pushed.status, Object.keys(pushed.json)]).toEqual([200, ['rid']]);
  const path = `/crawler/${NORMAL}/shop/jobs`;
  expect((await app.rest('GET', `${path}?page_size=1&page_size=2`)).json).toMatchObject({
    code: 'invalid_page_size',
    field: 'page_size',
  });
});

test('settings of deliveries are refused for a storage crawler, unless they are off', async () => {
  await using app = await startApp();
  const path = `/crawler/${NORMAL}`;
  const off = { delivery_concurrency: 0, deliver_batch: { max_results: 0, max_ms: 500 } };
  for (const [field, value] of [
    ['delivery_concurrency', 5],
    ['deliver_batch', { max_results: 10 }],
  ] as const) {
    const body = { ...off, name: 'kept', [field]: value };
    const refusal = {
      error: `Storage delivery takes no ${field}.`,
      code: `invalid_${field}`,
      field,
    };
    expect(await app.rest('POST', path, body)).toMatchObject({ status: 422, json: refusal });
    expect((await app.rest('GET', `${path}/kept`)).status).toBe(404);
    expect((await app.rest('POST', path, { ...off, name: 'kept' })).status).toBe(200);
    const changed = await app.rest('PUT', `${path}/kept`, { [field]: value });
    expect(changed).toMatchObject({ status: 422, json: refusal });
    expect((await app.rest('POST', path, { ...off, name: 'kept' })).status).toBe(200);
    await app.rest('POST', `${path}/kept/delete`);
  }
});

const LATER = { from: '2026-02-01T00:00:00Z', to: '2026-01-01T00:00:00Z' };

test.each([
  ['POST', '/replay', LATER, 'from'],
  ['POST', '/act', { action: 'replay', filter: LATER }, 'filter.from'],
  ['POST', '/act', { action: 'remove_jobs', filter: LATER }, 'filter.from'],
  ['POST', '/push_again', LATER, 'from'],
  ['GET', `/deliveries?filter.from=${LATER.from}&filter.to=${LATER.to}`, undefined, 'filter.from'],
])(
  '%s %s with a range that ends before it begins is refused',
  async (method, path, body, field) => {
    await using app = await startApp();
    const crawler = await createCrawler(app, 'shop', {
      callback_url: 'http://127.0.0.1:3000/hook',
    });
    const reply = await app.rest(method, crawler.path + path, body);
    expect([reply.status, reply.json]).toEqual([
      422,
      expect.objectContaining({ code: 'invalid_from', field }),
    ]);
  },
);

test.each(['replay', 'push_again'])(
  '%s names a text among its rids that cannot be one',
  async (operation) => {
    await using app = await startApp();
    const crawler = await createCrawler(app, 'shop', {
      callback_url: 'http://127.0.0.1:3000/hook',
    });
    const unknown = 'a'.repeat(24);
    const reply = await crawler.post(operation, { rids: [unknown, unknown.toUpperCase()] });
    expect([reply.status, reply.json]).toEqual([
      422,
      expect.objectContaining({
        error: 'rids[1] is not a RID.',
        code: 'invalid_rids',
        field: 'rids[1]',
      }),
    ]);
    expect((await crawler.post(operation, { rids: [unknown, unknown] })).status).toBe(200);
  },
);

test('a picture without an id and a url is refused for the url', async () => {
  await using app = await startApp();
  for (const path of ['/screenshots', `/screenshots?token=${NORMAL}`]) {
    const reply = await app.rest('GET', path);
    expect([reply.status, reply.json]).toEqual([
      422,
      expect.objectContaining({ code: 'missing_url', field: 'url' }),
    ]);
  }
  expect((await app.rest('GET', '/screenshots?id=1')).json.code).toBe('screenshot_not_found');
});

test('a replay on a crawler that stores its results says that it has no webhook', async () => {
  await using app = await startApp();
  const crawler = await createCrawler(app, 'shop');
  const rid = await crawler.push('http://127.0.0.1:9/');
  for (const body of [{ rid }, { rids: [rid] }, { from: '2026-01-01T00:00:00Z' }]) {
    const reply = await app.rest('POST', `${crawler.path}/replay`, body);
    expect([reply.status, reply.json.code]).toEqual([409, 'no_webhook']);
  }
});

test.each(['/healthz', '/readyz', '/metrics'])(
  'a method that %s does not have is refused, with those that it has',
  async (path) => {
    await using app = await startApp();
    for (const method of ['PATCH', 'POST', 'DELETE', 'OPTIONS']) {
      const reply = await app.rest(method, path);
      expect([reply.status, reply.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
      expect(reply.json).toMatchObject({ code: 'method_not_allowed' });
    }
    expect((await app.rest('HEAD', path)).status).toBe(200);
  },
);
