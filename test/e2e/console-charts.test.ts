import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';
import { openConsoleBrowser } from '../support/console-browser.ts';
import { allFaults } from '../support/console-pages.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startSite } from '../support/site.ts';
import { createTestClock } from '../support/test-clock.ts';

const MINUTE = 60_000;

test('charts tell what was in the last hour, day, week and 90 days, of several crawlers', async () => {
  const clock = createTestClock();
  await using site = await startSite();
  await using app = await startApp({ clock });
  const shop = await createCrawler(app, 'shop', { max_retries: 0 });
  const news = await createCrawler(app, 'news');
  for (const page of [1, 2, 3]) await shop.push(`${site.url}/page/${page}`);
  await shop.push(`${site.url}/status/500`);
  await news.push(`${site.url}/page/9`);
  await eventually(async () => {
    expect((await shop.details()).activity).toMatchObject({ completed: 3, failed: 1 });
    expect((await news.details()).activity).toMatchObject({ completed: 1 });
  });
  const isCounted = async () => {
    const { json } = await app.rest('GET', `/timeline/${NORMAL}?crawlers=shop&crawlers=news`);
    const points = (json.crawlers as { points: { success?: number }[] }[]).map((each) =>
      each.points.reduce((all, { success = 0 }) => all + success, 0),
    );
    expect(points).toEqual([3, 1]);
  };
  clock.advance(MINUTE);
  await eventually(isCounted);
  // The service counted nothing in between.
  clock.advance(20 * MINUTE);
  await using browser = await openConsoleBrowser(app.url);
  const page = await browser.open('/crawlers/shop', NORMAL);
  const history = page.getByRole('region', { name: 'History' });
  const table = history.getByRole('table', { name: /^Last hour of shop/ });
  await history.getByText('The numbers of shop as a table').click();
  const rows = table.getByRole('row');
  await eventually(async () => {
    expect(await rows.count()).toBe(61);
    const texts = await rows.allInnerTexts();
    expect(texts.filter((text) => /\t3\t1\t/.test(text))).toHaveLength(1);
    expect(texts.filter((text) => /\t–\t–\t/.test(text)).length).toBeGreaterThan(15);
  });
  expect(await rows.first().innerText()).toContain('Europe/Berlin');

  // The crosshair tells the values where the mouse is.
  const chart = history.getByRole('img', { name: 'Crawls per minute, last hour' });
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  if (box === null) throw new Error('there is no chart');
  const legend = history.getByRole('list').first();
  const seen = new Set<string>();
  for (let x = 60; x < box.width; x += 3) {
    await page.mouse.move(box.x + x, box.y + box.height / 2);
    seen.add((await legend.innerText()).replace(/\s+/g, ' '));
  }
  expect([...seen].some((text) => /Completed 3 Failed 1 .*Europe\/Berlin/.test(text))).toBe(true);
  expect([...seen].some((text) => /Completed no data/.test(text))).toBe(true);

  await history.getByRole('button', { name: 'UTC' }).click();
  await history.getByText('Times are UTC').waitFor();
  expect(await rows.first().innerText()).toContain('From, UTC');

  for (const [range, text, steps] of [
    ['day', 'Day', 144],
    ['week', 'Week', 168],
    ['quarter', '90 days', 90],
  ] as const) {
    await history.getByRole('button', { name: text, exact: true }).click();
    expect(page.url()).toContain(`range=${range}`);
    const each = history.getByRole('table', { name: new RegExp(`^Last ${text} of shop`, 'i') });
    await eventually(async () => {
      expect(await each.getByRole('row').count()).toBe(steps + 1);
      const texts = await each.getByRole('row').allInnerTexts();
      expect(texts.filter((line) => /\t3\t1\t/.test(line))).toHaveLength(1);
    });
  }

  // Several crawlers are one chart, by an address that can be sent to others.
  await history.getByLabel('Compare shop with').selectOption('news');
  await eventually(() => expect(page.url()).toContain('with=news'));
  const other = await page.context().newPage();
  await other.goto(page.url());
  const compared = other.getByRole('region', { name: 'History' });
  await compared.getByRole('img', { name: 'Crawls per day: Completed, last 90 days' }).waitFor();
  expect(await compared.getByRole('list').first().innerText()).toMatch(/shop\s+news/);
  await compared.getByText('The numbers of news as a table').waitFor();
  for (const theme of ['light', 'dark'] as const) {
    await other.emulateMedia({ colorScheme: theme });
    expect(await allFaults(other)).toEqual([]);
  }
  await compared.getByRole('button', { name: 'Take news out of the charts' }).click();
  await eventually(() => expect(other.url()).not.toContain('with='));
  expect(browser.problems).toEqual([]);
});
