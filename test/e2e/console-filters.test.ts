import { afterAll, beforeAll, expect, test } from 'vitest';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { type ConsoleBrowser, openConsoleBrowser } from '../support/console-browser.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { type Site, startSite } from '../support/site.ts';

let site: Site;
let app: TestApp;
let browser: ConsoleBrowser;

beforeAll(async () => {
  site = await startSite();
  app = await startApp();
  browser = await openConsoleBrowser(app.url);
});

afterAll(async () => {
  expect(browser.problems).toEqual([]);
  await browser[Symbol.asyncDispose]();
  await app[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

/** A paused crawler with that many URLs in its queue. */
async function queued(name: string, urls: number) {
  const crawler = await createCrawler(app, name);
  await crawler.post('pause');
  await crawler.pushAll(Array.from({ length: urls }, (_, n) => `http://a.example/${n}`));
  return crawler;
}

// Each condition, and the field that says what is wrong with it.
const WRONG = [
  ['site=4044', 'Status of the site'],
  ['site=-1', 'Status of the site'],
  ['site=40.5', 'Status of the site'],
  ['cb=4e2', 'cb_status'],
  ['cb=5xx', 'cb_status'],
  ['from=20261-11-29T10:00', 'From'],
  ['from=2026-13-45T10:00', 'From'],
  // A day that does not exist.
  ['from=2026-02-31T10:00', 'From'],
  ['to=5', 'To'],
] as const;

test('a condition that is not understood selects nothing, and its field says so', async () => {
  const crawler = await createCrawler(app, 'kept');
  const rid = await crawler.push(`${site.url}/page/1`);
  await crawler.stored(rid);
  const page = await browser.open('/crawlers/kept/results', NORMAL);
  await page.getByRole('table', { name: 'Results' }).waitFor();
  await page.getByText('Filter', { exact: true }).click();
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.getByLabel('Status of the site').fill('4044');
  await page.getByText('Nothing is selected').waitFor();
  for (const button of ['Remove all…', 'Push again all…', 'CSV', 'NDJSON']) {
    expect(await page.getByRole('button', { name: button, exact: true }).isDisabled()).toBe(true);
  }
  for (const [condition, label] of WRONG) {
    asked.length = 0;
    await page.goto(`${app.url}/console/crawlers/kept/results?${condition}`);
    await page.getByText('Nothing is selected').waitFor();
    const field = page.getByLabel(label, { exact: true });
    expect(await field.getAttribute('aria-invalid'), condition).toBe('true');
    const [, value = ''] = condition.split('=');
    await page.locator('.field .error').filter({ hasText: value }).waitFor();
    expect(await page.getByRole('button', { name: 'Remove all…' }).isDisabled()).toBe(true);
    expect(
      asked.filter((url) => url.endsWith('/ListResults')),
      condition,
    ).toEqual([]);
  }
  await page.getByLabel('To', { exact: true }).fill('2099-01-01T00:00');
  await page.getByRole('table', { name: 'Results' }).waitFor();
  expect(await page.getByLabel('To', { exact: true }).getAttribute('max')).toMatch(/^9999/);
  await page.context().close();
});

test('jobs and deliveries are not listed by a condition that is not understood, either', async () => {
  await queued('wrong', 3);
  const page = await browser.open('/crawlers/wrong/jobs?from=2026-13-45T10:00', NORMAL);
  await page.getByText('Nothing is selected').waitFor();
  expect(await page.getByRole('button', { name: 'Remove all…' }).isDisabled()).toBe(true);
  // A link from a list of results: jobs have no such field.
  await page.goto(`${app.url}/console/crawlers/wrong/jobs?site=4044`);
  await page.locator('.field .error').filter({ hasText: '4044' }).waitFor();
  await page.getByLabel('Status of the site').fill('');
  await page.getByRole('table', { name: 'Jobs' }).waitFor();
  expect(await page.getByLabel('Status of the site').count()).toBe(0);
  await createCrawler(app, 'hooked', { callback_url: 'http://hook.example/' });
  await page.goto(`${app.url}/console/crawlers/hooked/deliveries?cb=x`);
  await page.getByText('Nothing is selected').waitFor();
  expect(await page.getByLabel('Replay those of the last').isDisabled()).toBe(true);
  await page.context().close();
});

test('the filter stays open while its only field is cleared, and takes what is typed next', async () => {
  await queued('typed', 3);
  const page = await browser.open('/crawlers/typed/jobs', NORMAL);
  await page.getByRole('table', { name: 'Jobs' }).waitFor();
  await page.locator('summary', { hasText: 'Filter' }).click();
  const url = page.getByLabel('URL contains');
  await url.focus();
  await page.keyboard.type('x');
  await page.locator('summary', { hasText: 'Filter: url=x' }).waitFor();
  await page.keyboard.press('Backspace');
  await page.getByText('Filter', { exact: true }).waitFor();
  await page.keyboard.type('example/2');
  await page.locator('summary', { hasText: 'Filter: url=example/2' }).waitFor();
  expect(await url.inputValue()).toBe('example/2');
  // A filter of a link opens it again, after it was closed.
  await page.getByRole('button', { name: 'Clear the filter' }).click();
  await page.getByText('Filter', { exact: true }).click();
  await url.waitFor({ state: 'hidden' });
  await page.goto(`${app.url}/console/crawlers/typed/jobs?host=a.example`);
  await url.waitFor();
  await page.context().close();
});

test('a second action on a crawler waits until the first has ended, and the first can be stopped', async () => {
  const crawler = await queued('two', 300);
  const page = await browser.open('/crawlers/two/jobs?url=example/1', NORMAL);
  const dialog = page.getByRole('dialog');
  const close = () => dialog.getByRole('button', { name: 'Close', exact: true }).first().click();
  await page.getByRole('button', { name: 'Remove all…' }).click();
  const first = dialog.getByRole('button', { name: 'Remove 111', exact: true });
  await first.waitFor();
  // The stream of the first hangs, as by a slow network; estimates do not.
  let isHeld = true;
  await page.route('**/*.ActivityService/ActOnMatches', async (route) => {
    if (isHeld) {
      isHeld = false;
      return;
    }
    await route.continue();
  });
  await first.click();
  await dialog.getByText('Working: 0 of 111').waitFor();
  await close();
  await page.getByLabel('URL contains').fill('example/2');
  await page.getByText('http://a.example/20', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Remove all…' }).click();
  const second = dialog.getByRole('button', { name: 'Remove 111', exact: true });
  await second.waitFor();
  expect(await second.isDisabled()).toBe(true);
  await dialog.getByText('Another action on this crawler has not ended').waitFor();
  await dialog.getByRole('button', { name: 'Stop' }).click();
  await dialog.getByText('Stopped: 0 of 111').waitFor();
  await close();
  await page.getByRole('button', { name: 'Dismiss' }).click();
  await page.getByRole('button', { name: 'Remove all…' }).click();
  await second.click();
  await dialog.getByText('Done: 111 of 111').waitFor();
  expect((await crawler.details()).activity).toMatchObject({ waiting: 189, deleted: 111 });
  await page.context().close();
});

test('an action that was stopped is named where it is in the way of another, and dismissed there', async () => {
  const crawler = await createCrawler(app, 'in-the-way', { max_retries: 0 });
  await crawler.stored(await crawler.push(`${site.url}/status/500`));
  const page = await browser.open('/crawlers/in-the-way/results', NORMAL);
  const dialog = page.getByRole('dialog');
  await page.getByRole('button', { name: 'Push again all…' }).click();
  const again = dialog.getByRole('button', { name: 'Push again 1', exact: true });
  await again.waitFor();
  // Its stream hangs; estimates do not.
  await page.route('**/*.ActivityService/ActOnMatches', () => undefined, { times: 1 });
  await again.click();
  await dialog.getByRole('button', { name: 'Stop' }).click();
  await dialog.getByText('Stopped: 0 of 1').waitFor();
  await dialog.getByRole('button', { name: 'Close', exact: true }).first().click();
  await page.getByRole('button', { name: 'Remove all…' }).click();
  await dialog.getByText('Another action on this crawler has not ended: Push again').waitFor();
  const remove = dialog.getByRole('button', { name: 'Remove 1', exact: true });
  await remove.waitFor();
  expect(await remove.isDisabled()).toBe(true);
  await dialog.getByRole('button', { name: 'Dismiss' }).click();
  await remove.click();
  await dialog.getByText('Done: 1 of 1').waitFor();
  await page.context().close();
});

test('a later page of a list says what is wrong with its filter', async () => {
  await queued('later', 3);
  const path = '/crawlers/later/jobs?from=2026-13-45T10:00&page=2~AAAA';
  const page = await browser.open(path, NORMAL);
  await page.getByText('Nothing is selected').waitFor();
  expect(await page.getByText('Nothing is left on this page').count()).toBe(0);
  await page.context().close();
});
