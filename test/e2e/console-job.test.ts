import { afterAll, beforeAll, expect, test } from 'vitest';
import { JAVASCRIPT, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { type ConsoleBrowser, openConsoleBrowser } from '../support/console-browser.ts';
import { faultsInBothThemes, NO_FAULTS, seriousFaults } from '../support/console-pages.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type Site, startSite } from '../support/site.ts';

let site: Site;
let receiver: Receiver;
let app: TestApp;
let browser: ConsoleBrowser;

beforeAll(async () => {
  site = await startSite({
    routes: {
      '/cyrillic': (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/html; charset=windows-1251' });
        response.end(Buffer.concat([Buffer.from('<p>'), Buffer.from([0xcc, 0xe8, 0xf0])]));
      },
    },
  });
  receiver = await startReceiver({ answer: { status: 500, body: 'database is down' } });
  app = await startApp({ env: { WEBHOOK_RETRY_SCHEDULE: '1h' } });
  browser = await openConsoleBrowser(app.url);
});

afterAll(async () => {
  expect(browser.problems).toEqual([]);
  await browser[Symbol.asyncDispose]();
  await app[Symbol.asyncDispose]();
  await receiver[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

test('a waiting job has an address, tells what it waits for, and follows until it is stored', async () => {
  const crawler = await createCrawler(app, 'waits', { max_retries: 3 });
  await crawler.post('pause');
  const rid = await crawler.push(`${site.url}/flaky/a?fails=1`, '&user_agent=Bot%2F1');
  const page = await browser.open('/crawlers/waits/jobs', NORMAL);
  await page.getByRole('link', { name: rid }).click();
  const timeline = page.getByRole('list', { name: 'Timeline' });
  await timeline.getByText('Waits: the crawler is paused').waitFor();
  expect(new URL(page.url()).pathname).toBe(`/console/jobs/${rid}`);
  await crawler.post('unpause');
  await timeline.getByText('Try 1: target unavailable, the site answered 503').waitFor();
  await timeline.getByText('Try 2: the site answered 200').waitFor();
  await timeline.getByText('Stored with cb_status 200').waitFor();
  await page.getByText('Bot/1').waitFor();
  expect(await timeline.getByText('Waits', { exact: false }).count()).toBe(0);

  await page.getByRole('button', { name: 'Push again like this' }).click();
  await eventually(() => expect(page.url()).not.toContain(rid));
  const again = new URL(page.url()).pathname.split('/').at(-1) ?? '';
  await crawler.stored(again);
  expect(site.seen.at(-1)?.headers['user-agent']).toBe('Bot/1');
  await page.context().close();
});

test('a result tells where it was redirected to, and its charset', async () => {
  const crawler = await createCrawler(app, 'redirected');
  const url = `${site.url}/redirect-to?url=/cyrillic`;
  const rid = await crawler.push(url, '&get_headers=true');
  await crawler.stored(rid);
  const page = await browser.open(`/jobs/${rid}`, NORMAL);
  const fact = (name: string) => page.locator('.facts > div').filter({ hasText: name });
  const result = page.getByRole('region', { name: 'Result' });
  await result.getByText('Redirected to').waitFor();
  expect(await fact('Redirected to').innerText()).toContain(`${site.url}/cyrillic`);
  await result.getByText('windows-1251, kept as utf-8').waitFor();
  await page.getByRole('button', { name: 'Source' }).click();
  await result.getByText('Мир').waitFor();
  await page.context().close();
});

test('a crawl in the browser shows how long each of its steps took', async () => {
  await app.rest('POST', `/crawler/${JAVASCRIPT}`, { name: 'rendered' });
  const pushed = await app.rest(
    'GET',
    `/?token=${JAVASCRIPT}&crawler=rendered&callback=true&page_wait=100&scroll=true&url=${site.url}/page/1`,
  );
  const rid = pushed.json.rid as string;
  const page = await browser.open(`/jobs/${rid}`, JAVASCRIPT);
  const timeline = page.getByRole('list', { name: 'Timeline' });
  const first = timeline.getByRole('listitem').filter({ hasText: 'Try 1: the site answered 200' });
  await first.waitFor();
  const steps = await first.locator('dl.steps > div').allInnerTexts();
  const shown = steps.map((text) => /^(.+?)\s+([\d.,]+ m?s)$/s.exec(text.trim())?.slice(1) ?? text);
  // A step of less than a millisecond is left out, such as the load of so small a page.
  expect(shown.map(([name]) => name).filter((name) => name !== 'load')).toEqual([
    'page',
    'navigate',
    'page wait',
    'scroll',
    'capture',
  ]);
  // A timer may be a millisecond early.
  const waited = shown.find(([name]) => name === 'page wait')?.[1] ?? '';
  expect(Number.parseFloat(waited)).toBeGreaterThanOrEqual(waited.endsWith(' ms') ? 90 : 0.1);
  await timeline.getByText('Stored with cb_status 200').waitFor();
  await page.context().close();
});

test('the page of a delivery that fails shows what was sent and answered, in both themes', async () => {
  const crawler = await createCrawler(app, 'hooked', { callback_url: receiver.url });
  const rid = await crawler.push(`${site.url}/page/1`, '&callback_headers=X-Key%3Ahush');
  await receiver.until(1);
  for (const theme of ['light', 'dark'] as const) {
    const page = await browser.open(`/jobs/${rid}`, NORMAL, { theme });
    const timeline = page.getByRole('list', { name: 'Timeline' });
    await timeline.getByText('Delivery attempt 1: answered 500').waitFor();
    await timeline.getByText('Waits for the next delivery attempt').waitFor();
    await timeline.getByText('What the callback URL answered').click();
    await timeline.getByText('database is down').waitFor();
    await page.getByText('Headers of the latest POST').click();
    await page.getByText('X-Key: (hidden)').waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    await page.context().close();
  }
  receiver.answer({ status: 200 });
  const page = await browser.open(`/find?rid=${rid}`, NORMAL);
  await page.getByRole('button', { name: 'Replay' }).click();
  await page.getByText('Delivery attempt 2: answered 200').waitFor();
  await page.getByText('Delivered', { exact: true }).waitFor();
  await page.context().close();
});

test('a job is removed from the queue on its page, and then nothing is known of it', async () => {
  const crawler = await createCrawler(app, 'removed');
  await crawler.post('pause');
  const rid = await crawler.push(`${site.url}/page/1`);
  const page = await browser.open(`/jobs/${rid}`, NORMAL);
  await page.getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await page.getByText('Nothing is known of this rid').waitFor();
  expect((await app.rest('GET', `/find_by_rid/${NORMAL}/${rid}`)).status).toBe(404);
  browser.problems.splice(0).forEach((each) => expect(each).toContain('404'));
  await page.context().close();
});

test('the result of a deleted crawler is shown without calls that need the crawler', async () => {
  const crawler = await createCrawler(app, 'deleted');
  const rid = await crawler.push(`${site.url}/page/1`);
  await crawler.stored(rid);
  expect((await crawler.post('delete')).status).toBe(200);
  const page = await browser.open(`/jobs/${rid}`, NORMAL);
  await page.getByText('The crawler was deleted').waitFor();
  await page.getByRole('region', { name: 'Result' }).waitFor();
  expect(await page.getByText('push_batch').count()).toBe(0);
  expect(await page.getByRole('button', { name: 'Push again like this' }).count()).toBe(0);
  await page.context().close();
});

test('a URL is found from the palette, and leads to its job', async () => {
  const crawler = await createCrawler(app, 'found');
  await crawler.post('pause');
  const rid = await crawler.push(`${site.url}/page/7?needle`);
  const page = await browser.open('/crawlers', NORMAL);
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').fill('NEEDLE');
  await page.getByRole('option', { name: /Find .NEEDLE. in URLs/ }).click();
  await page.getByRole('table', { name: 'URLs' }).waitFor();
  expect(new URL(page.url()).search).toBe('?q=NEEDLE');
  expect(await faultsInBothThemes(page)).toEqual(NO_FAULTS);
  await page.getByRole('link', { name: /needle/ }).click();
  await page.getByText(rid).first().waitFor();
  await page.context().close();
});
