import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { JAVASCRIPT, startApp, type TestApp } from '../support/app.ts';
import { crawlInBrowser, htmlRoute } from '../support/browser-crawls.ts';
import { eventually } from '../support/eventually.ts';
import { startProxy } from '../support/proxy.ts';
import { type Site, startSite } from '../support/site.ts';

const page = htmlRoute;

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
  '/fonts': page(
    `<p id="out"></p><script>
      const pen = document.createElement('canvas').getContext('2d');
      const width = (font) => { pen.font = '40px ' + font; return pen.measureText('WWWiii').width; };
      out.textContent = 'own font ' + (width('"Open Sans", monospace') !== width('monospace'));
    </script>`,
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
  '/never-quiet': page('ready<script>setInterval(() => fetch("/page/1"), 50);</script>'),
  '/moves': page('<script>location.href = "/script";</script>'),
};

let app: TestApp;
let site: Site;

beforeAll(async () => {
  site = await startSite({ routes });
  app = await startApp({
    env: { NETWORK_ALLOW: site.host, BROWSER_PAGES: '2' },
  });
  // The first crawl unpacks the browser.
  await crawl('/script');
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

const crawl = (path: string, parameters: Record<string, string> = {}) =>
  crawlInBrowser(app, path.startsWith('http') ? path : site.url + path, parameters);

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
  });

  test('clicks the element of css_click_selector, and says when it does not exist', async () => {
    expect((await crawl('/click', { css_click_selector: 'button.more' })).body).toContain(
      'clicked',
    );
    const missing = await crawl('/click', { css_click_selector: '#nowhere' });
    expect(missing).toMatchObject({ cb_status: 523, original_status: 200 });
    expect(missing.body).toContain('more');
  });

  test('scrolls for scroll_interval seconds', async () => {
    const startedAt = Date.now();
    const { body } = await crawl('/long', { scroll: 'true', scroll_interval: '2' });
    expect(Date.now() - startedAt).toBeGreaterThan(2_000);
    // More than a screen; how far it comes is up to the machine.
    expect(Number(/scrolled to (\d+)/.exec(body)?.[1])).toBeGreaterThan(1_000);
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
  });

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
  });

  test('has a font of its own, for machines that have none', async () => {
    expect((await crawl('/fonts')).body).toContain('own font true');
  });

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
    expect(await crawl('/loop')).toMatchObject({ cb_status: 523, original_status: 302 });
    expect(await crawl('http://nowhere.invalid/')).toMatchObject({ cb_status: 521 });
  });

  test('works from a queue to storage', async () => {
    await app.rest('POST', `/crawler/${JAVASCRIPT}`, { name: 'js' });
    const url = encodeURIComponent(`${site.url}/script`);
    const { json } = await app.rest(
      'GET',
      `/?token=${JAVASCRIPT}&crawler=js&callback=true&url=${url}`,
    );
    await eventually(async () => {
      const { text } = await app.rest('GET', `/storage?token=${JAVASCRIPT}&rid=${json.rid}`);
      expect(text).toContain('made by script');
    });
  });

  test('goes through the proxy of its country', async () => {
    await using proxy = await startProxy({ target: site.host });
    const PROXIES = JSON.stringify({ DE: proxy.url });
    await using abroad = await startApp({ env: { NETWORK_ALLOW: site.host, PROXIES } });
    const query = { token: JAVASCRIPT, url: `${site.url}/script`, country: 'DE', format: 'json' };
    const { json } = await abroad.rest('GET', `/?${new URLSearchParams(query)}`);
    expect(json).toMatchObject({ cb_status: 200 });
    expect(json.body).toContain('made by script');
    expect(new Set(proxy.asked)).toEqual(new Set([site.host]));
  });
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
