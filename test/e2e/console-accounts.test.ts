import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { ADMIN, JAVASCRIPT, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { type ConsoleBrowser, openConsoleBrowser } from '../support/console-browser.ts';
import { goWithin } from '../support/console-pages.ts';
import { eventually } from '../support/eventually.ts';

// Accounts that follow one another in the same browser: A, whose token is NORMAL, and B.
let app: TestApp;
let browser: ConsoleBrowser;
let tokenOfB: string;

beforeAll(async () => {
  app = await startApp();
  browser = await openConsoleBrowser(app.url);
  const admin = { authorization: `Bearer ${ADMIN}` };
  const made = await app.rest('POST', '/accounts', { name: 'other' }, admin);
  tokenOfB = made.json.normal_token as string;
});

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]();
  await app?.[Symbol.asyncDispose]();
});

let crawler = '';
let crawlers = 0;

beforeEach(async () => {
  crawlers += 1;
  crawler = `news-${crawlers}`;
  for (const token of [NORMAL, tokenOfB]) await make(token, crawler);
});

afterEach(() => {
  // The browser itself notes the refusals of the account before.
  browser.problems.splice(0).forEach((each) => expect(each).toMatch(/40[13]/));
});

async function make(token: string, name: string): Promise<void> {
  const made = await app.rest('POST', `/crawler/${token}`, { name });
  expect(made.status, made.text).toBe(200);
  await app.rest('POST', `/crawler/${token}/${name}/pause`);
}

async function pushTwo(token: string): Promise<void> {
  const items = [{ url: 'http://a.example/1' }, { url: 'http://a.example/2' }];
  const pushed = await app.rest('POST', `/crawler/${token}/${crawler}/push_batch`, { items });
  expect(pushed.status, pushed.text).toBe(200);
}

const activityOf = async (token: string) =>
  (await app.rest('GET', `/crawler/${token}/${crawler}`)).json.activity;

/** Signs in as B in a new tab, after the session of the others is over, as they do not know yet. */
async function signInAsB(page: Page, initScript?: () => void): Promise<Page> {
  await page.context().clearCookies();
  const tab = await page.context().newPage();
  if (initScript !== undefined) await tab.addInitScript(initScript);
  await tab.goto(`${app.url}/console/crawlers`);
  await tab.getByLabel('Token').fill(tokenOfB);
  await tab.getByRole('button', { name: 'Sign in' }).click();
  await tab.getByRole('navigation', { name: 'Places' }).waitFor();
  return tab;
}

const isOfB = (page: Page): Promise<void> => page.locator('.who').getByText('other').waitFor();

test('another account of the same browser sees and does nothing of the one before', async () => {
  await make(NORMAL, 'only-of-a');
  for (const token of [NORMAL, tokenOfB]) await pushTwo(token);
  const list = await browser.open('/crawlers', NORMAL);
  await list.getByText('Live', { exact: true }).waitFor();
  await list.getByRole('link', { name: 'only-of-a', exact: true }).waitFor();
  const page = await list.context().newPage();
  await page.goto(`${app.url}/console/crawlers/${crawler}`);
  await page.getByRole('button', { name: 'Purge the queue…' }).click();
  await page.getByLabel(`Type ${crawler} to confirm`).fill(crawler);

  const tab = await signInAsB(list);
  for (const each of [list, page]) await isOfB(each);
  for (const each of [list, tab]) {
    await each.getByRole('link', { name: crawler, exact: true }).waitFor();
    await each.getByText('Live', { exact: true }).waitFor();
  }
  expect(await page.getByRole('dialog').count()).toBe(0);
  await page.getByRole('heading', { name: crawler }).waitFor();
  // What one account does is not streamed to the other.
  await make(NORMAL, 'later-of-a');
  await make(tokenOfB, 'later-of-b');
  for (const each of [list, tab]) {
    await each.getByRole('link', { name: 'later-of-b', exact: true }).waitFor();
    expect(await each.getByRole('link', { name: /-of-a$/ }).count()).toBe(0);
  }
  await list.context().close();
});

test('a list that is being pushed ends with its account', async () => {
  const page = await browser.open(`/crawlers/${crawler}/push`, NORMAL);
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  let batches = 0;
  await page.route('**/*.PushService/PushBatch', async (route) => {
    batches += 1;
    if (batches === 2) await held;
    // That of a page which has left it is not continued.
    await route.continue().catch(() => undefined);
  });
  const urls = Array.from({ length: 400 }, (_, at) => `http://a.example/${at}`);
  await page.getByLabel('URLs, one a line').fill(urls.join('\n'));
  await page.getByRole('button', { name: 'Push 400' }).click();
  await page.getByText('100 queued').waitFor();
  await eventually(() => expect(batches).toBe(2));

  await signInAsB(page);
  await isOfB(page);
  release();
  await page.getByRole('heading', { name: crawler }).waitFor();
  await page.getByLabel('URLs, one a line').waitFor();
  expect(await page.getByRole('heading', { name: 'Results of this push' }).count()).toBe(0);
  expect(await page.getByRole('link', { name: /into/ }).count()).toBe(0);
  expect([batches, (await activityOf(tokenOfB)).waiting]).toEqual([2, 0]);
  await page.context().close();
});

test('what a page of one account asks for is not done to another', async () => {
  for (const token of [NORMAL, tokenOfB]) await pushTwo(token);
  const page = await browser.open(`/crawlers/${crawler}`, NORMAL);
  await page.getByRole('button', { name: 'Purge the queue…' }).click();
  await page.getByLabel(`Type ${crawler} to confirm`).fill(crawler);
  // Its tab says nothing to the others.
  await signInAsB(page, () => {
    BroadcastChannel.prototype.postMessage = () => undefined;
  });
  await page.getByRole('dialog').getByRole('button', { name: 'Purge', exact: true }).click();
  await isOfB(page);
  expect(await page.getByRole('dialog').count()).toBe(0);
  for (const token of [NORMAL, tokenOfB]) expect((await activityOf(token)).waiting).toBe(2);
  await page.context().close();
});

test('what a person has typed and not sent is not shown to another account', async () => {
  const page = await browser.open(`/crawlers/${crawler}/settings`, NORMAL);
  await page.getByLabel('Retries', { exact: true }).fill('5');
  await page.getByText('Not saved: Retries').waitFor();
  await page.getByRole('link', { name: 'Push URLs' }).first().click();
  const urls = page.getByLabel('URLs, one a line');
  await urls.fill('http://of-a.example/');
  const signOutAndIn = async (token: string): Promise<void> => {
    await page.getByRole('button', { name: 'Sign out' }).first().click();
    await page.getByLabel('Token').fill(token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: crawler }).waitFor();
  };
  // The same account finds it again.
  await signOutAndIn(NORMAL);
  expect(await urls.inputValue()).toBe('http://of-a.example/');
  await signOutAndIn(tokenOfB);
  expect(await urls.inputValue()).toBe('');
  await page.getByRole('link', { name: 'Settings' }).click();
  await page.getByLabel('Retries', { exact: true }).waitFor();
  expect(await page.getByText('Not saved').count()).toBe(0);

  // Nor to a crawler that takes the name of a deleted one.
  await page.getByLabel('Retries', { exact: true }).fill('5');
  await page.getByText('Not saved: Retries').waitFor();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByLabel(`Type ${crawler} to confirm`).fill(crawler);
  await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByRole('heading', { name: 'Crawlers', exact: true }).waitFor();
  await make(tokenOfB, crawler);
  await goWithin(page, `/crawlers/${crawler}/settings`);
  await page.getByLabel('Retries', { exact: true }).waitFor();
  expect(await page.getByText('Not saved').count()).toBe(0);
  await page.context().close();
});

test('the pages of a crawler and its job say so when its token is replaced, and others open', async () => {
  await make(JAVASCRIPT, `scripts-${crawlers}`);
  const items = [{ url: 'http://a.example/' }];
  const path = `/crawler/${JAVASCRIPT}/scripts-${crawlers}/push_batch`;
  const { results } = (await app.rest('POST', path, { items })).json;
  const page = await browser.open('/account', NORMAL);
  await page.getByRole('textbox', { name: 'Token' }).fill(JAVASCRIPT);
  await page.getByRole('button', { name: 'Add' }).click();
  await page.getByText('Normal and JavaScript token').waitFor();
  await goWithin(page, `/crawlers/scripts-${crawlers}/settings`);
  await page.getByLabel('Retries', { exact: true }).waitFor();
  const job = await page.context().newPage();
  await job.goto(`${app.url}/console/jobs/${results[0].rid}`);
  await job.getByRole('list', { name: 'Timeline' }).waitFor();
  const admin = { authorization: `Bearer ${ADMIN}` };
  const rotate = '/accounts/default/rotate_token';
  const rotated = await app.rest('POST', rotate, { token_type: 'javascript' }, admin);
  expect(rotated.status).toBe(200);
  for (const each of [job, page]) {
    await each.getByText('belongs to the account’s other token').waitFor();
  }
  // It is not found with the other token, and stays that of the one that is missing.
  await job.waitForResponse(
    async (reply) => reply.url().endsWith('/FindRid') && reply.status() === 404,
  );
  await job.getByRole('link', { name: 'Add the token' }).click();
  await job.getByRole('heading', { name: 'Account default' }).waitFor();
  await page.context().close();
});

test('a session that cannot be read is read again, and the page says why it waits', async () => {
  const page = await browser.open('/crawlers', NORMAL);
  await page.getByRole('link', { name: crawler, exact: true }).waitFor();
  let isAway = true;
  await page.route('**/console/session', (route) =>
    isAway
      ? route.fulfill({ status: 503, json: { error: 'The database does not answer.' } })
      : route.continue(),
  );
  await page.reload();
  await page.getByText('The database does not answer.').waitFor();
  expect(await page.getByRole('heading', { name: 'Sign in' }).count()).toBe(0);
  isAway = false;
  await page.getByRole('link', { name: crawler, exact: true }).waitFor();
  browser.problems.splice(0).forEach((each) => expect(each).toContain('503'));
  await page.context().close();
});

test('tabs do not say that the session has ended by itself when its user ended it', async () => {
  const page = await browser.open('/crawlers', NORMAL);
  const tab = await page.context().newPage();
  await tab.goto(`${app.url}/console/account`);
  await tab.getByRole('heading', { name: 'Account default' }).waitFor();
  await page.getByRole('button', { name: 'Sign out' }).first().click();
  for (const each of [page, tab]) {
    await each.getByRole('heading', { name: 'Sign in' }).waitFor();
    await each.getByText('The session has ended').waitFor({ state: 'detached' });
  }
  await page.context().close();
});

test('what an account has typed stays while an operator continues without its token', async () => {
  const page = await browser.open('/account', tokenOfB);
  await page.getByRole('textbox', { name: 'Token' }).fill(ADMIN);
  await page.getByRole('button', { name: 'Add' }).click();
  await page.getByText('Normal and admin token').waitFor();
  await goWithin(page, `/crawlers/${crawler}/push`);
  await page.getByLabel('URLs, one a line').fill('http://of-b.example/');
  const admin = { authorization: `Bearer ${ADMIN}` };
  const rotated = await app.rest(
    'POST',
    '/accounts/other/rotate_token',
    { token_type: 'normal' },
    admin,
  );
  expect(rotated.status, rotated.text).toBe(200);
  await page.getByText('This page is for accounts').waitFor();
  await page.getByRole('button', { name: 'Sign out' }).first().click();
  await page.getByLabel('Token').fill(rotated.json.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: crawler }).waitFor();
  expect(await page.getByLabel('URLs, one a line').inputValue()).toBe('http://of-b.example/');
  await page.context().close();
});
