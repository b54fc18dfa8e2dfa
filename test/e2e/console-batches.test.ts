import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { type ConsoleBrowser, openConsoleBrowser } from '../support/console-browser.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { type Site, startSite } from '../support/site.ts';

// What the console shows of batches and failed crawls, and does to them, checked by the API.
let app: TestApp;
let site: Site;
let browser: ConsoleBrowser;
let isDoorOpen = false;

beforeAll(async () => {
  site = await startSite({
    routes: {
      '/door': (_request, response) => {
        response.writeHead(isDoorOpen ? 200 : 500, { 'content-type': 'text/plain' }).end('door');
      },
    },
  });
  app = await startApp();
  browser = await openConsoleBrowser(app.url);
});

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]();
  await app?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
});

afterEach(() => {
  expect(browser.problems.splice(0)).toEqual([]);
});

async function onPage(path: string, use: (page: Page) => Promise<void>) {
  const page = await browser.open(path, NORMAL);
  await use(page);
  await page.context().close();
}

const rowOf = (page: Page, batch: string) =>
  page.getByRole('table', { name: 'Batches' }).getByRole('row').filter({ hasText: batch });

test('a batch shows its progress and its failures by reason, is closed, and is cancelled', async () => {
  const shop = await createCrawler(app, 'shop', { max_retries: 0 });
  const batch = async (name: string) =>
    (await app.rest('GET', `${shop.path}/batches/${name}`)).json;
  await onPage('/crawlers/shop/batches', async (page) => {
    await page.getByText('No batches').waitFor();
    const items = [
      { url: `${site.url}/page/1`, batch: 'monday' },
      { url: `${site.url}/page/2`, batch: 'monday' },
      { url: `${site.url}/door`, batch: 'monday' },
      { url: `${site.url}/page/3`, batch: 'monday', delay: 3_600 },
      { url: `${site.url}/page/4`, batch: 'tuesday', delay: 3_600 },
      { url: `${site.url}/page/5`, batch: 'tuesday', delay: 3_600 },
    ];
    await shop.post('push_batch', { items });
    const monday = rowOf(page, 'monday');
    await monday.getByText('target error 1').waitFor();
    await eventually(async () => {
      expect(await monday.locator('td.number').allInnerTexts()).toEqual([
        '75',
        '4',
        expect.stringMatching(/^1\s+about .+ left$/),
        '2',
        expect.stringMatching(/^1\s+target error 1$/),
      ]);
    });
    await monday.getByText('open').waitFor();

    await page.getByRole('button', { name: 'Close monday' }).click();
    await page.getByText('monday takes no further URLs.').waitFor();
    await monday.getByText('closed').waitFor();
    expect(await batch('monday')).toMatchObject({ state: 'closed', waiting: 1 });
    expect(await page.getByRole('button', { name: 'Close monday' }).count()).toBe(0);
    const late = await shop.tryPush(`${site.url}/page/6`, '&batch=monday');
    expect(late.json).toMatchObject({ code: 'batch_closed' });

    await page.getByRole('button', { name: 'Cancel tuesday' }).click();
    const dialog = page.getByRole('dialog');
    const cancel = dialog.getByRole('button', { name: 'Cancel the batch' });
    expect(await cancel.isDisabled()).toBe(true);
    await dialog.getByRole('textbox').fill('tuesday');
    await cancel.click();
    await page.getByText('Removed 2 URLs.').waitFor();
    await rowOf(page, 'tuesday').getByText('completed').waitFor();
    expect(await batch('tuesday')).toMatchObject({ state: 'completed', accepted: 2, removed: 2 });
    expect(await batch('monday')).toMatchObject({ waiting: 1 });
    expect(await page.getByRole('button', { name: 'Cancel tuesday' }).count()).toBe(0);
  });
});

test('failed crawls of a group are pushed again by two clicks', async () => {
  isDoorOpen = false;
  const news = await createCrawler(app, 'news', { max_retries: 0 });
  const failed = [
    await news.push(`${site.url}/door?n=1`),
    await news.push(`${site.url}/door?n=2`),
    await news.push('http://127.0.0.1:1/'),
  ];
  await eventually(async () => {
    expect((await news.details()).activity).toMatchObject({ failed: 3 });
  });
  isDoorOpen = true;
  await onPage('/crawlers/news/failures', async (page) => {
    await page.getByRole('button', { name: 'Push again: target error' }).click();
    await page
      .getByRole('dialog')
      .getByRole('button', { name: 'Push again 2', exact: true })
      .click();
    await page.getByText('Done: 2 of 2').waitFor();
  });
  await eventually(async () => {
    expect((await news.details()).activity).toMatchObject({ pushed: 5, completed: 2, failed: 3 });
  });
  const listed = await app.rest('GET', `/storage/results?token=${NORMAL}&name=news`);
  const results = listed.json.results as { again_of?: string; cb_status: number }[];
  const again = results.filter(({ cb_status: status }) => status === 200);
  expect(new Set(again.map((each) => each.again_of))).toEqual(new Set(failed.slice(0, 2)));
});

test('the form pushes URLs with a batch, priority, delay, metadata, and once', async () => {
  const list = await createCrawler(app, 'list');
  const url = `${site.url}/page/1`;
  await onPage('/crawlers/list/push', async (page) => {
    const urls = page.getByLabel('URLs, one a line');
    await urls.fill(url);
    await page.getByLabel('Batch').fill('march');
    await page.getByLabel('Priority').fill('9');
    await page.getByLabel('Delay, seconds').fill('3600');
    await page.getByLabel('Metadata').fill('{"order": 42}');
    await page.getByLabel('Queue timeout, minutes').fill('5');
    await page.getByLabel('Once A URL').check();
    const shown = await page.getByRole('region', { name: 'REST' }).innerText();
    expect(shown).toContain('&batch=march&priority=9&delay=3600');
    await page.getByRole('button', { name: 'Push', exact: true }).click();
    await page.getByText('1 queued').waitFor();
    const { jobs } = (await app.rest('GET', `${list.path}/jobs`)).json;
    expect(jobs).toMatchObject([
      { url, state: 'scheduled', batch: 'march', priority: 9, metadata: '{"order": 42}' },
    ]);
    const [{ rid, not_before: start, queue_deadline: deadline }] = jobs;
    expect(Date.parse(deadline) - Date.parse(start)).toBe(300_000);

    // The second push says that the URL was there, and a closed batch is named.
    await urls.fill(`${url}\n${site.url}/page/2`);
    await page.getByRole('button', { name: 'Push 2' }).click();
    await page.getByText('1 queued, 1 there before').waitFor();
    await page.getByRole('row').filter({ hasText: rid }).getByText('there before').waitFor();
    await app.rest('POST', `${list.path}/batches/march/close`);
    await urls.fill(`${site.url}/page/3`);
    await page.getByRole('button', { name: 'Push', exact: true }).click();
    await page.getByText('0 queued, 1 refused').waitFor();
    expect((await list.details()).activity).toMatchObject({ pushed: 2, scheduled: 2 });
  });
});
