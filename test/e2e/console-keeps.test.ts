import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { ADMIN, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { type ConsoleBrowser, openConsoleBrowser } from '../support/console-browser.ts';
import { goWithin } from '../support/console-pages.ts';
import { eventually } from '../support/eventually.ts';

// That nothing which a person did is lost, or done to others.
let app: TestApp;
let browser: ConsoleBrowser;

beforeAll(async () => {
  app = await startApp();
  browser = await openConsoleBrowser(app.url);
});

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]();
  await app?.[Symbol.asyncDispose]();
});

afterEach(() => {
  expect(browser.problems.splice(0)).toEqual([]);
});

const crawler = async (name: string) => (await app.rest('GET', `/crawler/${NORMAL}/${name}`)).json;
const make = (name: string, more: object = {}) =>
  app.rest('POST', `/crawler/${NORMAL}`, { name, ...more });
const update = (name: string, body: object) => app.rest('PUT', `/crawler/${NORMAL}/${name}`, body);

async function makePaused(name: string): Promise<void> {
  await make(name);
  await app.rest('POST', `/crawler/${NORMAL}/${name}/pause`);
}

async function onPage(path: string, use: (page: Page) => Promise<void>, token = NORMAL) {
  const page = await browser.open(path, token);
  await use(page);
  await page.context().close();
}

test('a client changes a crawler only as it was read, where it says how', async () => {
  await make('versioned');
  const { etag } = await crawler('versioned');
  expect(etag).toMatch(/^[\w-]{16}$/);
  await app.rest('POST', `/crawler/${NORMAL}/versioned/pause`);
  expect((await crawler('versioned')).etag).toBe(etag);
  const first = await update('versioned', { concurrency: 7, etag });
  expect([first.status, first.json.etag === etag]).toEqual([200, false]);
  const late = await update('versioned', { max_retries: 1, etag });
  expect([late.status, late.json.code, late.json.field]).toEqual([409, 'crawler_changed', 'etag']);
  const fresh = await update('versioned', { max_retries: 1, etag: first.json.etag });
  expect(fresh.json).toMatchObject({ concurrency: 7, max_retries: 1 });
});

test('saving sends what was changed, and says what others have changed', async () => {
  await make('edited', { concurrency: 20 });
  await onPage('/crawlers/edited/settings', async (page) => {
    const concurrency = page.getByLabel('Concurrency');
    const save = page.getByRole('button', { name: 'Save' });
    expect(await save.isDisabled()).toBe(true);
    // A call that changes nothing is refused, and so not shown.
    const call = page.getByRole('heading', { name: 'The same from a program' });
    expect(await call.count()).toBe(0);
    await page.getByLabel('Honour robots.txt').check();
    await call.waitFor();
    await update('edited', { concurrency: 200 });
    await eventually(async () => expect(await concurrency.inputValue()).toBe('200'));
    await save.click();
    await page.getByText('Saved; it applies at once.').waitFor();
    expect(await crawler('edited')).toMatchObject({
      concurrency: 200,
      politeness: { robots_txt: true },
    });

    await page.getByLabel('Retries', { exact: true }).fill('5');
    await update('edited', { max_retries: 7 });
    await page.getByText('Retries is now 7. Saving sets it to 5.').waitFor();
    // A look elsewhere keeps what is not saved.
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('link', { name: 'Settings' }).click();
    await page.getByText('Not saved: Retries').waitFor();
    expect((await crawler('edited')).max_retries).toBe(7);
    await page.getByRole('button', { name: 'Discard' }).click();
    await eventually(async () => {
      expect(await page.getByLabel('Retries', { exact: true }).inputValue()).toBe('7');
    });

    // An emptied number is not taken for a saved one.
    await concurrency.fill('');
    await save.click();
    expect(await concurrency.evaluate((field: HTMLInputElement) => field.validity.valid)).toBe(
      false,
    );
    expect((await crawler('edited')).concurrency).toBe(200);
  });
});

test('a push of a list continues on other pages, and its outcome is downloaded whole', async () => {
  await makePaused('list');
  await onPage('/crawlers/list/push', async (page) => {
    const urls = Array.from({ length: 450 }, (_, at) => `http://a.example/${at}`);
    await page.getByLabel('URLs, one a line').fill([...urls, 'nonsense'].join('\n'));
    // Held back, so that the page is left in the middle.
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let batches = 0;
    await page.route('**/*.PushService/PushBatch', async (route) => {
      batches += 1;
      if (batches === 3) await held;
      await route.continue();
    });
    await page.getByRole('button', { name: 'Push 451' }).click();
    await page.getByRole('link', { name: 'Pushing: 200 of 451 into list' }).waitFor();
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('heading', { name: 'list' }).waitFor();
    const asked = page.waitForEvent('dialog');
    await page.close({ runBeforeUnload: true });
    const question = await asked;
    expect(question.type()).toBe('beforeunload');
    await question.dismiss();
    release();
    await eventually(async () => {
      expect(Number((await crawler('list')).activity.pushed)).toBe(450);
    });
    await page.getByRole('link', { name: /^Push URLs/ }).click();
    await page.getByText('450 queued, 1 refused').waitFor();
    const saving = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download CSV' }).click();
    const saved = await readFile(await (await saving).path(), 'utf8');
    const lines = saved.trim().split('\r\n');
    expect(lines).toHaveLength(452);
    expect(lines[0]).toBe('url,rid,error,duplicate');
    expect(lines[1]).toMatch(/^http:\/\/a\.example\/0,[0-9a-f]{24},,false$/);
    // What was pushed is not pushed again by a second press.
    const push = page.getByRole('button', { name: 'Push', exact: true });
    expect(await push.isDisabled()).toBe(true);
  });
});

test('a push continues after a failure, and queues nothing twice', async () => {
  await makePaused('broken');
  await onPage('/crawlers/broken/push', async (page) => {
    const urls = Array.from({ length: 250 }, (_, at) => `http://b.example/${at}`);
    await page.getByLabel('URLs, one a line').fill(urls.join('\n'));
    let batches = 0;
    let isDown = false;
    await page.route('**/*.PushService/PushBatch', async (route) => {
      batches += 1;
      if (isDown) return route.abort();
      if (batches !== 2) return route.continue();
      // The service takes the second batch, and the answer is lost.
      const request = route.request();
      const body = new Uint8Array(request.postDataBuffer() ?? []);
      const { 'content-type': type = '' } = request.headers();
      const authorization = `Bearer ${NORMAL}`;
      const headers = { 'content-type': type, 'connect-protocol-version': '1', authorization };
      const taken = await fetch(request.url(), { method: 'POST', body, headers });
      expect(taken.status).toBe(200);
      await taken.arrayBuffer();
      isDown = true;
      return route.abort();
    });
    await page.getByRole('button', { name: 'Push 250' }).click();
    await page.getByText('The push continues by itself when the service answers.').waitFor();
    expect(Number((await crawler('broken')).activity.pushed)).toBe(200);
    await page.getByRole('button', { name: 'Stop' }).click();
    isDown = false;
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('250 queued').waitFor();
    expect(Number((await crawler('broken')).activity.pushed)).toBe(250);
    browser.problems.splice(0).forEach((each) => expect(each).toContain('ERR_FAILED'));
  });
});

test('a page that one may not see says so, and signs nobody out', async () => {
  await onPage('/crawlers', async (page) => {
    for (const path of ['/accounts', '/system', '/setup']) {
      await goWithin(page, path);
      await page.getByText('This page is for operators').waitFor();
    }
    await goWithin(page, '/account');
    await page.getByRole('heading', { name: 'Account' }).first().waitFor();
  });
  await onPage('/crawlers', (page) => page.getByText('This page is for accounts').waitFor(), ADMIN);
  // The browser itself notes that the token is no account's.
  browser.problems.splice(0).forEach((each) => expect(each).toContain('401'));
});

test('no single key changes anything, and keys can be switched off', async () => {
  await make('keys');
  await onPage('/crawlers/keys', async (page) => {
    await page.getByRole('heading', { name: 'keys' }).waitFor();
    for (const key of ['p', 't', 'Delete', 'x']) await page.keyboard.press(key);
    await page.keyboard.press('?');
    await page.getByLabel('Single keys').uncheck();
    await page.keyboard.press('Escape');
    for (const key of ['g', 'a', 'u', '2', '?']) await page.keyboard.press(key);
    expect(new URL(page.url()).pathname).toBe('/console/crawlers/keys');
    await page.reload();
    await page.getByRole('heading', { name: 'keys' }).waitFor();
    await page.keyboard.press('2');
    expect(new URL(page.url()).pathname).toBe('/console/crawlers/keys');
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Crawler, command, URL, host or rid' }).waitFor();
  });
  expect((await crawler('keys')).status).toBe('running');
});

test('a removal asks first, and the focus stays on the page', async () => {
  await makePaused('removed');
  await app.rest('POST', `/crawler/${NORMAL}/removed/push_batch`, {
    items: [{ url: 'http://c.example/1' }],
  });
  await onPage('/crawlers/removed/jobs', async (page) => {
    const remove = page.getByRole('button', { name: 'Remove http://c.example/1' });
    await remove.press('Enter');
    await page.keyboard.press('Escape');
    expect(Number((await crawler('removed')).activity.waiting)).toBe(1);
    await remove.press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).press('Enter');
    await page.getByText('Nothing waits').waitFor();
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('main');
  });
});

test('the focus stays on the page when a row is gone before its removal is answered', async () => {
  await makePaused('early');
  const items = ['http://d.example/1', 'http://d.example/2'].map((url) => ({ url }));
  await app.rest('POST', `/crawler/${NORMAL}/early/push_batch`, { items });
  await onPage('/crawlers/early/jobs', async (page) => {
    const { promise: rowIsGone, resolve: answer } = Promise.withResolvers<void>();
    await page.route('**/*.CrawlerService/DeleteJob', async (route) => {
      const response = await route.fetch();
      await rowIsGone;
      await route.fulfill({ response });
    });
    // By its attribute: what lies under a dialog has no role.
    const remove = page.locator('[aria-label="Remove http://d.example/1"]');
    await remove.press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).press('Enter');
    await remove.waitFor({ state: 'detached' });
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('main');
    answer();
    await page.getByText('Removed http://d.example/1').waitFor();
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('main');
  });
});
