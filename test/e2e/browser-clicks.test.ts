import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { crawlInBrowser, htmlRoute } from '../support/browser-crawls.ts';
import { CLICKED, clickPages, startClickSite } from '../support/click-site.ts';
import { launchBrowser } from '../support/console-browser.ts';
import { isLong } from '../support/length.ts';
import { startSite } from '../support/site.ts';

// The page that a crawl with `css_click_selector` delivers is the one that a person sees after the click.

let app: TestApp;
let clicks: Awaited<ReturnType<typeof startClickSite>>;

beforeAll(async () => {
  clicks = await startClickSite();
  app = await startApp({ env: { NETWORK_ALLOW: '127.0.0.1', BROWSER_PAGES: '6' } });
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await clicks[Symbol.asyncDispose]();
});

const names = Object.keys(clickPages).filter((name) => isLong || !clickPages[name]?.isLong);

const delivered = new Set<string>();

describe('a click is followed to', () => {
  test.concurrent.each(names)('%s', async (name) => {
    const result = await crawlInBrowser(app, clicks.pageOf(name), { css_click_selector: '#go' });
    expect(result).toMatchObject({ cb_status: 200 });
    expect(result.body).toContain(CLICKED);
    delivered.add(name);
  });
});

test.runIf(isLong)('what Playwright sees after a click, a crawl delivers', async () => {
  await using browser = await launchBrowser();
  const seen = await Promise.all(
    names.map(async (name) => {
      const page = await browser.newPage();
      await page.goto(clicks.pageOf(name));
      await page.click('#go');
      await page.waitForLoadState('networkidle');
      // It refuses to read a page that is navigating again.
      const html = await page.content().catch(() => '');
      return html.includes(CLICKED) ? [name] : [];
    }),
  );
  expect([...delivered]).toEqual(expect.arrayContaining(seen.flat()));
  expect(seen.flat()).toContain('a form by POST');
});

test('a click that starts nothing, or what never ends, is not waited for without end', async () => {
  const buttons = htmlRoute(`<button id="nothing">1</button>
    <button id="polls" onclick="setInterval(() => fetch('/page/1?' + Math.random()), 50)">2</button>
    <button id="streams" onclick="new EventSource('/hang')">3</button>`);
  await using site = await startSite({ routes: { '/buttons': buttons } });
  const ended: string[] = [];
  const clicked = ['#nothing|#nothing|#nothing', '#polls', '#streams'].map(async (selector) => {
    const parameters = { css_click_selector: selector };
    const result = await crawlInBrowser(app, `${site.url}/buttons`, parameters);
    expect(result).toMatchObject({ cb_status: 200 });
    ended.push(selector);
  });
  await crawlInBrowser(app, `${site.url}/buttons`, { page_wait: '6000' });
  expect(ended.toSorted()).toEqual(['#nothing|#nothing|#nothing', '#polls', '#streams']);
  await Promise.all(clicked);
});
