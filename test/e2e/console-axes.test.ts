import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';
import { openConsoleBrowser } from '../support/console-browser.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';

test('charts are drawn in a browser whose language is no language tag', async () => {
  await using app = await startApp();
  await createCrawler(app, 'shop');
  await using browser = await openConsoleBrowser(app.url);
  const page = await browser.open('/crawlers/shop', NORMAL, { language: 'en-US@posix' });
  await page.getByRole('img', { name: 'Crawls per minute, last hour' }).waitFor();
  await eventually(async () => {
    expect(await page.locator('.chart canvas').count()).toBeGreaterThan(0);
  });
  expect(await page.evaluate(() => Intl.getCanonicalLocales(navigator.language))).toEqual([
    'en-GB',
  ]);
  expect(browser.problems).toEqual([]);
});
