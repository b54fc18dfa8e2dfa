import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { type ConsoleBrowser, openConsoleBrowser } from '../support/console-browser.ts';
import { faultsInBothThemes, NO_FAULTS } from '../support/console-pages.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
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

/** A paused crawler with that many URLs of each of two hosts. */
async function queued(name: string, each: number) {
  const crawler = await createCrawler(app, name);
  await crawler.post('pause');
  const items = ['a.example', 'b.example'].flatMap((host) =>
    Array.from({ length: each }, (_, n) => ({ url: `http://${host}/${n}` })),
  );
  await app.rest('POST', `${crawler.path}/push_batch`, { items });
  return crawler;
}

test('jobs that a filter selects are listed by an address, counted, removed and noted in the history', async () => {
  const crawler = await queued('selected', 210);
  const page = await browser.open('/crawlers/selected/jobs?host=b.example', NORMAL);
  await page.getByText('http://b.example/0', { exact: true }).waitFor();
  expect(await page.getByText('http://a.example/0', { exact: true }).count()).toBe(0);
  await page.getByRole('button', { name: 'Remove all…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Remove 210', exact: true }).waitFor();
  expect((await crawler.details()).activity.waiting).toBe(420);
  expect(await faultsInBothThemes(page)).toEqual(NO_FAULTS);
  await dialog.getByRole('button', { name: 'Remove 210', exact: true }).click();
  await dialog.getByText('Done: 210 of 210').waitFor();
  await dialog.getByRole('button', { name: 'Close', exact: true }).first().click();
  expect((await crawler.details()).activity).toMatchObject({ waiting: 210, deleted: 210 });

  await page.getByRole('link', { name: 'Account' }).click();
  await page.getByRole('cell', { name: 'ActOnMatches' }).waitFor();
  await page.context().close();
});

test('an action is stopped from another page, and continues where it was', async () => {
  const crawler = await queued('stopped', 450);
  const page = await browser.open('/crawlers/stopped/jobs', NORMAL);
  await page.getByRole('button', { name: 'Remove all…' }).click();
  const dialog = page.getByRole('dialog');
  const remove = dialog.getByRole('button', { name: 'Remove 900', exact: true });
  await remove.waitFor();
  // The stream hangs behind its first part, as it does with a large queue.
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route('**/*.ActivityService/ActOnMatches', async (route) => {
    await held;
    // The page has ended this request.
    await route.abort().catch(() => undefined);
  });
  await remove.click();
  await dialog.getByText('Working: 0 of 900').waitFor();
  await dialog.getByRole('button', { name: 'Close', exact: true }).first().click();
  await page.getByRole('link', { name: 'Storage' }).click();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText(/Stopped: 0 of 900/).waitFor();
  expect((await crawler.details()).activity.waiting).toBe(900);
  await page.unroute('**/*.ActivityService/ActOnMatches');
  release();
  await page.getByRole('button', { name: 'Continue' }).click();
  await eventually(async () => expect((await crawler.details()).activity.deleted).toBe(900));
  await page.getByText(/of 900/).waitFor({ state: 'detached' });
  await page.context().close();
});

test('what a filter selects is saved as CSV and as NDJSON', async () => {
  await queued('saved', 130);
  const page = await browser.open('/crawlers/saved/jobs?url=A.EXAMPLE', NORMAL);
  const save = async (as: 'CSV' | 'NDJSON') => {
    const saving = page.waitForEvent('download');
    await page.getByRole('button', { name: as, exact: true }).click();
    const file = await saving;
    expect(file.suggestedFilename()).toBe(`saved-jobs.${as.toLowerCase()}`);
    return (await readFile(await file.path(), 'utf8')).trim().split(/\r?\n/);
  };
  const csv = await save('CSV');
  expect(csv[0]).toMatch(/^rid,url,state,tries/);
  expect(csv).toHaveLength(131);
  const ndjson = (await save('NDJSON')).map((line) => JSON.parse(line) as { url: string });
  expect(ndjson).toHaveLength(130);
  expect(ndjson[0]).toMatchObject({ url: 'http://a.example/0', state: 'waiting' });
  await page.context().close();
});

test('failed results are pushed again, and deleted, by their reason', async () => {
  const crawler = await createCrawler(app, 'failed', { max_retries: 0 });
  const rids = await Promise.all([
    ...[1, 2, 3].map((n) => crawler.push(`${site.url}/status/500?${n}`)),
    crawler.push(`${site.url}/page/1`),
  ]);
  await Promise.all(rids.map((rid) => crawler.stored(rid)));
  const page = await browser.open('/crawlers/failed/failures', NORMAL);
  await page.locator('summary').first().click();
  await page.getByRole('link', { name: 'Show all of this reason' }).click();
  await page.getByText(`${site.url}/status/500?3`, { exact: true }).waitFor();
  expect(new URL(page.url()).search).toContain('site=500');
  await page.getByRole('button', { name: 'Push again all…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Push again 3', exact: true }).click();
  await dialog.getByText('Done: 3 of 3').waitFor();
  await eventually(() => expect(site.hits('/status/500')).toBe(6));
  await page.context().close();
});

test('the results of all crawlers are filtered by an address, and saved', async () => {
  const [one, two] = [await createCrawler(app, 'one'), await createCrawler(app, 'two')];
  const rids = [
    await one.push(`${site.url}/page/1?season=spring`),
    await two.push(`${site.url}/page/2?season=spring`),
    await two.push(`${site.url}/page/3?season=autumn`),
  ];
  await Promise.all(rids.map((rid, at) => (at === 0 ? one : two).stored(rid)));
  const page = await browser.open('/storage', NORMAL);
  await page.getByText('season=autumn').waitFor();
  await page.getByText('Filter', { exact: true }).click();
  await page.getByLabel('URL contains').fill('SPRING');
  await page.getByText('season=autumn').waitFor({ state: 'detached' });
  const colleague = await browser.open(page.url().split('/console')[1] ?? '', NORMAL);
  await colleague.getByText('season=spring').nth(1).waitFor();
  expect(await colleague.getByText('season=autumn').count()).toBe(0);
  const saving = colleague.waitForEvent('download');
  await colleague.getByRole('button', { name: 'NDJSON' }).click();
  const saved = await readFile(await (await saving).path(), 'utf8');
  expect(saved.trim().split('\n')).toHaveLength(2);
  await colleague.context().close();
  await page.context().close();
});

test('crawlers that are chosen by a filter are paused and unpaused together', async () => {
  for (const name of ['bulk-1', 'bulk-2', 'bulk-3', 'other']) await createCrawler(app, name);
  const statuses = async (): Promise<string[]> => {
    const { json } = await app.rest('GET', `/crawler/${NORMAL}?name_contains=bulk`);
    return (json.crawlers as { status: string }[]).map(({ status }) => status);
  };
  const page = await browser.open('/crawlers?q=bulk', NORMAL);
  const confirm = async (verb: string, list: Page) => {
    await list.getByRole('button', { name: 'Choose all 3' }).click();
    await list.getByRole('button', { name: `${verb} 3`, exact: true }).click();
    await list.getByRole('dialog').getByRole('button', { name: verb, exact: true }).click();
    await list.getByText(`3 crawlers ${verb.toLowerCase()}d.`).waitFor();
  };
  await confirm('Pause', page);
  expect(await statuses()).toEqual(['paused', 'paused', 'paused']);
  expect((await app.rest('GET', `/crawler/${NORMAL}/other`)).json.status).toBe('running');
  await confirm('Unpause', page);
  expect(await statuses()).toEqual(['running', 'running', 'running']);
  await page.context().close();
});
