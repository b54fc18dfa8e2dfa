import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';
import { openConsoleBrowser } from '../support/console-browser.ts';
import { allFaults } from '../support/console-pages.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';

test('cards are sorted on a telephone, and the chosen segment stands out in the dark', async () => {
  await using app = await startApp();
  for (const [name, waiting] of [
    ['few', 1],
    ['many', 3],
    ['none', 0],
  ] as const) {
    const made = await createCrawler(app, name);
    await made.post('pause');
    for (let at = 0; at < waiting; at += 1) await made.push(`http://a.example/${at}`);
  }
  await using browser = await openConsoleBrowser(app.url);
  const page = await browser.open('/crawlers', NORMAL, { width: 375, theme: 'dark' });
  const names = () => page.locator('tbody tr a').allInnerTexts();
  await eventually(async () => expect(await names()).toEqual(['few', 'many', 'none']));
  await page.getByLabel('Sort by').selectOption({ label: 'Waiting' });
  await eventually(async () => expect(await names()).toEqual(['many', 'few', 'none']));
  await page.getByRole('button', { name: 'Highest first' }).click();
  await eventually(async () => expect(await names()).toEqual(['none', 'few', 'many']));
  expect(page.url()).toContain('sort=waiting');
  expect(await allFaults(page)).toEqual([]);

  const lightness = (selector: string) =>
    page
      .locator(selector)
      .first()
      .evaluate((element) =>
        (getComputedStyle(element).backgroundColor.match(/[\d.]+/g) ?? [])
          .slice(0, 3)
          .reduce((sum, part) => sum + Number(part), 0),
      );
  const chosen = await lightness('.segments button[aria-pressed="true"]');
  expect(chosen).toBeGreaterThan(1.5 * (await lightness('.segments')));
  await page.setViewportSize({ width: 1_440, height: 900 });
  expect(await page.getByLabel('Sort by').isVisible()).toBe(false);
  expect(browser.problems).toEqual([]);
});
