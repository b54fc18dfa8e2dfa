import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { JAVASCRIPT, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { bytesRoute, crawlInBrowser, htmlRoute } from '../support/browser-crawls.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type Site, startSite } from '../support/site.ts';

const routes = {
  '/long': htmlRoute('<div style="height: 20000px"></div>'),
  // Without a viewport of its own, a phone shows it 981 CSS pixels wide.
  '/wide': htmlRoute('<div style="height: 8000px; width: 100%">x</div>'),
  // Its style sheet never comes, so there is nothing to draw.
  '/styleless': htmlRoute('<link rel="stylesheet" href="/hang"><p>the page itself</p>'),
  '/204': (_request: unknown, response: ServerResponse) => void response.writeHead(204).end(),
  '/304': (_request: unknown, response: ServerResponse) => {
    response.writeHead(304, { 'content-type': 'text/html' }).end();
  },
  '/document': bytesRoute('application/pdf', '%PDF-1.4'),
  '/csv': bytesRoute('text/csv', 'a;b'),
  '/tiff': bytesRoute('image/tiff', 'II*'),
  '/download': (_request: unknown, response: ServerResponse) => {
    const headers = { 'content-type': 'text/csv', 'content-disposition': 'attachment' };
    response.writeHead(200, headers).end('a,b');
  },
};

let app: TestApp;
let site: Site;
let receiver: Receiver;

beforeAll(async () => {
  site = await startSite({ routes });
  receiver = await startReceiver();
  app = await startApp({
    env: { NETWORK_ALLOW: '127.0.0.1' },
  });
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await receiver[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

const crawl = (path: string, parameters: Record<string, string> = {}) =>
  crawlInBrowser(app, site.url + path, { screenshot: 'true', ...parameters });

test('shows the window, or the whole length', async () => {
  const part = await crawl('/long', { mode: 'viewport', width: '400', height: '300' });
  expect(await jpegSize(part.screenshot_url)).toEqual({ width: 400, height: 300 });
  const whole = await crawl('/long', { width: '400', height: '300' });
  expect(await jpegSize(whole.screenshot_url)).toEqual({ width: 400, height: 16_384 });
});

test.each([JAVASCRIPT, NORMAL])(
  'is the body of /screenshots with a url and %s, as clients of the screenshots API save it',
  async (token) => {
    const query = new URLSearchParams({
      token,
      url: `${site.url}/long`,
      mode: 'viewport',
      width: '400',
      height: '300',
    });
    const response = await fetch(`${app.url}/screenshots?${query}`);
    const bytes = Buffer.from(await response.arrayBuffer());
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/jpeg']);
    expect([...bytes.subarray(0, 3)]).toEqual([0xff, 0xd8, 0xff]);
    const { headers } = response;
    expect(headers.get('success')).toBe('true');
    expect(headers.get('url')).toBe(`${site.url}/long`);
    expect(Number(headers.get('remaining_requests'))).toBeGreaterThan(0);
    expect(await jpegSize(headers.get('screenshot_url') ?? '')).toEqual({
      width: 400,
      height: 300,
    });
  },
);

test('is not there under another id', async () => {
  const reply = await app.rest('GET', '/screenshots?id=x');
  expect(reply.json.code).toBe('screenshot_not_found');
  expect((await app.rest('GET', `/screenshots?url=${site.url}`)).status).toBe(401);
});

test('is never cut at its side, and never larger than 16 Mpixel', async () => {
  const { screenshot_url: url } = await crawl('/wide', { device: 'mobile' });
  const { width, height } = await jpegSize(url);
  expect(width).toBeGreaterThanOrEqual(980);
  expect(width * height).toBeLessThanOrEqual(16.1 * 1024 * 1024);
  // All 8,000 pixels of it.
  expect(height / width).toBeCloseTo(8_000 / 981, 0);
});

test('of more pixels than are ever drawn is refused at the push', async () => {
  await app.rest('POST', `/crawler/${JAVASCRIPT}`, { name: 'js' });
  const query = new URLSearchParams({
    token: JAVASCRIPT,
    crawler: 'js',
    callback: 'true',
    url: site.url,
    screenshot: 'true',
    mode: 'viewport',
    device: 'mobile',
    width: '4096',
    height: '16384',
  });
  const { status, json } = await app.rest('GET', `/?${query}`);
  expect(status).toBe(422);
  expect(json.error).toMatch(/width and height/);
});

test.each([
  ['a response without a body', '/204', 204, ''],
  ['a response that was not modified', '/304', 304, ''],
  ['a document that the browser does not show', '/document', 200, '%PDF-1.4'],
  ['a text that the browser downloads', '/csv', 200, 'a;b'],
  ['a picture that the browser downloads', '/tiff', 200, 'II*'],
  ['a download', '/download', 200, 'a,b'],
])('of %s is missing, and the page says so', async (_, path, status, body) => {
  const page = await crawl(path);
  expect(page).toMatchObject({ cb_status: 200, original_status: status, body });
  expect([page.screenshot_failed, page.screenshot_url]).toEqual(['not_drawn', undefined]);
});

test('that cannot be taken does not cost the page: it is delivered and says so', async () => {
  await using own = await startApp({
    env: { NETWORK_ALLOW: '127.0.0.1', CRAWL_TIMEOUT_SECONDS: '12' },
  });
  const result = await crawlInBrowser(own, `${site.url}/styleless`, { screenshot: 'true' });
  expect(result).toMatchObject({ cb_status: 200, screenshot_failed: 'timeout' });
  expect(result.body).toContain('the page itself');
  expect(result.screenshot_url).toBeUndefined();
  await own.rest('POST', `/crawler/${JAVASCRIPT}`, {
    name: 'pictures',
    callback_url: receiver.url,
  });
  const query = new URLSearchParams({
    token: JAVASCRIPT,
    crawler: 'pictures',
    callback: 'true',
    url: `${site.url}/styleless`,
    screenshot: 'true',
  });
  await own.rest('GET', `/?${query}`);
  await eventually(() => {
    const [delivery] = receiver.deliveries;
    expect(delivery?.headers).toMatchObject({ screenshot_failed: 'timeout', cb_status: '200' });
  });
  expect(site.hits('/styleless')).toBe(2);
});

async function jpegSize(url: string): Promise<{ width: number; height: number }> {
  const bytes = Buffer.from(await (await fetch(url)).arrayBuffer());
  for (let at = 2; at < bytes.length; at += 2 + bytes.readUInt16BE(at + 2)) {
    const marker = bytes[at + 1] ?? 0;
    if (marker >= 0xc0 && marker <= 0xc2) {
      return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
    }
  }
  throw new Error('not a JPEG');
}
