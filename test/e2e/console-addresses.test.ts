import { afterAll, beforeAll, expect, test } from 'vitest';
import { ADMIN, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { type ConsoleBrowser, openConsoleBrowser } from '../support/console-browser.ts';
import { allFaults } from '../support/console-pages.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';

// That a colleague who opens an address sees the same.
let app: TestApp;
let browser: ConsoleBrowser;

beforeAll(async () => {
  app = await startApp();
  browser = await openConsoleBrowser(app.url);
});

afterAll(async () => {
  expect(browser?.problems).toEqual([]);
  await browser?.[Symbol.asyncDispose]();
  await app?.[Symbol.asyncDispose]();
});

const pathOf = (url: string): string => url.split('/console')[1] ?? '';

test('the page of a list has an address, and a filter begins at the first page', async () => {
  const long = await createCrawler(app, 'long');
  await long.post('pause');
  const items = Array.from({ length: 120 }, (_, at) => ({ url: `http://a.example/${at}` }));
  await app.rest('POST', `${long.path}/push_batch`, { items });
  const page = await browser.open('/crawlers/long/jobs', NORMAL);
  const row = (of: typeof page, at: number) =>
    of.getByText(`http://a.example/${at}`, { exact: true });
  await row(page, 0).waitFor();
  await page.getByRole('button', { name: 'More' }).click();
  await row(page, 60).waitFor();
  const address = pathOf(page.url());
  expect(address).toContain('page=2');
  await page.getByText('Page 2 of 3').waitFor();

  const colleague = await browser.open(address, NORMAL);
  await row(colleague, 60).waitFor();
  await colleague.getByText('Page 2 of 3').waitFor();
  expect(await row(colleague, 0).count()).toBe(0);
  await colleague.getByRole('button', { name: 'Back' }).click();
  await row(colleague, 0).waitFor();
  await colleague.context().close();

  await page.getByRole('button', { name: 'More' }).click();
  await row(page, 119).waitFor();
  await page.getByRole('button', { name: 'Back' }).click();
  await row(page, 60).waitFor();
  await page.getByRole('button', { name: 'Waiting', exact: true }).click();
  await row(page, 0).waitFor();
  expect(page.url()).not.toContain('page=');
  await page.getByRole('button', { name: 'More' }).click();
  await page.getByText('Page 2', { exact: true }).waitFor();
  await page.getByLabel('Rows of a page').selectOption('100');
  await row(page, 99).waitFor();
  expect(await row(page, 100).count()).toBe(0);
  await page.getByText('Page 1', { exact: true }).waitFor();
  expect(new URL(page.url()).search).toBe('?state=waiting&rows=100');
  await page.reload();
  await row(page, 99).waitFor();
  await page.getByLabel('Rows of a page').selectOption('200');
  await row(page, 119).waitFor();
  // One page holds all; the size can be chosen still.
  await page.getByLabel('Rows of a page').selectOption('50');
  await eventually(async () => expect(await row(page, 99).count()).toBe(0));
  await page.context().close();
});

test('hosts, crawlers and accounts are shown as the address says', async () => {
  const hosts = await createCrawler(app, 'hosts');
  await hosts.post('pause');
  const items = ['a', 'b'].map((host) => ({ url: `http://${host}.example/` }));
  await app.rest('POST', `${hosts.path}/push_batch`, { items });
  const page = await browser.open('/crawlers/hosts/hosts', NORMAL);
  await page.getByRole('button', { name: 'Slowest' }).click();
  await page.getByLabel('Find a host').fill('b.ex');
  await eventually(async () => expect(await page.getByText('a.example').count()).toBe(0));
  const address = pathOf(page.url());
  expect(address).toContain('order=slowest');
  const colleague = await browser.open(address, NORMAL);
  await colleague.getByText('b.example').first().waitFor();
  expect(await colleague.getByText('a.example').count()).toBe(0);
  expect(
    await colleague.getByRole('button', { name: 'Slowest' }).getAttribute('aria-pressed'),
  ).toBe('true');
  await colleague.context().close();
  await page.context().close();

  for (let at = 0; at < 60; at += 1) await createCrawler(app, `many-${at + 10}`);
  const list = await browser.open('/crawlers?q=many', NORMAL);
  await list.getByRole('button', { name: 'More' }).click();
  await list.getByRole('link', { name: 'many-69', exact: true }).waitFor();
  expect(list.url()).toContain('from=50');
  await list.reload();
  await list.getByRole('link', { name: 'many-69', exact: true }).waitFor();
  await list.context().close();

  const operator = await browser.open('/accounts', ADMIN);
  await operator.getByRole('button', { name: 'Open account default' }).click();
  expect(operator.url()).toContain('account=default');
  await operator.reload();
  await operator.getByRole('dialog').getByText('default').first().waitFor();
  expect(await allFaults(operator)).toEqual([]);
  await operator.keyboard.press('Escape');
  await eventually(() => expect(operator.url()).not.toContain('account='));
  await operator.context().close();
});
