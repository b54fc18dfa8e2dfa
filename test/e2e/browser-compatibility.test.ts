import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { crawlInBrowser } from '../support/browser-crawls.ts';
import { compatiblePages, DONE } from '../support/compatible-pages.ts';
import { startCompatibleSite } from '../support/compatible-site.ts';
import { isLong } from '../support/length.ts';

// What real sites use, on small pages. In the short form the pages of which each stands for many; at full length all of them,
// and each with every other parameter.

const SHORT = ['react', 'vue', 'htmx', 'lit', 'worker', 'websocket', 'frame-content', 'csp'];

/** Parameters that change how a page is crawled, and nothing of its text. */
const OTHERS: readonly Readonly<Record<string, string>>[] = [
  { ajax_wait: 'true' },
  { page_wait: '200' },
  { scroll: 'true', scroll_interval: '1' },
  { screenshot: 'true' },
  { screenshot: 'true', mode: 'viewport', width: '800', height: '600' },
  { device: 'mobile' },
  { block_resources: 'images,media,fonts' },
  { include_frames: 'true' },
  { cookies_session: 'one' },
  { set_cookies: 'own=1' },
  { request_headers: 'x-own:1' },
  { get_headers: 'true', get_cookies: 'true' },
  { locale: 'de-DE', timezone: 'Europe/Berlin' },
  { pdf: 'true' },
];
/** Pages that are something else with a parameter: with a cookie of before, without images. */
const EXCEPT: Readonly<Record<string, string>> = {
  'lazy-image': 'block_resources',
  storage: 'set_cookies',
  'cookie-wall': 'set_cookies',
};

let app: TestApp;
let site: Awaited<ReturnType<typeof startCompatibleSite>>;

beforeAll(async () => {
  site = await startCompatibleSite();
  app = await startApp({ env: { NETWORK_ALLOW: site.host, BROWSER_PAGES: '4' } });
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

async function crawl(name: string, others: Readonly<Record<string, string>> = {}) {
  const page = compatiblePages[name];
  const parameters = { ...others, ...page?.parameters };
  const result = await crawlInBrowser(app, `${site.url}/${name}`, parameters);
  expect(result).toMatchObject({ cb_status: 200, original_status: page?.status ?? 200 });
  return result;
}

const names = Object.keys(compatiblePages).filter((name) => isLong || SHORT.includes(name));

describe('a page with', () => {
  test.each(names)('%s', async (name) => {
    // The second and third crawl may use the page of the one before.
    for (let n = 0; n < 3; n += 1) {
      const { body, url } = await crawl(name);
      expect(body).toContain(DONE);
      expect(url).toBe(`${site.url}${compatiblePages[name]?.endsAt ?? `/${name}`}`);
    }
  });

  test.runIf(isLong).each(names)('%s, and every other parameter', async (name) => {
    for (const others of OTHERS) {
      if (EXCEPT[name] !== undefined && EXCEPT[name] in others) continue;
      const result = await crawl(name, others);
      if ('pdf' in others) expect(result.body).toMatch(/^JVBERi/);
      else expect(result.body, JSON.stringify(others)).toContain(DONE);
      if ('screenshot' in others) expect(result.screenshot_url).toMatch(/^http/);
    }
  });
});

test.runIf(isLong)('every two parameters together', async () => {
  for (const [at, one] of OTHERS.entries()) {
    for (const other of OTHERS.slice(at + 1)) {
      const { body } = await crawl('vue', { ...one, ...other });
      expect(body).toContain('pdf' in other ? 'JVBERi' : DONE);
    }
  }
});
