import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { JAVASCRIPT, startApp, type TestApp } from '../support/app.ts';
import { bytesRoute, crawlInBrowser, htmlRoute } from '../support/browser-crawls.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { type Site, startSite } from '../support/site.ts';

const later = (ms: number, script: string): string =>
  `<script>setTimeout(() => { ${script} }, ${ms});</script>`;

const routes = {
  '/late': htmlRoute(
    later(600, 'document.body.insertAdjacentHTML("beforeend", "<p class=late>late</p>")'),
  ),
  '/late-in-shadow': htmlRoute(
    `<div id="host"></div>${later(300, 'host.attachShadow({ mode: "open" }).innerHTML = "<p class=late>late</p>"')}`,
  ),
  '/leads-on': htmlRoute(later(300, 'location.href = "/late"')),
  '/spoilt': htmlRoute(
    `${later(300, 'document.body.insertAdjacentHTML("beforeend", "<p class=late>late</p>")')}
    <script>JSON.stringify = document.querySelector = Array.prototype.some = () => { throw 'spoilt'; };
    Object.freeze(Object.prototype); window.Object = window.Promise = undefined;</script>`,
  ),
  '/assets':
    htmlRoute(`<link rel="stylesheet" href="/style.css"><img src="/image.png"><video src="/video.mp4"></video>
    <script src="/script.js"></script><p style="font-family: own">text</p>`),
  '/style.css': bytesRoute(
    'text/css',
    '@font-face { font-family: own; src: url(/font.woff2); } p { color: red; }',
  ),
  '/script.js': bytesRoute('text/javascript', 'document.write("<p>scripted</p>")'),
  '/image.png': bytesRoute('image/png', ''),
  '/font.woff2': bytesRoute('font/woff2', ''),
  '/video.mp4': bytesRoute('video/mp4', ''),
  '/framed': htmlRoute(
    '<h1>outer</h1><iframe src="/inner" name="one"></iframe><iframe srcdoc="<p>written in place</p>"></iframe>',
  ),
  '/inner': htmlRoute(
    '<p id="made"></p><script>made.textContent = "made " + "inside";</script><iframe src="/innermost"></iframe>',
  ),
  '/innermost': htmlRoute('<b>innermost</b>'),
};

let app: TestApp;
let site: Site;

beforeAll(async () => {
  site = await startSite({ routes });
  app = await startApp({ env: { NETWORK_ALLOW: `${site.host},localhost:${site.port}` } });
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

const crawl = (path: string, parameters: Record<string, string> = {}) =>
  crawlInBrowser(app, site.url + path, parameters);

describe('wait_for_selector', () => {
  test.each([
    ['for an element that comes late', '/late'],
    ['in open shadow trees', '/late-in-shadow'],
    ['over navigations', '/leads-on'],
    ['whatever the page has done to its own world', '/spoilt'],
  ])('waits %s', async (_, path) => {
    const result = await crawl(path, { wait_for_selector: '.never, .late' });
    expect(result).toMatchObject({ cb_status: 200 });
    expect(result.body).toMatch(/class="?late/);
  });

  test('says that an element did not come, and has the page', async () => {
    // The start of the browser counts in the time of the first crawl.
    await using own = await startApp({
      env: { NETWORK_ALLOW: site.host, CRAWL_TIMEOUT_SECONDS: '20' },
    });
    const result = await crawlInBrowser(own, `${site.url}/late`, { wait_for_selector: '.never' });
    expect(result).toMatchObject({ cb_status: 523, failure: 'selector_not_found' });
    expect(result.body).toContain('late');
  });
});

describe('block_resources', () => {
  const assets = ['/style.css', '/image.png', '/font.woff2', '/video.mp4', '/script.js'];
  test.each([
    ['images', ['/image.png']],
    ['fonts,media', ['/font.woff2', '/video.mp4']],
    ['stylesheets', ['/style.css', '/font.woff2']],
    ['third_party', []],
  ])('%s', async (names, blocked) => {
    const before = new Map(assets.map((path) => [path, site.hits(path)]));
    const { body } = await crawl('/assets', { block_resources: names, ajax_wait: 'true' });
    expect(body).toContain('scripted');
    const loaded = assets.filter((path) => site.hits(path) > (before.get(path) ?? 0));
    expect(loaded).toEqual(assets.filter((path) => !blocked.includes(path)));
  });

  test('third_party leaves out what other sites have, but not their frames of the own site', async () => {
    const other = `http://localhost:${site.port}`;
    const html = `<img src="${other}/image.png"><script src="${other}/script.js"></script><iframe src="${other}/inner"></iframe>`;
    await using own = await startSite({ routes: { '/mixed': htmlRoute(html) } });
    await using wide = await startApp({
      env: { NETWORK_ALLOW: `${own.host},localhost:${site.port}` },
    });
    const before = site.hits();
    const result = await crawlInBrowser(wide, `${own.url}/mixed`, {
      block_resources: 'third_party',
    });
    expect(result).toMatchObject({ cb_status: 200 });
    expect(site.hits()).toBe(before);
  });

  test('ads leaves out what advertising companies have, and nothing of other sites', async () => {
    await using dns = await startDnsServer({ '*.criteo.net': ['127.0.0.1'] });
    const advertiser = `http://static.criteo.net:${site.port}`;
    const other = `http://localhost:${site.port}`;
    const html = `<script src="${other}/script.js"></script><script src="${advertiser}/script.js?ad"></script>`;
    await using own = await startSite({ routes: { '/': htmlRoute(html) } });
    await using wide = await startApp({
      env: {
        NETWORK_ALLOW: `${own.host},localhost:${site.port},127.0.0.1`,
        DNS_SERVERS: dns.address,
      },
    });
    const scripted = async (url: string, parameters: Readonly<Record<string, string>> = {}) =>
      (await crawlInBrowser(wide, url, parameters)).body.split('<p>scripted</p>').length - 1;
    expect(await scripted(own.url)).toBe(2);
    expect(await scripted(own.url, { block_resources: 'ads' })).toBe(1);
    // The company's own pages have what they need.
    const page = `${advertiser}/assets`;
    expect(await scripted(page, { block_resources: 'ads' })).toBe(1);
  });
});

test('include_frames puts frames in their places, open ones in each other too', async () => {
  expect((await crawl('/framed')).body).not.toContain('made inside');
  const { body } = await crawl('/framed', { include_frames: 'true' });
  expect(body).toContain(`<div data-frame="${site.url}/inner">`);
  expect(body).toMatch(/outer[^]*made inside[^]*<b>innermost<\/b>[^]*written in place/);
});

test('pdf is the page printed, of what waits and clicks have made of it', async () => {
  const query = new URLSearchParams({
    token: JAVASCRIPT,
    url: `${site.url}/late`,
    pdf: 'true',
    wait_for_selector: '.late',
  });
  const response = await fetch(`${app.url}/?${query}`);
  expect(response.headers.get('content-type')).toBe('application/pdf');
  expect(Buffer.from(await response.arrayBuffer()).toString('latin1')).toMatch(/^%PDF-[^]*%%EOF/);
});

test('js_snippet runs in the page where the operator allows it, and nowhere else', async () => {
  const refused = await crawl('/late', { js_snippet: '1' });
  expect(refused).toMatchObject({ field: 'js_snippet' });
  await using own = await startApp({ env: { NETWORK_ALLOW: site.host, JS_SNIPPETS: 'allowed' } });
  const run = (js_snippet: string) => crawlInBrowser(own, `${site.url}/framed`, { js_snippet });
  const well = await run(
    'fetch("/page/7").then(() => { document.title = "made by " + "snippet"; })',
  );
  expect(well).toMatchObject({ cb_status: 200, body: expect.stringContaining('made by snippet') });
  expect(await run('location.href = "/innermost"; new Promise(() => {})')).toMatchObject({
    cb_status: 200,
    url: `${site.url}/innermost`,
  });
  for (const script of ['throw 1', 'syntax error(']) {
    const failed = await run(script);
    expect(failed).toMatchObject({ cb_status: 523, failure: 'snippet_failed' });
    expect(failed.body).toContain('outer');
  }
});

test.each([
  ['block_resources', { block_resources: 'images,cats' }],
  ['wait_for_selector', { wait_for_selector: '[[' }],
  ['pdf', { pdf: 'true', format: 'md' }],
  ['pdf', { pdf: 'true', scraper: 'links' }],
])('%s says what it does not take', async (field, parameters) => {
  const query = new URLSearchParams({ token: JAVASCRIPT, url: site.url, ...parameters });
  expect(await app.rest('GET', `/?${query}`)).toMatchObject({ status: 422, json: { field } });
});
