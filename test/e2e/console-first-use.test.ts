import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { ADMIN, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { type ConsoleBrowser, openConsoleBrowser } from '../support/console-browser.ts';
import { goWithin } from '../support/console-pages.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { type Site, startSite } from '../support/site.ts';

// What people meet who use the console for the first time.

let app: TestApp;
let site: Site;
let browser: ConsoleBrowser;

/** As long as a name may be. */
const LONG = `shop-${'long-name-of-a-crawler-'.repeat(3)}`.slice(0, 64);

beforeAll(async () => {
  site = await startSite();
  app = await startApp();
  browser = await openConsoleBrowser(app.url);
  await createCrawler(app, LONG);
  await createCrawler(app, 'shop');
});

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]();
  await app?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
});

afterEach(() => {
  expect(browser.problems.splice(0)).toEqual([]);
});

const focused = (page: Page) =>
  page.evaluate(() => {
    const element = document.activeElement;
    const label = element instanceof HTMLInputElement ? element.labels?.[0]?.textContent : '';
    return label || element?.id || element?.getAttribute('aria-label');
  });

test('the field that a page begins with has the focus, however one gets there', async () => {
  const page = await browser.open('/crawlers', NORMAL);
  await page.getByRole('link', { name: 'New crawler' }).click();
  await page.getByRole('heading', { name: 'New crawler' }).waitFor();
  expect(await focused(page)).toBe('Name');
  const places = page.getByRole('navigation', { name: 'Places' });
  for (const [place, field] of [
    ['Crawl', 'URL'],
    ['Find', 'Find'],
    ['Storage', 'main'],
  ] as const) {
    await places.getByRole('link', { name: place, exact: true }).click();
    await eventually(async () => expect([place, await focused(page)]).toEqual([place, field]));
  }
  await page.context().close();
});

test('a dialog that asks for something has the focus in its field', async () => {
  const page = await browser.open('/crawlers/shop', NORMAL);
  await page.getByRole('button', { name: 'Purge the queue…' }).click();
  await page.getByRole('dialog').waitFor();
  expect(await focused(page)).toBe('Type shop to confirm');
  await page.keyboard.type('shop');
  await page.keyboard.press('Enter');
  await page.getByText('Removed 0 URLs').waitFor();
  await goWithin(page, '/proxies');
  await page.getByRole('button', { name: 'New pool' }).first().click();
  await page.getByRole('dialog').waitFor();
  expect(await focused(page)).toBe('Name');
  await page.context().close();

  const operator = await browser.open('/accounts', ADMIN);
  await operator.getByRole('button', { name: 'New account' }).click();
  await operator.getByRole('dialog').waitFor();
  expect(await focused(operator)).toBe('Name');
  await operator.context().close();
});
