import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { type ConsoleBrowser, openConsoleBrowser } from '../support/console-browser.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startSite } from '../support/site.ts';

let app: TestApp;
let browser: ConsoleBrowser;
let page: Page;

beforeAll(async () => {
  app = await startApp();
  browser = await openConsoleBrowser(app.url);
  page = await browser.open('', '');
  await page.goto(`${app.url}/docs`);
  await page.locator('main h2').getByText('Crawlers', { exact: true }).waitFor();
});

afterAll(async () => {
  // Errors of the page, and what its policy would have stopped.
  expect(browser.problems).toEqual([]);
  await browser[Symbol.asyncDispose]();
  await app[Symbol.asyncDispose]();
});

const operation = (id: string) => page.locator(`details#${id}`);
const open = (id: string) => operation(id).locator('> summary').click();

test('the page has a strict policy and loads nothing from elsewhere', async () => {
  const reply = await app.rest('GET', '/docs');
  const policy = reply.headers.get('content-security-policy') ?? '';
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toMatch(/unsafe|https?:/);
  for (const path of ['/docs', '/docs/reference.js', '/openapi.json']) {
    const { headers } = await app.rest('GET', path);
    expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
    expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
  }
  expect((await app.rest('HEAD', '/docs')).status).toBe(200);
  const loaded = await page.evaluate(() =>
    performance.getEntriesByType('resource').map(({ name }) => new URL(name).host),
  );
  expect(new Set(loaded)).toEqual(new Set([new URL(app.url).host]));
});

test('every operation is there, and can be found', async () => {
  const { json } = await app.rest('GET', '/openapi.json');
  const ids = Object.values(json.paths).flatMap((item) =>
    Object.values(item as object).map(({ operationId }) => operationId),
  );
  expect(await page.locator('details.operation').count()).toBe(ids.length);
  await page.getByLabel('Find').fill('total_count');
  await eventually(async () =>
    expect(await page.locator('details.operation:visible').count()).toBe(1),
  );
  // What was looked for is in the address.
  await page.reload();
  await eventually(async () =>
    expect(await page.locator('details.operation:visible').count()).toBe(1),
  );
  await page.getByLabel('Find').fill('');
  expect(new URL(page.url()).search).toBe('');
  // By task and path.
  expect(await page.locator('nav h2').allInnerTexts()).toContain('Push and crawl URLs');
  await page.locator('nav').getByText('GET /crawler/{name}', { exact: true }).waitFor();
});

test('a call is described, written as curl and made', async () => {
  await createCrawler(app, 'shop');
  await page.getByLabel('Token').fill(NORMAL);
  await open('GetCrawler');
  const details = operation('GetCrawler');
  await details.getByLabel('name', { exact: true }).fill('shop');
  expect(await details.innerText()).toMatch(/404\s+There is no such crawler/);
  const command = await details.locator('pre').first().innerText();
  expect(command).toBe(`curl "${app.url}/crawler/$TOKEN/shop"`);
  await details.getByRole('button', { name: 'Call' }).click();
  await details.getByText('"name": "shop"').waitFor();
  for (const [language, text] of [
    ['Node', 'process.env.TOKEN'],
    ['Python', 'os.environ["TOKEN"]'],
    ['curl', '$TOKEN'],
  ] as const) {
    await page.getByLabel('Examples').selectOption(language);
    expect(await details.locator('pre').first().innerText()).toContain(text);
    await details.getByRole('button', { name: 'Copy' }).click();
    await details.getByRole('button', { name: 'Copied' }).waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    expect(copied).toBe(await details.locator('pre').first().innerText());
    expect(copied).not.toContain(NORMAL);
    await details.getByRole('button', { name: 'Copy' }).waitFor();
  }
});

test('one sign-in serves the page and the console, from which a link leads to the other', async () => {
  const own = await browser.open('', '');
  await own.goto(`${app.url}/docs`);
  await own.getByLabel('Token').fill(NORMAL);
  await own.getByRole('button', { name: 'Sign in' }).click();
  await own.getByLabel('Token of the session').waitFor();
  expect(await own.locator('header').innerText()).toContain('default');
  for (const id of ['GetStats', 'CountResults']) {
    const details = own.locator(`details#${id}`);
    await details.locator('> summary').click();
    await details.getByRole('button', { name: 'Call' }).click();
    await details.getByText('200 OK').waitFor();
    expect(await details.locator('pre').first().innerText()).not.toContain(NORMAL);
  }
  await own.getByRole('link', { name: 'Console' }).click();
  await own.getByRole('heading', { name: 'Crawlers' }).waitFor();
  await own.getByRole('link', { name: 'API reference' }).click();
  await own.getByLabel('Token of the session').waitFor();
  await own.evaluate(axe.source);
  const { violations } = await own.evaluate(() =>
    (globalThis as never as { axe: typeof axe }).axe.run(),
  );
  expect(violations.map(({ id, nodes }) => [id, nodes[0]?.html])).toEqual([]);
  await own.context().close();
});

test('a picture that is opened in a tab has another origin than the service', async () => {
  const svg =
    '<svg xmlns="http://www.w3.org/2000/svg"><script>document.documentElement.dataset.origin = origin</script></svg>';
  await using site = await startSite({
    routes: {
      '/script.svg': (_request, response) => {
        response.writeHead(200, { 'content-type': 'image/svg+xml' }).end(svg);
      },
    },
  });
  await page.getByLabel('Token').fill(NORMAL);
  await open('PushOrCrawl');
  const details = operation('PushOrCrawl');
  await details.getByLabel('url', { exact: true }).fill(`${site.url}/script.svg`);
  await details.getByRole('button', { name: 'Call' }).click();
  const source = await details.getByRole('img', { name: 'the picture' }).getAttribute('src');
  const tab = await page.context().newPage();
  await tab.goto(source ?? '');
  expect(await tab.evaluate(() => document.documentElement.dataset.origin)).toBe('null');
  await tab.close();
});

test('a body is given as an example, and refusals are shown', async () => {
  await open('CreateCrawler');
  const details = operation('CreateCrawler');
  const body = details.getByLabel('Body');
  expect(JSON.parse(await body.inputValue())).toMatchObject({ name: '', concurrency: 0 });
  await body.fill('{"name":"a name"}');
  await details.getByRole('button', { name: 'Call' }).click();
  await details.getByText('"code": "invalid_name"').waitFor();
  // The browser itself notes refusals as errors.
  expect(browser.problems.splice(0)).toEqual([expect.stringContaining('422')]);
});

test('a stream is shown as it comes, until it is stopped', async () => {
  await open('WatchCrawlers');
  const details = operation('WatchCrawlers');
  await details.getByRole('button', { name: 'Call' }).click();
  await details.getByText('"shop"').first().waitFor();
  await details.getByRole('button', { name: 'Stop' }).click();
  await details.getByText('Stopped.').waitFor();
});

test('it can be used without seeing it, in either theme', async () => {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate(() =>
      (globalThis as never as { axe: typeof axe }).axe.run(),
    );
    expect(violations.map(({ id, nodes }) => [id, nodes[0]?.html])).toEqual([]);
  }
});
