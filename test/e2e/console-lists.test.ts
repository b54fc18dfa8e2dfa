import { afterAll, beforeAll, expect, test } from 'vitest';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { type ConsoleBrowser, openConsoleBrowser } from '../support/console-browser.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { type Site, startSite } from '../support/site.ts';

let site: Site;
let app: TestApp;
let browser: ConsoleBrowser;

beforeAll(async () => {
  site = await startSite({
    routes: {
      '/numbers.json': (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(
          '{"id":1234567890123456789,"big":1e400,"price":10.0,"small":0.0000001,"few":[7]}',
        );
      },
    },
  });
  app = await startApp();
  browser = await openConsoleBrowser(app.url);
});

afterAll(async () => {
  expect(browser.problems).toEqual([]);
  await browser[Symbol.asyncDispose]();
  await app[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

test('the JSON view shows numbers as the page has them', async () => {
  const crawler = await createCrawler(app, 'numbers');
  const rid = await crawler.push(`${site.url}/numbers.json`);
  await crawler.stored(rid);
  const page = await browser.open(`/jobs/${rid}`, NORMAL);
  const tree = page.locator('.tree');
  await tree.waitFor();
  expect(await tree.locator('.value').allInnerTexts()).toEqual([
    '1234567890123456789',
    '1e400',
    '10.0',
    '0.0000001',
    '7',
  ]);
  await page.context().close();
});

test('Find searches again for the same text, and its field has the text of the address', async () => {
  const crawler = await createCrawler(app, 'sought');
  await crawler.post('pause');
  const page = await browser.open('/find', NORMAL);
  const field = page.getByLabel('Find', { exact: true });
  await field.fill('brand-new');
  await page.getByRole('button', { name: 'Find', exact: true }).click();
  await page.getByText('Nothing was found').waitFor();
  await crawler.pushAll([1, 2].map((n) => `http://a.example/brand-new-${n}`));
  await page.getByRole('button', { name: 'Find', exact: true }).click();
  await page.getByRole('link', { name: 'http://a.example/brand-new-2' }).waitFor();
  await page.evaluate(() => {
    history.pushState(null, '', '/console/find?q=sought');
    dispatchEvent(new PopStateEvent('popstate'));
  });
  await page.getByRole('link', { name: 'sought' }).waitFor();
  expect(await field.inputValue()).toBe('sought');
  await page.context().close();
});

test('batches are listed page by page, and a list of hosts says that it has only the first', async () => {
  const crawler = await createCrawler(app, 'many');
  await crawler.post('pause');
  const items = Array.from({ length: 120 }, (_, n) => ({
    url: `http://h${n}.example/`,
    batch: `batch-${n}`,
  }));
  await app.rest('POST', `${crawler.path}/push_batch`, { items });
  const page = await browser.open('/crawlers/many/batches', NORMAL);
  const rows = page.getByRole('table', { name: 'Batches' }).locator('tbody tr');
  await rows.nth(49).waitFor();
  const shown = new Set(await rows.locator('.clip').allInnerTexts());
  for (const number of [2, 3]) {
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByText(`Page ${number}`, { exact: true }).waitFor();
    // The former rows stay until the page is there.
    await page.locator(`.clip[title="${[...shown].at(-1)}"]`).waitFor({ state: 'detached' });
    for (const name of await rows.locator('.clip').allInnerTexts()) shown.add(name);
  }
  expect(shown.size).toBe(120);
  await page.goto(`${app.url}/console/crawlers/many/hosts`);
  await page.getByText('Only the first 100 hosts are shown').waitFor();
  await page.getByLabel('Find a host').fill('h11');
  await page.getByText('Only the first 100 hosts are shown').waitFor({ state: 'detached' });
  await page.context().close();
});

test('a page of a list that was emptied says that only this page is empty', async () => {
  const crawler = await createCrawler(app, 'emptied');
  await crawler.post('pause');
  await crawler.pushAll(Array.from({ length: 51 }, (_, n) => `http://a.example/${n}`));
  const page = await browser.open('/crawlers/emptied/jobs', NORMAL);
  await page.getByRole('button', { name: 'More' }).click();
  await page.getByText('Page 2 of 2').waitFor();
  await page.getByRole('button', { name: 'Remove http://a.example/50', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click();
  await page.getByText('Nothing is left on this page').waitFor();
  expect(await page.getByText('Nothing waits').count()).toBe(0);
  await page.getByRole('button', { name: 'Back' }).click();
  await page.getByText('http://a.example/0', { exact: true }).waitFor();
  await page.context().close();
});

test('a concurrency that was typed but not entered does not stay', async () => {
  const crawler = await createCrawler(app, 'unentered', { concurrency: 4 });
  const page = await browser.open('/crawlers/unentered', NORMAL);
  const field = page.getByLabel('Concurrency');
  await field.fill('77');
  await field.blur();
  await page.waitForFunction(
    () => document.querySelector<HTMLInputElement>('[aria-label=Concurrency]')?.value === '4',
  );
  await field.fill('6');
  await field.press('Enter');
  await field.blur();
  await page.getByText('Concurrency of unentered: 6.').waitFor();
  expect((await crawler.details()).concurrency).toBe(6);
  await eventually(async () => expect(await field.inputValue()).toBe('6'));
  await page.context().close();
});

test('a concurrency that was saved stays before the crawler is read again', async () => {
  await createCrawler(app, 'unread', { concurrency: 4 });
  const page = await browser.open('/crawlers/unread', NORMAL);
  const field = page.getByLabel('Concurrency');
  await field.waitFor();
  // What is read has the former number, as long as the service does not get the new one.
  await page.route('**/*.CrawlerService/UpdateCrawler', (route) =>
    route.fulfill({ contentType: 'application/proto', body: '' }),
  );
  await field.fill('6');
  await field.press('Enter');
  await page.getByText('Concurrency of unread: 6.').waitFor();
  await field.blur();
  expect(await field.inputValue()).toBe('6');
  await field.fill('7');
  await field.blur();
  expect(await field.inputValue()).toBe('6');
  await page.context().close();
});

test('a list of as many hosts as are shown does not say that there are others', async () => {
  const crawler = await createCrawler(app, 'hundred');
  await crawler.post('pause');
  await crawler.pushAll(Array.from({ length: 100 }, (_, n) => `http://h${n}.example/`));
  const page = await browser.open('/crawlers/hundred/hosts', NORMAL);
  const rows = page.getByRole('table', { name: 'Hosts' }).locator('tbody tr');
  await rows.nth(99).waitFor();
  expect(await page.getByText('Only the first 100 hosts are shown').count()).toBe(0);
  await crawler.push('http://h100.example/');
  await page.getByText('Only the first 100 hosts are shown').waitFor();
  expect(await rows.count()).toBe(100);
  await page.context().close();
});

test('hosts and batches say whether none are there, none match, or none are left on the page', async () => {
  const crawler = await createCrawler(app, 'bare');
  await crawler.post('pause');
  const page = await browser.open('/crawlers/bare/batches?page=2~', NORMAL);
  await page.getByText('Nothing is left on this page').waitFor();
  await page.goto(`${app.url}/console/crawlers/bare/batches`);
  await page.getByText('No batches').waitFor();
  await page.goto(`${app.url}/console/crawlers/bare/hosts`);
  await page.getByText('No hosts').waitFor();
  await page.getByLabel('Find a host').fill('zzz');
  await page.getByText('Nothing matches the filter').waitFor();
  await page.context().close();
});

test('an empty list says that its filter matches nothing', async () => {
  const crawler = await createCrawler(app, 'some');
  await crawler.stored(await crawler.push(`${site.url}/page/1`));
  const page = await browser.open('/crawlers/some/results?url=zzz', NORMAL);
  await page.getByText('Nothing matches the filter').waitFor();
  expect(await page.getByText('No result is kept').count()).toBe(0);
  await page.getByLabel('URL contains').fill('page');
  await page.getByRole('table', { name: 'Results' }).waitFor();
  await page.context().close();
});
