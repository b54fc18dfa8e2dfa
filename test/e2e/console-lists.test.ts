import { afterAll, beforeAll, expect, test } from 'vitest';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { type ConsoleBrowser, openConsoleBrowser } from '../support/console-browser.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { type Site, startSite } from '../support/site.ts';

let site: Site;
let app: TestApp;
let browser: ConsoleBrowser;

beforeAll(async () => {
  site = await startSite({
    routes: {
      '/numbers.json': (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end('{"id":1234567890123456789,"big":1e400,"price":10.0,"few":[7]}');
      },
    },
  });
  app = await startApp();
  browser = await openConsoleBrowser(app.url);
});

afterAll(async () => {
  expect(browser.problems).toEqual([]);
  await browser[Symbol.asyncDispose]();
  await app[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

test('the JSON view shows numbers as the page has them', async () => {
  const crawler = await createCrawler(app, 'numbers');
  const rid = await crawler.push(`${site.url}/numbers.json`);
  await crawler.stored(rid);
  const page = await browser.open(`/jobs/${rid}`, NORMAL);
  const tree = page.locator('.tree');
  await tree.waitFor();
  expect(await tree.locator('.value').allInnerTexts()).toEqual([
    '1234567890123456789',
    '1e400',
    '10.0',
    '7',
  ]);
  await page.context().close();
});

test('Find searches again for the same text, and its field has the text of the address', async () => {
  const crawler = await createCrawler(app, 'sought');
  await crawler.post('pause');
  const page = await browser.open('/find', NORMAL);
  const field = page.getByLabel('Find', { exact: true });
  await field.fill('brand-new');
  await page.getByRole('button', { name: 'Find', exact: true }).click();
  await page.getByText('Nothing was found').waitFor();
  await crawler.pushAll([1, 2].map((n) => `http://a.example/brand-new-${n}`));
  await page.getByRole('button', { name: 'Find', exact: true }).click();
  await page.getByRole('link', { name: 'http://a.example/brand-new-2' }).waitFor();
  await page.evaluate(() => {
    history.pushState(null, '', '/console/find?q=sought');
    dispatchEvent(new PopStateEvent('popstate'));
  });
  await page.getByRole('link', { name: 'sought' }).waitFor();
  expect(await field.inputValue()).toBe('sought');
  await page.context().close();
});
