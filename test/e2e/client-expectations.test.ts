import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { JAVASCRIPT, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { rawGet, rawRequest } from '../support/raw-http.ts';
import { type SiteRoute, startSite } from '../support/site.ts';

let app: TestApp;

beforeAll(async () => {
  app = await startApp();
});

afterAll(() => app[Symbol.asyncDispose]());

// What the public SDKs and the code around them read, in their own terms.

const answering =
  (type: string, body: string): SiteRoute =>
  (_request, response) =>
    void response.writeHead(200, { 'content-type': type }).end(body);

test('PHP compares the name and the value of Content-Type letter by letter', async () => {
  for (const path of [
    `/storage/total_count?token=${NORMAL}`,
    `/storage/rids?token=${NORMAL}`,
    '/x',
  ]) {
    const { headers } = await rawRequest(app.port, rawGet(path));
    expect(headers.get('Content-Type')).toBe('application/json; charset=utf-8');
  }
});

test('READMEs say: set post_content_type to json', async () => {
  await using site = await startSite();
  const path = `/?token=${NORMAL}&url=${site.url}/echo&post_content_type=json`;
  const reply = await app.rest('POST', path, '{"a":1}');
  expect([reply.status, reply.json.body]).toEqual([200, '{"a":1}']);
  expect(reply.json.headers['content-type']).toBe('application/json');
});

test('a JSON page is never labelled as the envelope that python and php recognise', async () => {
  await using site = await startSite({
    routes: {
      '/json': answering('application/json; charset=utf-8', '{"a":1}'),
      '/problem': answering('application/problem+json', '[42]'),
      '/number': answering('application/json', '42'),
      '/null': answering('application/json', 'null'),
      '/broken': answering('application/json', '{"a":'),
      '/nothing': answering('application/json', ''),
    },
  });
  const crawl = async (path: string) => {
    const reply = await app.rest('GET', `/?token=${NORMAL}&url=${site.url}${path}`);
    expect(reply.headers.get('pc_status')).not.toBeNull();
    return [reply.headers.get('content-type'), reply.text];
  };
  expect(await crawl('/json')).toEqual(['application/json', '{"a":1}']);
  expect(await crawl('/problem')).toEqual(['application/problem+json', '[42]']);
  expect(await crawl('/number')).toEqual(['application/json', '42']);
  // node's SDK parses what says that it is JSON, and looks into it: either would end its process.
  expect(await crawl('/null')).toEqual(['text/plain; charset=utf-8', 'null']);
  expect(await crawl('/broken')).toEqual(['text/plain; charset=utf-8', '{"a":']);
  expect(await crawl('/nothing')).toEqual(['text/plain; charset=utf-8', '']);
});

test.each([
  ['Accept-Encoding: gzip', true],
  ['Accept-Encoding: gzip, deflate, br', true],
  ['accept-encoding: deflate, *', true],
  ['Accept-Encoding: identity', false],
  ['Accept-Encoding: gzip;q=0, *;q=1', false],
  ['Accept-Encoding: br', false],
  ['Accept: */*', false],
])('a stored page with %s', async (header, packed) => {
  await using site = await startSite({
    routes: { '/umlaut': answering('text/html; charset=utf-8', '<p>Grüße</p>') },
  });
  const crawler = await createCrawler(app, 'kept');
  const rid = await crawler.push(`${site.url}/umlaut`);
  await crawler.stored(rid);
  const reply = await rawRequest(app.port, rawGet(`/storage?token=${NORMAL}&rid=${rid}`, header));
  expect(reply.headers.get('Content-Encoding')).toBe(packed ? 'gzip' : undefined);
  expect((packed ? gunzipSync(reply.body) : reply.body).toString()).toBe('<p>Grüße</p>');
  // Without a charset python's requests reads Latin-1.
  expect(reply.headers.get('Content-Type')).toBe('text/plain; charset=utf-8');
});

test('metadata stands in the headers of JSON replies, too', async () => {
  await using site = await startSite();
  const page = `${site.url}/status/404`;
  const inline = await app.rest('GET', `/?token=${NORMAL}&url=${page}&format=json&store=true`);
  const told = { original_status: '404', pc_status: '200', cb_status: '200', url: page };
  expect(Object.fromEntries(inline.headers)).toMatchObject({ ...told, rid: inline.json.rid });
  const stored = await app.rest(
    'GET',
    `/storage?token=${NORMAL}&rid=${inline.json.rid}&format=json`,
  );
  expect(Object.fromEntries(stored.headers)).toMatchObject(told);
});

test('ajax_wait as a time in milliseconds is true; other flags stay strict', async () => {
  const push = (more: string) =>
    app.rest('GET', `/?token=${JAVASCRIPT}&crawler=js&callback=true&url=http://a.example/${more}`);
  await app.rest('POST', `/crawler/${JAVASCRIPT}`, { name: 'js' });
  await app.rest('POST', `/crawler/${JAVASCRIPT}/js/pause`);
  expect((await push('&ajax_wait=3000')).status).toBe(200);
  expect((await push('&ajax_wait=-1')).status).toBe(422);
  expect((await push('&scroll=3000')).json).toMatchObject({ code: 'invalid_scroll' });
  const batch = await app.rest('POST', `/crawler/${JAVASCRIPT}/js/push_batch`, {
    items: [{ url: 'http://a.example/', parameters: { ajax_wait: 3_000 } }],
  });
  expect([batch.status, batch.json.results[0].error]).toEqual([200, undefined]);
});

test('a slash too many is overlooked', async () => {
  await using site = await startSite();
  await createCrawler(app, 'shop');
  for (const path of [
    `//?token=${NORMAL}&url=${site.url}/page/1`,
    `/storage/total_count/?token=${NORMAL}`,
    `//storage//rids?token=${NORMAL}`,
    `/crawler/${NORMAL}/`,
    `//crawler/${NORMAL}/shop/`,
  ]) {
    expect([path, (await app.rest('GET', path)).status]).toEqual([path, 200]);
  }
});

test('a country without a proxy is refused, unless the operator says that it is crawled directly', async () => {
  await using site = await startSite();
  const path = `/?token=${NORMAL}&url=${site.url}/page/1&country=US`;
  expect((await app.rest('GET', path)).json).toMatchObject({ code: 'invalid_country' });
  await using direct = await startApp({ env: { PROXIES: '{"*":"direct"}' } });
  const reply = await direct.rest('GET', path);
  expect([reply.status, reply.headers.get('pc_status')]).toEqual([200, '200']);
  expect((await direct.rest('GET', `${path}&tor_network=true`)).status).toBe(422);
});

test('/scraper answers the envelope of the scraper API', async () => {
  const html = '<title>Shop</title><h1>Shoes</h1>';
  await using site = await startSite({ routes: { '/shop': answering('text/html', html) } });
  const reply = await app.rest('GET', `/scraper?token=${NORMAL}&url=${site.url}/shop`);
  expect(reply.json).toMatchObject({
    original_status: 200,
    pc_status: 200,
    url: `${site.url}/shop`,
    remaining_requests: expect.any(Number),
    body: { scraper: 'generic-extractor', title: 'Shop' },
  });
  const links = await app.rest(
    'GET',
    `/scraper?token=${NORMAL}&url=${site.url}/shop&scraper=links`,
  );
  expect(links.json.body).toEqual({ links: [] });
  expect((await app.rest('POST', `/scraper?token=${NORMAL}`)).status).toBe(405);
});

test('/leads answers the e-mail addresses of a domain', async () => {
  const html = '<p>Write to Sales@Shop.example';
  await using site = await startSite({ routes: { '/': answering('text/html', html) } });
  const reply = await app.rest('GET', `/leads?token=${NORMAL}&domain=${site.host}`);
  expect(reply.json).toEqual({
    success: true,
    remaining_requests: expect.any(Number),
    domain: site.host,
    leads: [{ email: 'sales@shop.example', sources: [`http://${site.host}/`] }],
  });
  for (const domain of ['', 'a/b', 'user@host', 'a b']) {
    const refused = await app.rest('GET', `/leads?token=${NORMAL}&domain=${domain}`);
    expect([refused.status, refused.json.field]).toEqual([422, 'domain']);
  }
  expect((await app.rest('GET', '/leads?domain=a.example')).status).toBe(401);
});

test('a proxy may name the service in the request line', async () => {
  for (const path of ['/healthz', '/readyz', `/storage/total_count?token=${NORMAL}`]) {
    expect((await rawRequest(app.port, rawGet(`http://service${path}`))).status).toBe(200);
  }
});

test('a call without anything is told what answers here, and where the document is', async () => {
  const reply = await app.rest('GET', '/');
  expect(reply.status).toBe(401);
  expect(reply.json).toMatchObject({
    code: 'missing_token',
    service: 'queued-crawler',
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    error: expect.stringContaining('token'),
  });
  const document = await app.rest('GET', reply.json.documentation);
  expect(document.json.openapi).toMatch(/^3\./);
});

test.each([
  [
    'a raw UTF-8 byte',
    400,
    'invalid_http',
    'GET /?url=http://x/\u00fc HTTP/1.1\r\nHost: a\r\n\r\n',
  ],
  ['garbage', 400, 'invalid_http', 'hello\r\n\r\n'],
  ['no Host', 400, 'invalid_http', 'GET / HTTP/1.1\r\n\r\n'],
  ['two hosts', 400, 'invalid_http', 'GET /healthz HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n'],
  [
    'chunks of HTTP/1.0',
    400,
    'invalid_http',
    'POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  ],
  [
    'two lengths',
    400,
    'invalid_http',
    'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
  ],
  [
    'HTTP/2.0 in the request line',
    505,
    'unsupported_http_version',
    'GET /healthz HTTP/2.0\r\nHost: a\r\n\r\n',
  ],
  ['no version in the request line', 505, 'unsupported_http_version', 'GET /healthz\r\n\r\n'],
  ['an expectation', 417, 'expectation_failed', 'GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n'],
])('%s is answered in JSON like every other error', async (_what, status, code, request) => {
  const reply = await rawRequest(app.port, request);
  expect(reply.status).toBe(status);
  expect(reply.headers.get('Content-Type')).toBe('application/json; charset=utf-8');
  expect(JSON.parse(reply.body.toString())).toEqual({ code, error: expect.any(String) });
});

test('a request whose body is cut short is told so', async () => {
  const head = `POST /crawler/${NORMAL} HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n{"name":`;
  const reply = await rawRequest(app.port, head, { isCut: true });
  expect(reply.status).toBe(400);
  expect(JSON.parse(reply.body.toString())).toMatchObject({ code: 'incomplete_body' });
});

test('a request line too long is told so even while it is being sent', async () => {
  // As the node SDK does with the data of a POST.
  const path = `/?token=${NORMAL}&url=http://a.example/&post_data=${'x'.repeat(3_000_000)}`;
  const reply = await rawRequest(app.port, rawGet(path));
  expect(reply.status).toBe(413);
  expect(JSON.parse(reply.body.toString())).toMatchObject({ code: 'request_line_too_large' });
  const next = await app.rest('GET', `/storage/total_count?token=${NORMAL}`);
  expect(next.status).toBe(200);
});
