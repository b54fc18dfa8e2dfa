import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createBrowserPool } from '../../src/crawler/browser/browser-pool.ts';
import { JAVASCRIPT, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { startProxy } from '../support/proxy.ts';
import { startProcess } from '../support/service-process.ts';
import { type Site, startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { silentLogger } from '../support/webhook-fixtures.ts';

const page = (html: string) => (_request: unknown, response: ServerResponse) => {
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
  response.end(`<!doctype html><title>Test</title>${html}`);
};

let hooks = 0;
const routes = {
  '/script': page('<div id="out"></div><script>out.textContent = "made by " + "script";</script>'),
  '/late': page(
    '<div id="out"></div><script>setTimeout(() => { out.textContent = "late " + "content"; }, 700);</script>',
  ),
  '/ajax': page(
    '<div id="out"></div><script>setTimeout(() => fetch("/delay/400").then(() => { out.textContent = "fetched"; }), 100);</script>',
  ),
  '/click': page(
    '<button class="more" onclick="out.textContent = `clicked`">more</button><div id="out"></div>',
  ),
  '/long': page(
    '<div style="height: 20000px"></div><p id="out"></p><script>addEventListener("scroll", () => { out.textContent = "scrolled to " + Math.round(scrollY); });</script>',
  ),
  '/who': page(
    '<script>document.write("width " + innerWidth + " touch " + navigator.maxTouchPoints + " agent " + navigator.userAgent + " cookies " + document.cookie);</script>',
  ),
  '/json': (_: unknown, response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end('{"a": 1}');
  },
  '/file': (_: unknown, response: ServerResponse) => {
    response.writeHead(200, {
      'content-type': 'application/octet-stream',
      'content-disposition': 'attachment; filename=a.bin',
    });
    response.end(Buffer.from([1, 2, 3, 250]));
  },
  '/dialogs': page(
    '<script>alert(1); confirm(2); prompt(3); document.write("after dialogs");</script>',
  ),
  '/forever': page('before<script>for (;;) {}</script>'),
  '/allocate': page(
    '<script>const all = []; for (;;) all.push(new Array(100000).fill(Math.random()));</script>',
  ),
  '/buffers': page(
    '<script>const all = []; (function more() { for (let i = 0; i < 8; i++) all.push(new Uint8Array(16e6).fill(7)); setTimeout(more, 10); })();</script>',
  ),
  '/popups': page(
    '<script>for (let i = 0; i < 20; i++) open("/script"); document.write("opened");</script>',
  ),
  '/never-quiet': page('ready<script>setInterval(() => fetch("/page/1"), 50);</script>'),
  '/moves': page('<script>location.href = "/script";</script>'),
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
    env: { NETWORK_ALLOW: site.host, CRAWL_TIMEOUT_SECONDS: '12', BROWSER_PAGES: '2' },
  });
  // The first crawl unpacks the browser.
  await crawl('/script');
}, 120_000);

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
  await hidden[Symbol.asyncDispose]();
});

/** An inline crawl with the JavaScript token, as JSON. */
async function crawl(path: string, parameters: Record<string, string> = {}) {
  const url = path.startsWith('http') ? path : site.url + path;
  const query = new URLSearchParams({ token: JAVASCRIPT, url, format: 'json', ...parameters });
  return (await app.rest('GET', `/?${query}`)).json;
}

describe('a crawl in a browser', () => {
  test('gives the page as its scripts have made it', async () => {
    const result = await crawl('/script');
    expect(result).toMatchObject({ cb_status: 200, original_status: 200 });
    expect(result.body).toContain('made by script');
  });

  test('follows where scripts lead', async () => {
    const result = await crawl('/moves', { page_wait: '500' });
    expect(result).toMatchObject({ cb_status: 200, url: `${site.url}/script` });
    expect(result.body).toContain('made by script');
  });

  test('waits as long as page_wait says', async () => {
    expect((await crawl('/late')).body).not.toContain('late content');
    expect((await crawl('/late', { page_wait: '1500' })).body).toContain('late content');
  });

  test('waits for the network with ajax_wait, but not for ever', async () => {
    expect((await crawl('/ajax', { ajax_wait: 'true' })).body).toContain('fetched');
    expect((await crawl('/never-quiet', { ajax_wait: 'true' })).body).toContain('ready');
  }, 40_000);

  test('clicks the element of css_click_selector, and says when there is none', async () => {
    expect((await crawl('/click', { css_click_selector: 'button.more' })).body).toContain(
      'clicked',
    );
    const missing = await crawl('/click', { css_click_selector: '#nowhere' });
    expect(missing).toMatchObject({ cb_status: 523, original_status: 200 });
    expect(missing.body).toContain('more');
  }, 40_000);

  test('scrolls for scroll_interval seconds', async () => {
    const startedAt = Date.now();
    const { body } = await crawl('/long', { scroll: 'true', scroll_interval: '2' });
    expect(Date.now() - startedAt).toBeGreaterThan(2_000);
    expect(Number(/scrolled to (\d+)/.exec(body)?.[1])).toBeGreaterThan(3_000);
  });

  test('is what device, user_agent, width and cookies say', async () => {
    const mobile = (await crawl('/who', { device: 'mobile' })).body;
    expect(mobile).toMatch(/touch [1-9]/);
    expect(mobile).toContain('Android');
    const sized = (await crawl('/who', { width: '800', height: '600', user_agent: 'Own/1.0' }))
      .body;
    expect(sized).toContain('width 800 touch 0 agent Own/1.0');
    expect((await crawl('/who', { set_cookies: 'a=1; b=two' })).body).toContain(
      'cookies a=1; b=two',
    );
    const { body } = await crawl('/echo', { request_headers: 'X-Own:value|accept-language:de' });
    expect(body).toContain('"x-own":"value"');
    expect(body).toContain('"accept-language":"de"');
  }, 40_000);

  test('keeps cookies for a cookies_session', async () => {
    await crawl('/cookies/set?kept=yes', { cookies_session: 'one' });
    expect((await crawl('/who', { cookies_session: 'one' })).body).toContain('kept=yes');
    expect((await crawl('/who', { cookies_session: 'two' })).body).not.toContain('kept=yes');
  });

  test('takes a picture that lives at screenshot_url', async () => {
    const result = await crawl('/long', { screenshot: 'true', width: '400', height: '300' });
    const whole = await app.rest('GET', result.screenshot_url.slice(app.url.length));
    expect(whole.status).toBe(200);
    expect(whole.headers.get('content-type')).toBe('image/jpeg');
    const part = await crawl('/long', {
      screenshot: 'true',
      mode: 'viewport',
      width: '400',
      height: '300',
    });
    expect(await jpegSize(part.screenshot_url)).toEqual({ width: 400, height: 300 });
    const { width, height } = await jpegSize(result.screenshot_url);
    expect(width).toBe(400);
    expect(height).toBeGreaterThan(10_000);
  }, 40_000);

  test('gives headers and Set-Cookie when asked', async () => {
    const result = await crawl('/cookies/set?a=1', { get_headers: 'true', get_cookies: 'true' });
    expect(result['original_content-type'] ?? result.original_content_type).toContain('text/html');
    expect(result.original_set_cookie).toContain('a=1');
  });

  test('gives what is no page in its own bytes', async () => {
    expect((await crawl('/json')).body).toBe('{"a": 1}');
    const file = await crawl('/file');
    expect(file.cb_status).toBe(200);
    expect(Buffer.from(file.body, 'base64')).toEqual(Buffer.from([1, 2, 3, 250]));
  });

  test('reports statuses and failures like any crawl', async () => {
    expect(await crawl('/status/404')).toMatchObject({ cb_status: 200, original_status: 404 });
    expect(await crawl('/status/503')).toMatchObject({ cb_status: 503, original_status: 503 });
    expect(await crawl('/empty')).toMatchObject({ cb_status: 520 });
    expect(await crawl('/redirect/2')).toMatchObject({ url: `${site.url}/page/0` });
    expect(await crawl('/loop')).toMatchObject({ cb_status: 523, original_status: 0 });
    expect(await crawl('http://nowhere.invalid/')).toMatchObject({ cb_status: 521 });
  }, 40_000);

  test('works from a queue to storage', async () => {
    await app.rest('POST', `/crawler/${JAVASCRIPT}`, { name: 'js' });
    const url = encodeURIComponent(`${site.url}/script`);
    const { json } = await app.rest(
      'GET',
      `/?token=${JAVASCRIPT}&crawler=js&callback=true&url=${url}`,
    );
    await expect
      .poll(
        async () => (await app.rest('GET', `/storage?token=${JAVASCRIPT}&rid=${json.rid}`)).text,
        { timeout: 20_000 },
      )
      .toContain('made by script');
  }, 30_000);

  test('goes through the proxy of its country', async () => {
    await using proxy = await startProxy({ target: site.host });
    const PROXIES = JSON.stringify({ DE: proxy.url });
    await using abroad = await startApp({ env: { NETWORK_ALLOW: site.host, PROXIES } });
    const query = { token: JAVASCRIPT, url: `${site.url}/script`, country: 'DE', format: 'json' };
    const { json } = await abroad.rest('GET', `/?${new URLSearchParams(query)}`);
    expect(json).toMatchObject({ cb_status: 200 });
    expect(json.body).toContain('made by script');
    expect(new Set(proxy.asked)).toEqual(new Set([site.host]));
  }, 30_000);

  test('is for the JavaScript token', async () => {
    const query = new URLSearchParams({ token: NORMAL, url: site.url, page_wait: '5' });
    const { status, json } = await app.rest('GET', `/?${query}`);
    expect(status).toBe(422);
    expect(json.error).toMatch(/page_wait.*JavaScript token/);
  });
});

describe('a hostile page', () => {
  test.each(['/dialogs', '/popups'])('%s goes on', async (path) => {
    expect(await crawl(path)).toMatchObject({ cb_status: 200 });
  });

  test('that never stops, or allocates without end, ends in time and harms no other', async () => {
    const hostile = ['/forever', '/allocate', '/buffers'].map((path) =>
      crawl(path, { page_wait: '8000' }),
    );
    const good = Array.from({ length: 4 }, () => crawl('/script'));
    for (const result of await Promise.all(good)) {
      expect(result).toMatchObject({ cb_status: 200 });
    }
    for (const result of await Promise.all(hostile)) {
      expect([522, 599]).toContain(result.cb_status);
    }
    expect(await crawl('/script')).toMatchObject({ cb_status: 200 });
  }, 90_000);

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
  }, 60_000);

  test('that is endless is cut off', async () => {
    expect(await crawl('/hostile/endless-body')).toMatchObject({ cb_status: 523 });
  }, 60_000);
});

test('a browser that crashes, or has shown many pages, is replaced', async () => {
  for (const pid of childrenOf(process.pid)) process.kill(pid, 'SIGKILL');
  await expect.poll(async () => (await crawl('/script')).cb_status, { timeout: 10_000 }).toBe(200);

  const pool = createBrowserPool({
    chromiumPath: '',
    pages: 1,
    logger: silentLogger,
    recycleAfter: 2,
  });
  const browsers: unknown[] = [];
  for (let n = 0; n < 5; n++) {
    await using lent = await pool.lend({}, new AbortController().signal);
    browsers.push(lent.context.browser());
  }
  expect(new Set(browsers).size).toBe(3);
  await pool.close();
}, 60_000);

test('SIGTERM lets a crawl in the browser end, and leaves no browser behind', async () => {
  await using folder = await temporaryFolder();
  await using service = await startProcess({ DATA_DIR: folder.path, SHUTDOWN_SECONDS: '15' });
  await service.rest('POST', `/crawler/${JAVASCRIPT}`, { name: 'js' });
  const push = await service.rest(
    'GET',
    `/?token=${JAVASCRIPT}&crawler=js&callback=true&page_wait=2500&url=${encodeURIComponent(`${site.url}/late`)}`,
  );
  const hits = site.hits('/late');
  await expect.poll(() => site.hits('/late'), { timeout: 20_000 }).toBe(hits + 1);
  const browsers = childrenOf(service.process.pid);
  expect(browsers).not.toEqual([]);
  expect(await service.terminate()).toBe(0);
  expect(browsers.filter((pid) => existsSync(`/proc/${pid}`))).toEqual([]);
  await using next = await startProcess({ DATA_DIR: folder.path });
  const stored = await next.rest('GET', `/storage?token=${JAVASCRIPT}&rid=${push.json.rid}`);
  expect(stored.text).toContain('late content');
}, 60_000);

test('without a browser the crawl says so, and the log names what to set', async () => {
  await using without = await startApp({
    env: { NETWORK_ALLOW: '127.0.0.1', CHROMIUM_PATH: '/nowhere/chromium' },
  });
  const query = new URLSearchParams({ token: JAVASCRIPT, url: site.url, format: 'json' });
  const { json } = await without.rest('GET', `/?${query}`);
  expect(json).toMatchObject({ cb_status: 523, original_status: 0 });
  expect(without.log.join('')).toContain('CHROMIUM_PATH');
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

/** The Chromiums that a process has started. */
function childrenOf(parent: number | undefined): number[] {
  const lines = execFileSync('ps', ['-eo', 'ppid=,pid=,args=']).toString().split('\n');
  return lines.flatMap((line) => {
    const [, ppid, pid, args = ''] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    return Number(ppid) === parent && args.includes('chromium-') ? [Number(pid)] : [];
  });
}
