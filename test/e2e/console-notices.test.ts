import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { type ConsoleBrowser, openConsoleBrowser } from '../support/console-browser.ts';
import { allFaults, goWithin, untilRead } from '../support/console-pages.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type Site, startSite } from '../support/site.ts';

// A notice that comes or goes moves nothing that one is about to click.

let app: TestApp;
let site: Site;
let receiver: Receiver;
let browser: ConsoleBrowser;

beforeAll(async () => {
  site = await startSite();
  receiver = await startReceiver();
  app = await startApp({ env: { WEBHOOK_RETRY_SCHEDULE: '1s,1s,1s,1h' } });
  browser = await openConsoleBrowser(app.url);
  const still = await createCrawler(app, 'still');
  await still.post('pause');
  await still.push(`${site.url}/page/1`);
});

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]();
  await app?.[Symbol.asyncDispose]();
  await receiver?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
});

/** High enough for any page, so that a click scrolls nothing. */
const VIEW = { height: 2_400 };
/** No page waits longer between two reads. */
const READ_MS = 60_000;

/** The controls on the page or in the dialog that is open, and how far each is from the top. */
async function controlsOf(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const within = document.querySelector('dialog[open]') ?? document.querySelector('#console');
    const found = within?.querySelectorAll<HTMLElement>('button, a, input, select, textarea') ?? [];
    return [...found]
      .filter((each) => each.closest('.floating, .toasts') === null && each.checkVisibility())
      .map((each) => {
        const name = each.getAttribute('aria-label') || each.textContent || each.id;
        return `${name}: ${Math.round(each.getBoundingClientRect().top)}`;
      });
  });
}

const notices = (page: Page) => page.getByRole('region', { name: 'Notices' });

test.for([
  '/crawlers',
  '/crawlers/still',
  '/crawlers/still/jobs',
  '/crawlers/still/hosts',
  '/crawlers/still/results',
  '/crawlers/still/settings',
  '/account',
])('nothing on %s moves when the service goes away and comes back', async (path) => {
  const page = await browser.open(path, NORMAL, { hasTestClock: true });
  await untilRead(page);
  const before = await controlsOf(page);
  expect(before.length).toBeGreaterThan(5);
  await page.route('**/queuedcrawler.v1.*/*', (route) => route.abort());
  // A tab that is hidden ends its streams.
  await page.evaluate(() => {
    Object.defineProperty(document, 'hidden', { value: true, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
    Object.defineProperty(document, 'hidden', { value: false, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  });
  await page.clock.fastForward(READ_MS);
  await notices(page).getByText('The service does not answer.').waitFor();
  expect(await controlsOf(page)).toEqual(before);
  expect(await allFaults(page)).toEqual([]);
  await page.unrouteAll();
  await eventually(async () => {
    await page.clock.fastForward(READ_MS);
    expect(await notices(page).count()).toBe(0);
  });
  expect(await controlsOf(page)).toEqual(before);
  await page.context().close();
});

test('a refused action moves nothing, and its notice can be dismissed', async () => {
  const page = await browser.open('/crawlers/still/settings', NORMAL, VIEW);
  await page.getByLabel('Concurrency').fill('9');
  const save = page.getByRole('button', { name: 'Save' });
  await page.getByText('Not saved: Concurrency').waitFor();
  const before = await controlsOf(page);
  await page.route('**/queuedcrawler.v1.CrawlerService/*', (route) => route.abort());
  await save.click();
  await notices(page).getByText('The service does not answer.').waitFor();
  expect(await controlsOf(page)).toEqual(before);
  await notices(page).getByRole('button', { name: 'Dismiss' }).click();
  await notices(page).waitFor({ state: 'detached' });
  expect(await controlsOf(page)).toEqual(before);
  // It comes again when it fails again.
  await save.click();
  await notices(page).getByText('The service does not answer.').waitFor();
  await page.context().close();
});

test('in a dialog a notice is below what can be clicked, and can be used', async () => {
  const page = await browser.open('/crawlers/still', NORMAL);
  await page.getByRole('button', { name: 'Purge the queue…' }).click();
  await page.getByLabel('Type still to confirm').fill('still');
  const before = await controlsOf(page);
  await page.route('**/queuedcrawler.v1.CrawlerService/*', (route) => route.abort());
  await page.getByRole('button', { name: 'Purge', exact: true }).click();
  const notice = page.getByRole('dialog').getByRole('region', { name: 'Notices' });
  await notice.getByText('The service does not answer.').waitFor();
  const after = await controlsOf(page);
  expect(after).toEqual(before);
  expect(await allFaults(page)).toEqual([]);
  await notice.getByRole('button', { name: 'Dismiss' }).click();
  await notice.waitFor({ state: 'detached' });
  await page.context().close();
});

test('a refused field and a refused token move nothing', async () => {
  const page = await browser.open('/crawlers', '');
  await page.getByLabel('Token').fill('nobody');
  const signingIn = await controlsOf(page);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').getByText('No account has this token').waitFor();
  expect(await controlsOf(page)).toEqual(signingIn);
  await page.context().close();

  const form = await browser.open('/crawlers/+new', NORMAL, VIEW);
  await form.getByLabel('Name').fill('still');
  await form.getByLabel('Concurrency').fill('17');
  await form.getByRole('region', { name: 'REST' }).waitFor();
  const filling = await controlsOf(form);
  await form.getByRole('button', { name: 'Create crawler' }).click();
  await form.getByRole('alert').waitFor();
  expect(await controlsOf(form)).toEqual(filling);
  await form.context().close();
});

test('trouble that begins or ends while a crawler is looked at moves nothing', async () => {
  receiver.answer({ status: 500 });
  const crawler = await createCrawler(app, 'hooked', { callback_url: receiver.url });
  const page = await browser.open('/crawlers/hooked/settings', NORMAL, VIEW);
  await page.getByRole('button', { name: 'New secret' }).waitFor();
  const before = await controlsOf(page);
  for (let n = 0; n < 3; n += 1) await crawler.push(`${site.url}/page/${n}`);
  await notices(page).getByText('Deliveries fail', { exact: true }).waitFor();
  expect(await controlsOf(page)).toEqual(before);

  const later = await browser.open('/crawlers/hooked/settings', NORMAL, VIEW);
  const alert = later.locator('main').getByRole('alert').filter({ hasText: 'Deliveries fail' });
  await alert.waitFor();
  await later.getByRole('button', { name: 'New secret' }).waitFor();
  const inTrouble = await controlsOf(later);
  receiver.answer({ status: 200 });
  await crawler.post('replay', { from: '2020-01-01T00:00:00Z' });
  await later.getByText('Deliveries fail: over').waitFor();
  expect(await controlsOf(later)).toEqual(inTrouble);
  await notices(page).waitFor({ state: 'detached' });
  expect(await controlsOf(page)).toEqual(before);
  await page.context().close();
  await goWithin(later, '/crawlers/hooked/jobs');
  await later.getByText('Nothing waits').waitFor();
  expect(await later.getByText('Deliveries fail').count()).toBe(0);
  await later.context().close();
});
