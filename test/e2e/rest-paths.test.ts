import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { JAVASCRIPT, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/receiver.ts';
import { startSite } from '../support/site.ts';

const unknownRid = '0123456789abcdef01234567';

async function push(app: TestApp, crawler: string, url: string, more = ''): Promise<string> {
  const query = `token=${NORMAL}&crawler=${crawler}&callback=true&url=${encodeURIComponent(url)}`;
  const reply = await app.rest('GET', `/?${query}${more}`);
  expect(reply.text).toMatch(/^\{"rid":"[0-9a-f]{24}"\}$/);
  return reply.json.rid as string;
}

async function stored(app: TestApp, rid: string) {
  return eventually(async () => {
    const reply = await app.rest('GET', `/storage?token=${NORMAL}&rid=${rid}&format=json`);
    expect(reply.status).toBe(200);
    return reply;
  });
}

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app[Symbol.asyncDispose]());

test('a page pushed to a storage crawler is read by rid, in html and in json', async () => {
  await using site = await startSite();
  const created = await app.rest('POST', `/crawler/${NORMAL}`, { name: 'store' });
  expect(created.status).toBe(200);
  expect(created.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(created.json).toMatchObject({
    created: true,
    crawler: { name: 'store', delivery: 'storage', status: 'running', concurrency: 20 },
  });

  const pushed = await app.rest(
    'GET',
    `/?token=${NORMAL}&crawler=store&callback=true&url=${encodeURIComponent(`${site.url}/page/7`)}&`,
  );
  expect(pushed.status).toBe(200);
  const { rid } = pushed.json;
  expect(pushed.headers.get('rid')).toBe(rid);
  const json = await stored(app, rid);
  expect(json.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(json.json).toMatchObject({
    rid,
    url: `${site.url}/page/7`,
    cb_status: 200,
    pc_status: 200,
    original_status: 200,
  });
  expect(json.json.body).toContain('Page 7');

  const html = await app.rest('GET', `/storage?token=${NORMAL}&rid=${rid}`);
  expect(html.status).toBe(200);
  expect(html.headers.get('content-type')).toContain('text/plain');
  expect(html.headers.get('content-encoding')).toBe('gzip');
  expect(html.headers.get('rid')).toBe(rid);
  expect(html.headers.get('cb_status')).toBe('200');
  expect(html.headers.get('original_status')).toBe('200');
  expect(Date.parse(html.headers.get('stored_at') ?? '')).toBeGreaterThan(Date.now() - 60_000);
  expect(html.text).toBe(json.json.body);
});

test('bulk reads base64 of the gzip bytes and removes what it returned when asked to', async () => {
  await using site = await startSite();
  await app.rest('POST', `/crawler/${NORMAL}`, { name: 'bulk' });
  const rids = await Promise.all([1, 2, 3].map((n) => push(app, 'bulk', `${site.url}/page/${n}`)));
  await Promise.all(rids.map((rid) => stored(app, rid)));

  const kept = await app.rest('POST', `/storage/bulk?token=${NORMAL}`, {
    rids: [...rids, unknownRid],
    auto_delete: false,
  });
  expect(kept.json.map((record: { rid: string }) => record.rid)).toEqual(rids);
  const page = gunzipSync(Buffer.from(kept.json[1].body, 'base64')).toString();
  expect(page).toContain('Page 2');

  const taken = await app.rest('POST', `/storage/bulk?token=${NORMAL}`, {
    rids,
    auto_delete: true,
  });
  expect(taken.json).toHaveLength(3);
  const gone = await app.rest('GET', `/storage?token=${NORMAL}&rid=${rids[0]}`);
  expect(gone.status).toBe(404);
  expect(gone.json).toMatchObject({ error: 'RID not found', code: 'rid_not_found' });
  const many = { rids: Array.from({ length: 101 }, () => unknownRid), auto_delete: false };
  const refused = await app.rest('POST', `/storage/bulk?token=${NORMAL}`, many);
  expect(refused.status).toBe(422);
  expect(refused.json.field).toBe('rids');
});

test('a webhook crawler POSTs the page with its metadata and stores nothing', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver();
  await using app = await startApp();
  const callback_url = `${receiver.url}/hook`;
  await app.rest('POST', `/crawler/${NORMAL}`, { name: 'hook', callback_url });
  const html = await push(
    app,
    'hook',
    `${site.url}/page/1`,
    `&callback_headers=${encodeURIComponent('X-Verify|s3cret|X-Two|b')}`,
  );
  const json = await push(app, 'hook', `${site.url}/page/2`, '&format=json');
  await receiver.until(2);

  const first = receiver.deliveries.find((post) => post.rid === html);
  const names = first?.headerList.map(([name]) => name) ?? [];
  for (const name of [
    'cb_status',
    'CB-Status',
    'pc_status',
    'PC-Status',
    'original_status',
    'Original-Status',
    'rid',
    'url',
  ]) {
    expect(names).toContain(name);
  }
  expect(first?.headers).toMatchObject({
    'content-type': expect.stringContaining('text/plain') as string,
    'content-encoding': 'gzip',
    cb_status: '200',
    url: `${site.url}/page/1`,
    'x-verify': 's3cret',
    'x-two': 'b',
  });
  expect(first?.text).toContain('Page 1');
  const second = receiver.deliveries.find((post) => post.rid === json);
  expect(second?.headers['content-type']).toBe('gzip/json');
  expect(second?.json).toMatchObject({
    rid: json,
    cb_status: 200,
    pc_status: 200,
    original_status: 200,
    url: `${site.url}/page/2`,
  });

  const reply = await app.rest('GET', `/storage?token=${NORMAL}&rid=${html}`);
  expect(reply.status).toBe(404);
  expect((await app.rest('GET', `/storage/total_count?token=${NORMAL}`)).json).toEqual({
    totalCount: 0,
  });
});

test('find_by_rid has the two shapes of the spec', async () => {
  await using site = await startSite();
  await app.rest('POST', `/crawler/${NORMAL}`, { name: 'find' });
  await app.rest('POST', `/crawler/${NORMAL}/find/pause`);
  const url = `${site.url}/page/1`;
  const rid = await push(app, 'find', url);
  const queued = await app.rest('GET', `/crawler/${NORMAL}/find/find_by_rid/${rid}`);
  expect(queued.json).toEqual({
    status: 'QUEUED',
    request_info: { rid, url, retry: 0, created_at: expect.any(Number) as number },
  });
  expect(Math.abs(queued.json.request_info.created_at - Date.now() / 1_000)).toBeLessThan(60);
  await app.rest('POST', `/crawler/${NORMAL}/find/unpause`);
  await stored(app, rid);
  for (const each of [rid, unknownRid, 'nonsense']) {
    const reply = await app.rest('GET', `/crawler/${NORMAL}/find/find_by_rid/${each}`);
    expect(reply.status).toBe(200);
    expect(reply.json).toEqual({ status: 'NOT_QUEUED', request_info: { rid: each } });
  }
});

test('pause keeps the queue, purge empties it, delete_job removes one, delete removes the crawler', async () => {
  await using site = await startSite();
  await using app = await startApp();
  const path = `/crawler/${NORMAL}/ops`;
  await app.rest('POST', `/crawler/${NORMAL}`, { name: 'ops' });
  expect((await app.rest('POST', `${path}/pause`)).json).toMatchObject({
    status: 'paused',
    paused_by: 'user',
  });
  const rids = await Promise.all([1, 2, 3].map((n) => push(app, 'ops', `${site.url}/page/${n}`)));
  expect((await app.rest('GET', path)).json.activity).toMatchObject({ waiting: 3, pushed: 3 });

  const removed = await app.rest('POST', `${path}/delete_job?rid=${rids[0]}`);
  expect(removed.status).toBe(200);
  expect((await app.rest('POST', `${path}/delete_job?rid=${rids[0]}`)).status).toBe(404);
  expect((await app.rest('POST', `${path}/purge`)).json).toEqual({ purged: 2 });
  expect((await app.rest('GET', path)).json.activity).toMatchObject({
    waiting: 0,
    deleted: 1,
    purged: 2,
  });
  expect((await app.rest('POST', `${path}/unpause`)).json).toMatchObject({ status: 'running' });
  await stored(app, await push(app, 'ops', `${site.url}/page/9`));
  expect(site.hits('/page/1') + site.hits('/page/2') + site.hits('/page/3')).toBe(0);

  await app.rest('POST', `${path}/pause`);
  const last = await push(app, 'ops', `${site.url}/page/4`);
  expect((await app.rest('POST', `${path}/delete`)).json).toEqual({ purged: 1 });
  expect((await app.rest('GET', path)).status).toBe(404);
  const gone = await app.rest('GET', `${path}/find_by_rid/${last}`);
  expect([gone.status, gone.json]).toEqual([
    200,
    { status: 'NOT_QUEUED', request_info: { rid: last } },
  ]);
  const stats = await app.rest('GET', `/crawler/${NORMAL}/stats`);
  expect(stats.json.crawlers).toEqual([]);
});

test('an update takes effect while the crawler runs', async () => {
  await using site = await startSite();
  await using first = await startReceiver();
  await using second = await startReceiver();
  await app.rest('POST', `/crawler/${NORMAL}`, {
    name: 'live',
    callback_url: first.url,
    concurrency: 1,
  });
  await push(app, 'live', `${site.url}/page/1`);
  await first.until(1);
  const updated = await app.rest('PUT', `/crawler/${NORMAL}/live`, {
    callback_url: second.url,
    concurrency: 3,
  });
  expect(updated.json).toMatchObject({ callback_url: second.url, concurrency: 3 });
  for (let n = 0; n < 9; n++) await push(app, 'live', `${site.url}/page/${n}?delay=1000`);
  await second.until(9);
  expect(first.deliveries).toHaveLength(1);
  expect(site.maxConcurrent).toBe(3);

  const fixed = await app.rest('PUT', `/crawler/${NORMAL}/live`, { delivery: 'storage' });
  expect(fixed.status).toBe(409);
  expect(fixed.json.code).toBe('delivery_mode_fixed');
});

test('the concurrency limit is never passed', async () => {
  await using site = await startSite();
  await app.rest('POST', `/crawler/${NORMAL}`, { name: 'limit', concurrency: 5 });
  const items = Array.from({ length: 60 }, (_, n) => ({ url: `${site.url}/page/${n}?delay=20` }));
  const batch = await app.rest('POST', `/crawler/${NORMAL}/limit/push_batch`, { items });
  expect(batch.json.results).toHaveLength(60);
  await eventually(async () => {
    const { json } = await app.rest('GET', `/crawler/${NORMAL}/limit`);
    expect(json.activity.running).toBeLessThanOrEqual(5);
    expect(json.activity.completed).toBe(60);
  });
  expect(site.maxConcurrent).toBe(5);
});

test('create is repeatable with the same values and conflicts with others', async () => {
  const body = { name: 'twice', callback_url: 'https://example.com/hook' };
  expect((await app.rest('POST', `/crawler/${NORMAL}`, body)).json.created).toBe(true);
  const again = await app.rest('POST', `/crawler/${NORMAL}`, body);
  expect(again.status).toBe(200);
  expect(again.json).toMatchObject({ created: false, crawler: { name: 'twice' } });
  const other = await app.rest('POST', `/crawler/${NORMAL}`, { name: 'twice' });
  expect(other.status).toBe(409);
  expect(other.json.code).toBe('crawler_exists');
  for (const name of ['stats', '', '-x', 'a b', 'x'.repeat(65)]) {
    const refused = await app.rest('POST', `/crawler/${NORMAL}`, { name });
    expect(refused.status).toBe(422);
    expect(refused.json.field).toBe('name');
  }
});

test('tokens: 401 unknown or missing, 403 of the other type, also as bearer', async () => {
  await app.rest('POST', `/crawler/${NORMAL}`, { name: 'mine' });
  const wrong = await app.rest('GET', '/crawler/nobody-knows-this/mine');
  expect(wrong.status).toBe(401);
  expect(wrong.json).toMatchObject({ code: 'invalid_token' });
  expect((await app.rest('GET', '/storage?rid=1')).status).toBe(401);
  const other = await app.rest('GET', `/crawler/${JAVASCRIPT}/mine`);
  expect(other.status).toBe(403);
  expect(other.json.code).toBe('wrong_token_type');
  const url = encodeURIComponent('https://example.com/');
  const bearer = { authorization: `Bearer ${JAVASCRIPT}` };
  const push403 = await app.rest(
    'GET',
    `/?crawler=mine&callback=true&url=${url}`,
    undefined,
    bearer,
  );
  expect(push403.status).toBe(403);
  const count = await app.rest('GET', '/storage/total_count', undefined, bearer);
  expect(count.status).toBe(200);
});

test('bad input names its field and queues nothing', async () => {
  await app.rest('POST', `/crawler/${NORMAL}`, { name: 'strict' });
  await app.rest('POST', `/crawler/${NORMAL}/strict/pause`);
  const good = `url=${encodeURIComponent('https://example.com/')}`;
  const cases: [query: string, field: string][] = [
    ['', 'url'],
    ['url=', 'url'],
    ['url=example.com', 'url'],
    [`url=${encodeURIComponent('ftp://example.com/')}`, 'url'],
    [`${good}&queue_timeout=10081`, 'queue_timeout'],
    [`${good}&queue_timeout=-1`, 'queue_timeout'],
    [`${good}&queue_timeout=soon`, 'queue_timeout'],
    [`${good}&format=xml`, 'format'],
    [`${good}&scraper=nothing`, 'scraper'],
  ];
  for (const [query, field] of cases) {
    const reply = await app.rest('GET', `/?token=${NORMAL}&crawler=strict&callback=true&${query}`);
    expect([query, reply.status, reply.json.field]).toEqual([query, 422, field]);
    expect(reply.json.error).toEqual(expect.any(String));
  }
  const missing = await app.rest('GET', `/?token=${NORMAL}&crawler=none&callback=true&${good}`);
  expect(missing.status).toBe(404);
  expect(missing.json.code).toBe('crawler_not_found');
  const { json } = await app.rest('GET', `/crawler/${NORMAL}/strict`);
  expect(json.activity.pushed).toBe(0);
});

test.each([
  ['with parameters of its own', 'http://a.example/x?a=1&b=2'],
  ['given twice', 'http://a.example/x&url=http://b.example/'],
  ['with escapes of Latin-1', 'http://a.example/caf%E9'],
])('a url that is not percent-encoded is refused: %s', async (_what, url) => {
  for (const path of ['/', '/scraper', '/screenshots']) {
    const reply = await app.rest('GET', `${path}?token=${NORMAL}&url=${url}`);
    expect([path, reply.status, reply.json.code]).toEqual([path, 422, 'invalid_url']);
  }
});

test.each([
  ['escapes that are encoded', 'http%3A%2F%2F127.0.0.1%3A9%2Fcaf%25E9'],
  ['a percent sign', 'http://127.0.0.1:9/100%'],
  ['the character U+FFFD', 'http://127.0.0.1:9/%EF%BF%BD'],
])('a url with %s is taken', async (_what, url) => {
  const reply = await app.rest('GET', `/?token=${NORMAL}&async=true&url=${url}`);
  expect([reply.status, reply.json]).toMatchObject([200, { rid: expect.any(String) }]);
});

test('a url with an empty query is requested with it', async () => {
  await using site = await startSite();
  const url = encodeURIComponent(`${site.url}/echo?`);
  const reply = await app.rest('GET', `/?token=${NORMAL}&url=${url}`);
  expect(reply.json.path).toBe('/echo?');
  // Without parameters of its own, one need not be encoded.
  const plain = await app.rest('GET', `/?token=${NORMAL}&url=${site.url}/echo?a=1`);
  expect(plain.json.path).toBe('/echo?a=1');
});

test('an inline crawl answers with the page, or its envelope', async () => {
  await using site = await startSite();
  const url = encodeURIComponent(`${site.url}/redirect/1`);
  const html = await app.rest('GET', `/?token=${NORMAL}&url=${url}`);
  expect(html.status).toBe(200);
  expect(html.headers.get('cb_status')).toBe('200');
  expect(html.headers.get('pc_status')).toBe('200');
  expect(html.headers.get('original_status')).toBe('200');
  expect(html.headers.get('url')).toBe(`${site.url}/page/0`);
  expect(html.text).toContain('Page 0');
  const json = await app.rest('GET', `/?token=${NORMAL}&url=${url}&format=json`);
  expect(json.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(json.json).toMatchObject({ original_status: 200, pc_status: 200, cb_status: 200 });
  expect(json.json.body).toContain('Page 0');
});

test('POST and PUT send their body to the target, queued and inline', async () => {
  await using site = await startSite();
  await app.rest('POST', `/crawler/${NORMAL}`, { name: 'post' });
  const url = encodeURIComponent(`${site.url}/echo`);
  const inline = await app.rest('POST', `/?token=${NORMAL}&url=${url}`, 'a=1&b=2');
  expect(JSON.parse(inline.text)).toMatchObject({ method: 'POST', body: 'a=1&b=2' });
  const query = `token=${NORMAL}&crawler=post&callback=true&url=${url}`;
  const pushed = await app.rest('PUT', `/?${query}&post_content_type=application/json`, '{"x":1}');
  const { json } = await stored(app, pushed.json.rid);
  const echo = JSON.parse(json.body);
  expect(echo).toMatchObject({ method: 'PUT', body: '{"x":1}' });
  expect(echo.headers['content-type']).toBe('application/json');
});

test('async and store put inline crawls into storage', async () => {
  await using site = await startSite();
  await using app = await startApp();
  const url = encodeURIComponent(`${site.url}/page/5`);
  const later = await app.rest('GET', `/?token=${NORMAL}&url=${url}&async=true`);
  expect(Object.keys(later.json)).toEqual(['rid']);
  expect((await stored(app, later.json.rid)).json.body).toContain('Page 5');
  const kept = await app.rest('GET', `/?token=${NORMAL}&url=${url}&store=true`);
  const rid = kept.headers.get('rid') ?? '';
  const { json: record } = await stored(app, rid);
  expect(record.body).toContain('Page 5');
  expect(kept.headers.get('stored_at')).toBe(record.stored_at);
  const both = await app.rest('GET', `/?token=${NORMAL}&url=${url}&store=true&format=json`);
  expect(both.json.stored_at).toMatch(/^2.*T.*\+00:00$/);
  const neither = await app.rest('GET', `/?token=${NORMAL}&url=${url}&format=json`);
  expect(neither.json.stored_at).toBeUndefined();
  const copy = await fetch(kept.headers.get('storage_url') ?? '');
  expect(await copy.text()).toContain('Page 5');
  expect((await app.rest('GET', `/crawler/${NORMAL}`)).json.crawlers).toEqual([]);
});

test('deleting a job or its crawler while it is crawled delivers nothing', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver();
  await using app = await startApp();
  await app.rest('POST', `/crawler/${NORMAL}`, { name: 'gone', callback_url: receiver.url });
  const rid = await push(app, 'gone', `${site.url}/page/1?delay=600`);
  await push(app, 'gone', `${site.url}/page/2?delay=600`);
  await eventually(() => expect(site.concurrent).toBe(2));
  const removed = await app.rest('POST', `/crawler/${NORMAL}/gone/delete_job?rid=${rid}`);
  expect(removed.status).toBe(200);
  await receiver.until(1);
  await push(app, 'gone', `${site.url}/page/3?delay=600`);
  await eventually(() => expect(site.hits('/page/3')).toBe(1));
  await app.rest('POST', `/crawler/${NORMAL}/gone/delete`);
  // Nothing is crawled any more, and what was to be delivered is when the service has stopped.
  await eventually(() => expect(site.concurrent).toBe(0));
  await app.stop();
  expect(receiver.deliveries.map((post) => post.headers.url)).toEqual([
    `${site.url}/page/2?delay=600`,
  ]);
});

test('paths and methods: 404, 405 with Allow, 400 for what is not JSON, 413 over the limit', async () => {
  expect((await app.rest('GET', '/nothing/here')).status).toBe(404);
  const wrong = await app.rest('DELETE', `/crawler/${NORMAL}/x/pause`);
  expect(wrong.status).toBe(405);
  expect(wrong.headers.get('allow')).toContain('POST');
  const text = { 'content-type': 'application/json' };
  expect((await app.rest('POST', `/crawler/${NORMAL}`, '{name', text)).status).toBe(400);
  const big = `{"name":"${'x'.repeat(17 * 1024 * 1024)}"}`;
  expect((await app.rest('POST', `/crawler/${NORMAL}`, big, text)).status).toBe(413);
});

test('no token reaches the log', async () => {
  await using app = await startApp({ env: { LOG_LEVEL: 'debug' } });
  await app.rest('GET', `/crawler/${NORMAL}/none`);
  await app.rest('GET', `/?token=${NORMAL}&url=${encodeURIComponent('http://127.0.0.1:2/')}`);
  await app.stop();
  expect(app.log.join('')).not.toContain(NORMAL);
});
