import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startApp } from '../support/app.ts';
import { type ConsoleBrowser, openConsoleBrowser } from '../support/console-browser.ts';
import { allFaults, expectAccessiblePages, type PageLook } from '../support/console-pages.ts';
import { type ConsoleScene, startConsoleScene } from '../support/console-scene.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { isLong } from '../support/length.ts';
import { JAVASCRIPT, NORMAL } from '../support/tokens.ts';

// What takes too long for `npm test`; the rest is in console.test.ts.
describe.runIf(isLong)('the console', () => {
  let scene: ConsoleScene;
  let browser: ConsoleBrowser;

  beforeAll(async () => {
    scene = await startConsoleScene();
    browser = await openConsoleBrowser(scene.app.url);
  });

  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await scene?.[Symbol.asyncDispose]();
  });

  afterEach(() => {
    expect(browser.problems.splice(0)).toEqual([]);
  });

  test('is accessible at every width, in both themes, and at a zoom of 200 %', async () => {
    const looks = (['light', 'dark'] as const).flatMap((theme): PageLook[] => [
      ...[1_440, 768, 375].map((width) => ({ width, theme })),
      { width: 1_440, theme, zoom: 2 },
      { width: 768, theme, zoom: 2 },
    ]);
    await expectAccessiblePages(browser, scene, looks);
  });

  test('says that of too many crawlers only the first are listed, and finds the others', async () => {
    const names = Array.from({ length: 10_001 }, (_, at) => `many-${String(at).padStart(5, '0')}`);
    const left = names.values();
    await using app = await startApp({
      env: { ACCOUNT_REQUESTS_PER_SECOND: '0', ACCOUNT_CRAWLERS: '0', ACCOUNT_CONCURRENCY: '0' },
    });
    const make = async (): Promise<void> => {
      for (const name of left) await createCrawler(app, name);
    };
    await Promise.all(Array.from({ length: 16 }, make));
    const last = names.at(-1) ?? '';
    await using console = await openConsoleBrowser(app.url);
    const page = await console.open('/crawlers', NORMAL);
    await page.getByText('Only the first 10,000 crawlers are listed').waitFor();
    expect(await allFaults(page)).toEqual([]);
    await page.keyboard.press('Control+k');
    await page.keyboard.type(last);
    const palette = page.getByRole('dialog');
    await palette.getByText('Only the first 10,000 crawlers are searched here').waitFor();
    expect(await allFaults(page)).toEqual([]);
    await palette.getByRole('option', { name: /^Find/ }).click();
    await page.getByRole('main').getByRole('link', { name: last }).click();
    await page.getByRole('heading', { name: last }).waitFor();
    expect(console.problems.filter((each) => !each.includes('400'))).toEqual([]);
    await page.context().close();
  });

  test('shows a screenshot that a browser took with the JavaScript token', async () => {
    const page = await browser.open('/crawl', JAVASCRIPT);
    await page.getByLabel('URL', { exact: true }).fill(`${scene.site.url}/article`);
    await page.getByText('Screenshot and PDF', { exact: true }).click();
    await page.getByLabel('Screenshot', { exact: true }).selectOption('true');
    await page.getByLabel('Keep a copy in storage').check();
    await page.getByRole('button', { name: 'Crawl', exact: true }).click();
    const isPicture = async (): Promise<void> => {
      await page.getByRole('button', { name: 'Screenshot' }).click();
      const picture = page.getByRole('img', { name: /^Screenshot of .*article/ });
      await picture.waitFor();
      const width = await picture.evaluate(async (image: HTMLImageElement) => {
        await image.decode();
        return image.naturalWidth;
      });
      expect(width).toBeGreaterThan(100);
    };
    await isPicture();
    const rid = await page.getByText(/^[0-9a-f]{24}$/).innerText();
    await page.getByRole('link', { name: 'Storage' }).click();
    await page.getByText(rid).waitFor();
    await page.getByRole('button', { name: /^Open the result of/ }).click();
    await isPicture();
    const query = `token=${JAVASCRIPT}&rid=${rid}&format=json`;
    const stored = await scene.app.rest('GET', `/storage?${query}`);
    expect(stored.json.screenshot_url).toContain(scene.app.url);
    await page.context().close();
  });
});
