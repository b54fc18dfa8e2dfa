import { expect, test } from 'vitest';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { openConsoleBrowser } from '../support/console-browser.ts';
import { faultsInBothThemes, NO_FAULTS } from '../support/console-pages.ts';
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
  expect(await faultsInBothThemes(other)).toEqual(NO_FAULTS);
  await compared.getByRole('button', { name: 'Take news out of the charts' }).click();
  await eventually(() => expect(other.url()).not.toContain('with='));
  expect(browser.problems).toEqual([]);
});

test('the live charts have a gap where the service did not answer', async () => {
  await using app = await startApp();
  const crawler = await createCrawler(app, 'gap');
  await crawler.post('pause');
  await using browser = await openConsoleBrowser(app.url);
  const page = await browser.open('/crawlers/gap', NORMAL, { hasTestClock: true });
  const waiting = page.locator('.figure', { hasText: 'Waiting' });
  const samples = async (from: TestApp, numbers: readonly number[]): Promise<void> => {
    for (const n of numbers) {
      await from.rest('POST', `${crawler.path}/push_batch`, {
        items: [{ url: `http://a.example/${n}` }],
      });
      await waiting.getByText(String(n), { exact: true }).waitFor();
      await page.clock.fastForward(5_000);
    }
  };
  await samples(app, [1, 2, 3]);
  await app.stop();
  await page.getByText('Not live: no answer since').waitFor();
  // An action that fails now says so until the service answers again.
  await page.getByRole('button', { name: 'Unpause' }).click();
  await page.getByRole('button', { name: 'Unpause', disabled: false }).waitFor();
  // The history says so as well once it is read again.
  const unanswered = page.getByText('The service does not answer.');
  await unanswered.first().waitFor();
  await page.clock.fastForward(90_000);
  const { dataDir, port } = app;
  await using again = await startApp({ dataDir, env: { PORT: String(port) } });
  await eventually(async () => {
    await page.clock.fastForward(30_000);
    expect(await page.getByText('Live', { exact: true }).count()).toBe(1);
  });
  await eventually(async () => {
    await page.clock.fastForward(30_000);
    expect(await unanswered.count()).toBe(0);
  });
  await samples(again, [4, 5, 6]);

  const card = page.getByRole('region', { name: 'Queue, since this page was opened' });
  const chart = card.getByRole('img');
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  if (box === null) throw new Error('there is no chart');
  const seen = new Set<string>();
  for (let x = 60; x < box.width; x += 2) {
    await page.mouse.move(box.x + x, box.y + box.height / 2);
    seen.add((await card.getByRole('list').innerText()).replace(/\s+/g, ' '));
  }
  expect([...seen].some((text) => /Waiting and retrying 3 /.test(text))).toBe(true);
  expect([...seen].some((text) => /Waiting and retrying no data /.test(text))).toBe(true);
  await page.mouse.move(0, 0);
  // The line is drawn at both ends, and not between them.
  const drawn = await chart.locator('canvas').evaluate((canvas: HTMLCanvasElement) => {
    const probe = document.createElement('span');
    probe.style.color = 'var(--accent)';
    document.body.append(probe);
    const [r = 0, g = 0, b = 0] = (getComputedStyle(probe).color.match(/\d+/g) ?? []).map(Number);
    probe.remove();
    const { width, height } = canvas;
    const pixels = canvas.getContext('2d')?.getImageData(0, 0, width, height).data;
    const isLine = (x: number): boolean =>
      Array.from({ length: height }, (_, y) => pixels?.subarray(4 * (y * width + x))).some(
        (at) => at?.[0] === r && at[1] === g && at[2] === b,
      );
    return Array.from({ length: width }, (_, x) => isLine(x));
  });
  const [left, right] = [drawn.indexOf(true), drawn.lastIndexOf(true)];
  const holes = drawn.slice(left, right).filter((isLine) => !isLine).length;
  expect(holes / (right - left)).toBeGreaterThan(0.5);
  expect(right - left).toBeGreaterThan(100);
  browser.problems.splice(0).forEach((each) => expect(each).toMatch(/ERR_|Failed to load/));
});
