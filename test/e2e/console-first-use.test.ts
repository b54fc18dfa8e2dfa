import type { Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { ADMIN, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { type ConsoleBrowser, openConsoleBrowser } from '../support/console-browser.ts';
import { goWithin } from '../support/console-pages.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/receiver.ts';
import { type Site, startSite } from '../support/site.ts';
import { createTestClock } from '../support/test-clock.ts';

// What people meet who use the console for the first time.

let app: TestApp;
let site: Site;
let browser: ConsoleBrowser;

/** As long as a name may be. */
const LONG = `shop-${'long-name-of-a-crawler-'.repeat(3)}`.slice(0, 64);
const HOUR = 3_600_000;
const MINUTE = 60_000;

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

test('on a telephone nothing of an overview is wider than the page, nor over the state of the connection', async () => {
  const page = await browser.open('/crawlers/shop', NORMAL, { width: 375, height: 800 });
  await page.getByRole('combobox', { name: 'Compare shop with' }).waitFor();
  await page.getByRole('option', { name: LONG }).waitFor({ state: 'attached' });
  const beyond = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  expect(beyond).toBe(0);
  const rid = await (await createCrawler(app, 'pages')).push(`${site.url}/page/1`);
  await goWithin(page, `/jobs/${rid}`);
  const state = page.getByRole('status').filter({ hasText: 'Not live' });
  await state.waitFor();
  expect(await state.innerText()).toBe('Not live');
  await page.setViewportSize({ width: 1_000, height: 800 });
  expect(await state.innerText()).toBe('Not live: updated every few seconds');
  await page.setViewportSize({ width: 375, height: 800 });
  const [crumb, badge] = await Promise.all(
    [page.getByRole('navigation', { name: 'You are here' }), state].map((each) =>
      each.boundingBox(),
    ),
  );
  expect(crumb?.width).toBeGreaterThan(60);
  expect((crumb?.x ?? 0) + (crumb?.width ?? 0)).toBeLessThanOrEqual(badge?.x ?? 0);
  await page.context().close();
});

test('at 320 px every place and the chosen part of a crawler are in view', async () => {
  const page = await browser.open('/crawlers', NORMAL, { width: 320, height: 640 });
  const inView = (link: Locator) =>
    eventually(async () => {
      const box = await link.boundingBox();
      expect(box?.x).toBeGreaterThanOrEqual(0);
      expect((box?.x ?? 0) + (box?.width ?? 320)).toBeLessThanOrEqual(320);
    });
  const places = page.getByRole('navigation', { name: 'Places' });
  for (const place of ['Crawlers', 'Account']) await inView(places.getByText(place));
  await goWithin(page, '/crawlers/shop/settings');
  await inView(page.getByRole('navigation', { name: 'Parts of shop' }).getByText('Settings'));
  // With the operator's token there are nine places: the row scrolls to the present one.
  await goWithin(page, '/account');
  await page.getByRole('textbox', { name: 'Token' }).fill(ADMIN);
  await page.getByRole('button', { name: 'Add' }).click();
  await page.getByText('The pages of the operator are shown now.').waitFor();
  await goWithin(page, '/setup');
  await inView(places.getByText('Setup'));
  const beyond = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  expect(beyond).toBe(0);
  await page.context().close();
});

test('a field next to one with a longer help stands as high as that one', async () => {
  const page = await browser.open('/crawlers/+new', NORMAL);
  const [left, right] = await Promise.all(
    ['Proxies', 'Ladder'].map((name) => page.getByRole('textbox', { name }).boundingBox()),
  );
  expect(left?.y).toBe(right?.y);
  expect(left?.height).toBe(right?.height);
  await page.getByText("Name of a pool of proxies, the account's or the operator's").waitFor();
  await page.context().close();
});

test('times are told by the clock of the service, whatever that of the computer says', async () => {
  await using receiver = await startReceiver();
  const hook = await createCrawler(app, 'hook', { callback_url: receiver.url });
  await hook.push(`${site.url}/page/1`);
  await receiver.until(1);
  for (const initScript of [threeHoursBehind, fiveHoursAhead]) {
    const page = await browser.open('/crawlers/hook', NORMAL, { initScript });
    const facts = page.locator('.facts > div').filter({ hasText: 'Last crawl' });
    await eventually(async () => {
      expect(await facts.innerText()).toMatch(/Last crawl\s+(now|\d+ sec ago|1 min ago)$/);
    });
    await goWithin(page, '/crawlers/hook/deliveries');
    await page.getByRole('combobox', { name: 'Replay those of the last' }).selectOption('hour');
    await page.getByRole('dialog').getByRole('button', { name: 'Replay 1' }).waitFor();
    // The pages of tests are in Berlin, one or two hours ahead of UTC.
    const from = Date.parse(`${new URL(page.url()).searchParams.get('from')}Z`);
    const berlin = Date.now() - HOUR + offsetOf('Europe/Berlin');
    expect(Math.abs(from - berlin)).toBeLessThan(5 * MINUTE);
    await page.context().close();
  }
});

test('the list of crawlers needs no scrolling on a laptop when times are long and a callback URL fails', async () => {
  const clock = createTestClock();
  clock.advance(-24 * MINUTE);
  await using failing = await startReceiver();
  failing.answerProbes({ status: 500 });
  await using late = await startApp({ clock, env: { PROBE_INTERVAL_SECONDS: '1' } });
  const hook = await createCrawler(late, LONG, { callback_url: failing.url });
  await hook.push(`${site.url}/page/1`);
  await eventually(async () => expect((await hook.details()).paused_by).toBe('monitor'));
  await using own = await openConsoleBrowser(late.url);
  const page = await own.open('/crawlers', NORMAL);
  await page.getByText('Callback failing').waitFor();
  expect(await page.getByText('24 min ago').count()).toBeGreaterThan(2);
  const table = page.locator('.table-scroll');
  for (const width of [1_280, 1_440]) {
    await page.setViewportSize({ width, height: 900 });
    const beyond = await table.evaluate((each) => each.scrollWidth - each.clientWidth);
    expect([width, beyond]).toEqual([width, 0]);
  }
  expect(own.problems).toEqual([]);
});

test('what is due already says so, and not how long ago that was', async () => {
  const held = await createCrawler(app, 'held');
  await held.post('pause');
  await held.push(`${site.url}/page/1`);
  const page = await browser.open('/crawlers/held/jobs', NORMAL);
  const row = page.getByRole('row').filter({ hasText: '/page/1' });
  await row.getByText('due', { exact: true }).waitFor();
  await page.context().close();
});

test('one value of a time without neighbours is drawn', async () => {
  const clock = createTestClock();
  await using counted = await startApp({ clock });
  const one = await createCrawler(counted, 'one');
  await one.stored(await one.push(`${site.url}/page/7`));
  clock.advance(MINUTE);
  await eventually(async () => {
    const { json } = await counted.rest('GET', `/timeline/${NORMAL}?crawlers=one`);
    const points = json.crawlers[0].points as { median_ms?: number }[];
    expect(points.filter(({ median_ms }) => median_ms !== undefined)).toHaveLength(1);
  });
  await using own = await openConsoleBrowser(counted.url);
  const page = await own.open('/crawlers/one', NORMAL);
  const canvas = page.getByRole('img', { name: 'Time of a crawl, last hour' }).locator('canvas');
  await eventually(async () => expect(await canvas.evaluate(coloured)).toBeGreaterThan(3));
  expect(own.problems).toEqual([]);
});

test('a number that a field cannot hold is refused in words', async () => {
  const page = await browser.open('/crawl', NORMAL);
  await page.getByLabel('URL', { exact: true }).fill('http://a.example/');
  await page.getByText('Result', { exact: true }).first().click();
  await page.getByLabel('Max age').fill('1e99');
  await page.getByRole('button', { name: 'Crawl', exact: true }).click();
  await page.getByText('max_age cannot be 1e+99.').first().waitFor();
  await page.context().close();
});

test('the concurrency on an overview has its bounds', async () => {
  const page = await browser.open('/crawlers/shop', NORMAL);
  const concurrency = page.getByRole('spinbutton', { name: 'Concurrency' });
  await concurrency.fill('1001');
  expect(await concurrency.evaluate((input: HTMLInputElement) => input.validity.valid)).toBe(false);
  await concurrency.fill('1000');
  expect(await concurrency.evaluate((input: HTMLInputElement) => input.validity.valid)).toBe(true);
  await page.context().close();
});

test('a line of a list that is refused is told at its field', async () => {
  const page = await browser.open('/proxies', NORMAL);
  await page.getByRole('button', { name: 'New pool' }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('fast');
  const lines = dialog.getByLabel('Proxies', { exact: true });
  await lines.fill('http://proxy.example:8080\nnonsense');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await eventually(async () => expect(await lines.getAttribute('aria-invalid')).toBe('true'));
  expect(browser.problems.splice(0)).toEqual([expect.stringContaining('400')]);
  await page.context().close();
});

test('a token that is there already is not taken for the other one', async () => {
  const page = await browser.open('/account', NORMAL);
  await page.getByRole('textbox', { name: 'Token' }).fill(NORMAL);
  await page.getByRole('button', { name: 'Add' }).click();
  await page.getByText('You are signed in with this token already.').waitFor();
  await page.context().close();
});

test('the account page says that pushes are refused while a quota is used up', async () => {
  const kept = await createCrawler(app, 'kept');
  await kept.stored(await kept.push(`${site.url}/page/8`));
  const limitTo = (limits: object) =>
    app.rest('PUT', '/accounts/default', { limits }, { authorization: `Bearer ${ADMIN}` });
  await limitTo({ storage_bytes: 1 });
  await eventually(async () => {
    expect((await kept.tryPush(`${site.url}/page/9`)).text).toContain('storage_bytes_quota');
  });
  const page = await browser.open('/account', NORMAL);
  await page.getByText('Pushes are refused: a quota is used up').waitFor();
  await page.getByText('Used up: stored results and deliveries.').waitFor();
  const facts = page.locator('.facts > div').filter({ hasText: 'Pushes' });
  expect(await facts.innerText()).toMatch(/Pushes\s+refused$/);
  await limitTo({});
  await page.context().close();
});

test('all of a page is read again as soon as one call is answered after an outage', async () => {
  const page = await browser.open('/crawlers/shop', NORMAL, { hasTestClock: true });
  const state = page.getByRole('banner').getByRole('status');
  await state.getByText('Live', { exact: true }).waitFor();
  await page.route('**/queuedcrawler.v1.*/*', (route) => route.abort());
  // Hidden tabs hold no stream; seen again, this one finds that nothing answers.
  for (const isHidden of [true, false]) await setHidden(page, isHidden);
  for (let polls = 0; polls < 4; polls += 1) {
    await state.getByText('no answer since').waitFor();
    await page.clock.fastForward(60_000);
  }
  await page.unrouteAll({ behavior: 'wait' });
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  await state.getByText('Live', { exact: true }).waitFor();
  browser.problems.splice(0).forEach((each) => expect(each).toContain('ERR_FAILED'));
  await page.context().close();
});

/** How far a zone is ahead of UTC now, in milliseconds. */
function offsetOf(timeZone: string): number {
  const now = new Date();
  const local = new Date(now.toLocaleString('en-US', { timeZone }));
  const utc = new Date(now.toLocaleString('en-US', { timeZone: 'UTC' }));
  return local.getTime() - utc.getTime();
}

/** Shows or hides the tab, as far as its page can tell. */
async function setHidden(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { get: () => hidden, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  }, isHidden);
}

/** Runs in the page: how many pixels of a canvas have a strong colour. */
function coloured(canvas: Element): number {
  const { width, height } = canvas as HTMLCanvasElement;
  const pixels = (canvas as HTMLCanvasElement)
    .getContext('2d')
    ?.getImageData(0, 0, width, height).data;
  let found = 0;
  for (let at = 0; pixels !== undefined && at < pixels.length; at += 4) {
    const [r = 0, g = 0, b = 0, a = 0] = pixels.subarray(at, at + 4);
    if (a > 200 && Math.max(r, g, b) - Math.min(r, g, b) > 80) found += 1;
  }
  return found;
}

/** Runs in the page, as do those below. */
function threeHoursBehind(): void {
  const RealDate = Date;
  const now = () => RealDate.now() - 3 * 3_600_000;
  globalThis.Date = class extends RealDate {
    constructor(...given: [] | [number]) {
      super(...(given.length === 0 ? ([now()] as [number]) : given));
    }
    static override now = now;
  } as DateConstructor;
}

function fiveHoursAhead(): void {
  const RealDate = Date;
  const now = () => RealDate.now() + 5 * 3_600_000;
  globalThis.Date = class extends RealDate {
    constructor(...given: [] | [number]) {
      super(...(given.length === 0 ? ([now()] as [number]) : given));
    }
    static override now = now;
  } as DateConstructor;
}
