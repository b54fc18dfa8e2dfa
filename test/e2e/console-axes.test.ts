import { expect, test } from 'vitest';
import { ADMIN, NORMAL, startApp } from '../support/app.ts';
import { openConsoleBrowser } from '../support/console-browser.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';

/** A text that a canvas was told to draw, and where it begins, in pixels of the canvas. */
interface DrawnText {
  readonly text: string;
  readonly left: number;
}

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

test('the labels of a chart are drawn whole', async () => {
  await using app = await startApp();
  await using browser = await openConsoleBrowser(app.url);
  const page = await browser.open('/system', ADMIN, { initScript: noteDrawnTexts });
  const memory = page.getByRole('img', { name: /^Memory of all processes/ });
  await memory.waitFor();
  await eventually(async () => {
    const drawn = await page.evaluate(
      () => (globalThis as { drawnTexts?: DrawnText[] }).drawnTexts ?? [],
    );
    const labels = drawn.filter(({ text }) => /^\d{3}.* MiB$|GiB$/.test(text));
    expect(labels.length).toBeGreaterThan(0);
    expect(drawn.filter(({ left }) => left < 0)).toEqual([]);
    // Steps of a power of two, so 1.5 GiB and no 286.1 MiB.
    expect(labels.filter(({ text }) => !/^\d+(\.25|\.5|\.75)? [MG]iB$/.test(text))).toEqual([]);
  });
  expect(browser.problems).toEqual([]);
});

/** Runs in the page. */
function noteDrawnTexts(): void {
  const drawnTexts: DrawnText[] = [];
  Object.assign(globalThis, { drawnTexts });
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function note(text, x, y, ...rest) {
    const { width } = this.measureText(text);
    const parts = { right: 1, center: 0.5 } as Readonly<Record<string, number>>;
    const left = this.getTransform().e + x - width * (parts[this.textAlign] ?? 0);
    drawnTexts.push({ text, left });
    fillText.call(this, text, x, y, ...rest);
  };
}
