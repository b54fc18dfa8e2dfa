import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { JAVASCRIPT, startApp, type TestApp } from '../support/app.ts';
import { crawlInBrowser, htmlRoute, otherAccount } from '../support/browser-crawls.ts';
import { eventually } from '../support/eventually.ts';
import { byLength } from '../support/length.ts';
import { type Site, startSite } from '../support/site.ts';

const page = htmlRoute;

const MIB = 1024 * 1024;

let hooks = 0;
let uploaded = 0;
const routes = {
  '/console-flood': page(
    `<script>for (let n = 0; n < ${byLength(25, 100)}; n++) console.log("x".repeat(5e6)); console.error(new Error("y".repeat(5e6)));</script>`,
  ),
  '/data-flood': page(
    `<script>const data = "data:text/plain," + "x".repeat(2e7); for (let n = 0; n < ${byLength(3, 10)}; n++) fetch(data).catch(() => 0);</script>`,
  ),
  '/huge': page(
    '<div id="out" hidden></div><script>out.append(...Array.from({ length: 120 }, () => "x".repeat(1e6)));</script>',
  ),
  '/uploads': page(
    '<script>const body = "x".repeat(1e6); (async () => { for (;;) await fetch("/sink", { method: "POST", body }).catch(() => 0); })();</script>',
  ),
  '/sink': (request: IncomingMessage, response: ServerResponse) => {
    request.on('data', (chunk: Buffer) => {
      uploaded += chunk.length;
    });
    request.on('end', () => response.end());
  },
  '/script': page('<div id="out"></div><script>out.textContent = "made by " + "script";</script>'),
  '/dialogs': page(
    '<script>alert(1); confirm(2); prompt(3); document.write("after dialogs");</script>',
  ),
  '/forever': page('before<script>for (;;) {}</script>'),
  '/allocate': page(
    '<script>const all = []; for (;;) all.push(new Array(100000).fill(Math.random()));</script>',
  ),
  '/messages': page('<script>setTimeout(() => { for (;;) console.log("x"); }, 50);</script>'),
  '/buffers': page(
    '<script>const all = []; (function more() { for (let i = 0; i < 8; i++) all.push(new Uint8Array(16e6).fill(7)); setTimeout(more, 10); })();</script>',
  ),
  '/popups': page(
    '<script>for (let i = 0; i < 20; i++) open("/script"); document.write("opened");</script>',
  ),
  '/closed-popups': page(
    '<script>for (let i = 0; i < 20; i++) { open("/script")?.close(); open("/script", "", "noopener"); } document.write("opened");</script>',
  ),
  // The body is there before the script: an answer may come before the page has been read to its end.
  '/workers': page(
    `<body><script>const start = () => new Worker('data:text/javascript,new Worker("data:text/javascript,0");postMessage(1)');
    for (let i = 0; i < 40; i++) start().terminate(); let left = 40;
    for (let i = 0; i < 40; i++) start().onmessage = () => { if (--left === 0) document.body.append(document.createElement('output')); };</script>`,
  ),
  '/worker.js': (_: unknown, response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'text/javascript' });
    response.end(
      'self.addEventListener("install", () => { fetch(location.search.slice(1)).catch(() => 0); });',
    );
  },
  '/secret': (_: unknown, response: ServerResponse) => {
    hooks += 1;
    response.end('secret');
  },
};

let app: TestApp;
let site: Site;
let hidden: Site;

beforeAll(async () => {
  site = await startSite({ routes });
  hidden = await startSite({ routes });
  app = await startApp({
    env: {
      NETWORK_ALLOW: site.host,
      CRAWL_TIMEOUT_SECONDS: '30',
      BROWSER_PAGES: '2',
    },
  });
  // The first crawl unpacks the browser.
  await crawl('/script');
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
  await hidden[Symbol.asyncDispose]();
});

const crawl = (path: string, parameters: Record<string, string> = {}) =>
  crawlInBrowser(app, path.startsWith('http') ? path : site.url + path, parameters);

describe('a hostile page', () => {
  test.each(['/dialogs', '/popups', '/closed-popups'])(
    '%s does not stop the crawl',
    async (path) => {
      expect(await crawl(path)).toMatchObject({ cb_status: 200 });
    },
  );

  test('that starts many workers, and ends half of them at once, has the others', async () => {
    const { cb_status, failure, body } = await crawl('/workers', { wait_for_selector: 'output' });
    expect([cb_status, failure, body]).toEqual([200, undefined, expect.stringContaining('output')]);
  });

  test('that never stops, or allocates without end, ends in time and harms no other', async () => {
    const hostile = ['/forever', '/allocate', '/buffers'].map((path) =>
      crawl(path, { page_wait: byLength('4000', '8000') }),
    );
    const other = await otherAccount(app);
    const good = Array.from({ length: 4 }, () => crawl('/script', { token: other }));
    for (const { cb_status, failure } of await Promise.all(good)) {
      expect([cb_status, failure]).toEqual([200, undefined]);
    }
    for (const result of await Promise.all(hostile)) {
      // On a machine that is slow enough, memory does not run out before the page's time is over.
      expect([200, 522, 523, 599]).toContain(result.cb_status);
    }
    expect(await crawl('/script')).toMatchObject({ cb_status: 200 });
  });

  test('that is endless is cut off', async () => {
    expect(await crawl('/hostile/endless-body')).toMatchObject({
      cb_status: 523,
      original_status: 200,
    });
  });

  test('that floods the console or fetches its own data does not fill the service with it', async () => {
    const before = process.memoryUsage().rss;
    for (const path of ['/console-flood', '/data-flood']) {
      // With ajax_wait the browser tells of requests, too.
      await crawl(path, { ajax_wait: 'true' });
    }
    expect(await crawl('/script')).toMatchObject({ cb_status: 200 });
    expect(process.memoryUsage().rss - before).toBeLessThan(byLength(150, 400) * MIB);
  });

  test('of 120 MB is refused before it is read', async () => {
    const before = process.memoryUsage().rss;
    expect(await crawl('/huge')).toMatchObject({
      cb_status: 523,
      original_status: 200,
      failure: 'body_too_large',
    });
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * MIB);
  });
});

// Each has a service of its own.
describe.concurrent('a hostile page', () => {
  test('reaches no address that is not public, by whatever way', async () => {
    hooks = 0;
    const target = `${hidden.url}/secret`;
    const ws = target.replace('http', 'ws');
    const ways = page(`
      <img src="${target}"><link rel="stylesheet" href="${target}"><iframe src="${target}"></iframe>
      <link rel="preconnect" href="${hidden.url}"><link rel="dns-prefetch" href="${hidden.url}">
      <script>
        fetch('${target}').catch(() => 0); navigator.sendBeacon('${target}', 'x');
        new WebSocket('${ws}'); new EventSource('${target}');
        new Worker(URL.createObjectURL(new Blob(['fetch("${target}").catch(() => 0)'])));
        navigator.serviceWorker?.register('/worker.js?${target}').catch(() => 0);
        const peer = new RTCPeerConnection({ iceServers: [{ urls: 'stun:127.0.0.1:${hidden.port}' }] });
        peer.createDataChannel('x'); peer.createOffer().then((offer) => peer.setLocalDescription(offer));
        open('${target}');
      </script>`);
    await using trap = await startSite({ port: 0, routes: { '/ways': ways } });
    await using guarded = await startApp({ env: { NETWORK_ALLOW: trap.host } });
    const query = new URLSearchParams({
      token: JAVASCRIPT,
      url: `${trap.url}/ways`,
      page_wait: '1500',
      format: 'json',
    });
    const { json } = await guarded.rest('GET', `/?${query}`);
    expect(json).toMatchObject({ cb_status: 200 });
    expect(hooks).toBe(0);
    expect(hidden.connections).toBe(0);
    // Neither the page itself nor a redirect leads there.
    for (const url of [target, `${trap.url}/redirect-to?url=${encodeURIComponent(target)}`]) {
      const direct = new URLSearchParams({ token: JAVASCRIPT, url, format: 'json' });
      expect((await guarded.rest('GET', `/?${direct}`)).json).toMatchObject({ cb_status: 523 });
    }
    expect(hidden.connections).toBe(0);
  });

  test('that sends without end is cut off', async () => {
    // Time enough to send it on a busy machine, too.
    await using own = await startApp({
      env: {
        NETWORK_ALLOW: site.host,
        CRAWL_TIMEOUT_SECONDS: '180',
        MAX_BODY_BYTES: '4000000',
      },
    });
    const startedAt = uploaded;
    const result = await crawlInBrowser(own, `${site.url}/uploads`, { page_wait: '60000' });
    expect(result).toMatchObject({
      cb_status: 523,
      failure: 'body_too_large',
    });
    expect(uploaded - startedAt).toBeLessThan(8 * MIB);
  });

  test('that takes more memory than it may is a failure that stays', async () => {
    // Time enough to take it on a busy machine, too.
    await using own = await startApp({
      env: { NETWORK_ALLOW: site.host, CRAWL_TIMEOUT_SECONDS: '180' },
    });
    const result = await crawlInBrowser(own, `${site.url}/buffers`, { page_wait: '60000' });
    expect(result).toMatchObject({ cb_status: 523, failure: 'page_too_heavy' });
  });

  test('that sends the browser messages without end is ended, and others continue', async () => {
    // Time enough to notice it on a busy machine, too.
    await using own = await startApp({
      env: { NETWORK_ALLOW: site.host, CRAWL_TIMEOUT_SECONDS: '180' },
    });
    const other = await otherAccount(own);
    const hostile = crawlInBrowser(own, `${site.url}/messages`, { page_wait: '60000' });
    await eventually(() => expect(own.log.join('')).toContain('floods Chromium with messages'));
    // On a busy machine Chromium may be replaced while it still takes the messages.
    await eventually(async () => {
      const result = await crawlInBrowser(own, `${site.url}/script`, { token: other });
      expect(result).toMatchObject({ cb_status: 200 });
    });
    expect((await hostile).cb_status).toBeGreaterThanOrEqual(500);
  });
});
