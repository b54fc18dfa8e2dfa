import type { ServerResponse } from 'node:http';
import https from 'node:https';
import { createRequire } from 'node:module';
import { connect } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import { JAVASCRIPT, NORMAL, type TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { startSite } from '../support/site.ts';
import { startTlsApp } from '../support/tls-app.ts';
import { TLS_FIXTURE } from '../support/tls-fixture.ts';

// The public node SDKs of the reference service, as published. Only where their connections go is changed: their host leads to the app.

interface SdkReply {
  readonly statusCode: number;
  readonly body: string;
  readonly url: string;
  readonly originalStatus?: number;
  readonly pcStatus?: number;
  readonly cbStatus?: number;
  readonly headers: Record<string, string>;
  readonly json?: Record<string, unknown>;
}

interface CrawlingApi {
  get(url: string, options?: object): Promise<SdkReply>;
  post(url: string, data: object | string, options?: object): Promise<SdkReply>;
  put(url: string, data: object | string, options?: object): Promise<SdkReply>;
}

interface LeadsApi {
  getFromDomain(domain: string): Promise<SdkReply & { readonly leads: unknown }>;
}

interface Sdk {
  readonly CrawlingAPI: new (options: { token: string }) => CrawlingApi;
  readonly ScraperAPI: new (options: { token: string }) => CrawlingApi;
  readonly ScreenshotsAPI: new (options: { token: string }) => CrawlingApi;
  readonly LeadsAPI: new (options: { token: string }) => LeadsApi;
}

const require = createRequire(import.meta.url);
const current = require('crawlbase') as Sdk;
// Under the name that it had before, which many programs still use.
const former = require('proxycrawl') as Sdk;
const { CrawlingAPI, ScraperAPI, LeadsAPI } = current;

const globalAgent = https.globalAgent;
afterEach(() => {
  https.globalAgent.destroy();
  https.globalAgent = globalAgent;
});

function leadTo(port: number): void {
  const agent = new https.Agent();
  agent.createConnection = () => connect({ host: '127.0.0.1', port, ca: TLS_FIXTURE.cert });
  https.globalAgent = agent;
}

async function startSdkApp(): Promise<TestApp> {
  const app = await startTlsApp();
  leadTo(app.port);
  return app;
}

async function callTls(method: string, path: string, body?: object): Promise<{ json: unknown }> {
  return new Promise((resolve, reject) => {
    const request = https.request({ method, host: 'localhost', path }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ json: JSON.parse(text) }));
    });
    request.on('error', reject);
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

test('the SDK crawls inline, in html and in json', async () => {
  await using site = await startSite();
  await using _app = await startSdkApp();
  const api = new CrawlingAPI({ token: NORMAL });
  const html = await api.get(`${site.url}/page/4`, { userAgent: 'sdk-test' });
  expect(html).toMatchObject({
    statusCode: 200,
    originalStatus: 200,
    pcStatus: 200,
    cbStatus: 200,
  });
  expect(html.url).toBe(`${site.url}/page/4`);
  expect(html.body).toContain('Page 4');
  expect(site.seen[0]?.headers['user-agent']).toBe('sdk-test');
  const json = await api.get(`${site.url}/status/404`, { format: 'json' });
  expect(json).toMatchObject({ statusCode: 200, originalStatus: 404, pcStatus: 200 });
  expect(json.json).toMatchObject({ url: `${site.url}/status/404`, original_status: 404 });
});

test('the SDK posts to the target', async () => {
  await using site = await startSite();
  await using _app = await startSdkApp();
  const api = new CrawlingAPI({ token: NORMAL });
  const form = await api.post(`${site.url}/echo`, { a: 1, b: 'two words' });
  expect(JSON.parse(form.body)).toMatchObject({ method: 'POST', body: 'a=1&b=two%20words' });
  const json = await api.put(`${site.url}/echo`, { a: 1 }, { postType: 'json' });
  const echo = JSON.parse(json.body) as { headers: Record<string, string> };
  expect(echo).toMatchObject({ method: 'PUT', body: '{"a":1}' });
  expect(echo.headers['content-type']).toBe('application/json');
});

test('the SDK reads pages that say they are JSON and are not', async () => {
  const answer = (body: string) => (_request: unknown, response: ServerResponse) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  await using site = await startSite({
    routes: { '/broken': answer('{"a":'), '/nothing': answer(''), '/null': answer('null') },
  });
  await using _app = await startSdkApp();
  const api = new CrawlingAPI({ token: NORMAL });
  expect(await api.get(`${site.url}/broken`)).toMatchObject({ pcStatus: 200, body: '{"a":' });
  expect(await api.get(`${site.url}/nothing`)).toMatchObject({ pcStatus: 520, body: '' });
  expect(await api.get(`${site.url}/null`)).toMatchObject({ pcStatus: 200, body: 'null' });
});

test('the SDK scrapes, and finds the leads of a domain', async () => {
  await using site = await startSite({
    routes: {
      '/': (_request, response) =>
        void response
          .writeHead(200, { 'content-type': 'text/html' })
          .end('<title>Shop</title>sales@shop.example'),
    },
  });
  await using _app = await startSdkApp();
  const scraped = await new ScraperAPI({ token: NORMAL }).get(`${site.url}/`);
  expect(scraped).toMatchObject({ statusCode: 200, pcStatus: 200, url: `${site.url}/` });
  expect(scraped.json).toMatchObject({ body: { title: 'Shop' } });
  const inline = await new CrawlingAPI({ token: NORMAL }).get(`${site.url}/`, {
    scraper: 'email-extractor',
  });
  expect(inline.json).toMatchObject({ body: { emails: ['sales@shop.example'] } });
  const { leads } = await new LeadsAPI({ token: NORMAL }).getFromDomain(site.host);
  expect(leads).toEqual([{ email: 'sales@shop.example', sources: [`http://${site.host}/`] }]);
});

test.each([
  ['crawlbase', current],
  ['proxycrawl', former],
])('%s crawls, scrapes and takes pictures', async (_name, sdk) => {
  await using site = await startSite();
  await using _app = await startSdkApp();
  const page = await new sdk.CrawlingAPI({ token: NORMAL }).get(`${site.url}/page/4`);
  expect(page).toMatchObject({ statusCode: 200, pcStatus: 200, originalStatus: 200 });
  expect(page.body).toContain('Page 4');
  const scraped = await new sdk.ScraperAPI({ token: NORMAL }).get(`${site.url}/page/4`);
  expect(scraped.json).toMatchObject({ body: { title: 'Page 4' } });
  // With the Normal token, as its README does.
  const picture = await new sdk.ScreenshotsAPI({ token: NORMAL }).get(`${site.url}/page/4`);
  expect(picture.headers).toMatchObject({ success: 'true', url: `${site.url}/page/4` });
  const bytes = Buffer.from(picture.body, 'latin1');
  expect([...bytes.subarray(0, 3)]).toEqual([0xff, 0xd8, 0xff]);
  expect([...bytes.subarray(-2)]).toEqual([0xff, 0xd9]);
});

test('the SDK pushes into a crawler and finds the rid in body and headers', async () => {
  await using site = await startSite();
  await using _app = await startSdkApp();
  await callTls('POST', `/crawler/${NORMAL}`, { name: 'sdk' });
  const api = new CrawlingAPI({ token: NORMAL });
  const pushed = await api.get(`${site.url}/page/9`, { callback: true, crawler: 'sdk' });
  expect(pushed.statusCode).toBe(200);
  const { rid } = pushed.json as { rid: string };
  expect(pushed.headers.rid).toBe(rid);
  await eventually(async () => {
    const stored = await callTls('GET', `/storage?token=${NORMAL}&rid=${rid}&format=json`);
    expect(stored.json).toMatchObject({ rid, cb_status: 200, pc_status: 200 });
  });
});

test('the SDK sees refusals as statuses', async () => {
  await using _app = await startSdkApp();
  await callTls('POST', `/crawler/${NORMAL}`, { name: 'sdk' });
  const unknown = await new CrawlingAPI({ token: 'nobody' }).get('https://example.com/');
  expect(unknown.statusCode).toBe(401);
  const other = await new CrawlingAPI({ token: JAVASCRIPT }).get('https://example.com/', {
    callback: true,
    crawler: 'sdk',
  });
  expect(other.statusCode).toBe(403);
  const malformed = await new CrawlingAPI({ token: NORMAL }).get('not-a-url');
  expect(malformed.statusCode).toBe(422);
});
