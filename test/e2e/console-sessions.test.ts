import type { IncomingHttpHeaders } from 'node:http';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { ADMIN, callRest, JAVASCRIPT, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { openConsoleBrowser } from '../support/console-browser.ts';
import { eventually } from '../support/eventually.ts';
import { startTlsApp } from '../support/tls-app.ts';

const PATH = '/console/session';
const signIn = (app: TestApp, token: unknown, headers: Record<string, string> = {}) =>
  app.rest('POST', PATH, { token }, headers);

async function cookieOf(app: TestApp, token: string): Promise<string> {
  const { headers } = await signIn(app, token);
  return headers.get('set-cookie')?.split(';')[0] ?? '';
}

/** The crawlers as the console lists them: by its session and the name of a token of it. */
const listed = (url: string, headers: Record<string, string>, kind = 'normal') =>
  callRest(
    `${url}/queuedcrawler.v1.CrawlerService/ListCrawlers`,
    'POST',
    {},
    {
      'x-console-token': kind,
      ...headers,
    },
  );

const newTab = async (page: Page, path: string): Promise<Page> => {
  const tab = await page.context().newPage();
  await tab.goto(path);
  return tab;
};

test('one session serves all tabs, is named in the header, and ends in all of them', async () => {
  await using app = await startApp();
  await app.rest('POST', `/crawler/${NORMAL}`, { name: 'news' });
  await app.rest('POST', `/crawler/${JAVASCRIPT}`, { name: 'scripts' });
  await using browser = await openConsoleBrowser(app.url);
  const page = await browser.open('/crawlers', NORMAL);
  const tab = await newTab(page, `${app.url}/console/crawlers/news/jobs`);
  await tab.getByRole('heading', { name: 'news' }).waitFor();
  await tab.getByTitle('Signed in with the Normal token').getByText('default').waitFor();
  // No script can read a token.
  const readable = 'JSON.stringify([document.cookie, localStorage, sessionStorage])';
  for (const each of [page, tab]) expect(await each.evaluate(readable)).not.toContain(NORMAL);
  const [cookie] = await page.context().cookies();
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', secure: false, path: '/' });
  expect(decodeURIComponent(cookie?.value ?? '')).not.toContain(NORMAL);

  // The account's other token, added in one tab, serves all of them.
  await page.goto(`${app.url}/console/account`);
  await page.getByRole('textbox', { name: 'Token' }).fill(JAVASCRIPT);
  await page.getByRole('button', { name: 'Add' }).click();
  await tab.getByText('Normal and JavaScript token').waitFor();
  await tab.goto(`${app.url}/console/crawlers`);
  await tab.getByRole('link', { name: 'scripts', exact: true }).waitFor();

  await tab.getByRole('button', { name: 'Sign out' }).click();
  for (const each of [page, tab]) await each.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.reload();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  expect(await page.context().cookies()).toEqual([]);
  expect(browser.problems).toEqual([]);
});

test('a replaced token ends its sessions at once, and the console says so', async () => {
  await using app = await startApp();
  await using browser = await openConsoleBrowser(app.url);
  const page = await browser.open('/crawlers', NORMAL);
  await page.getByText('No crawler yet').waitFor();
  const cookie = await cookieOf(app, NORMAL);
  expect((await listed(app.url, { cookie })).status).toBe(200);
  const admin = { authorization: `Bearer ${ADMIN}` };
  const rotate = '/accounts/default/rotate_token';
  const rotated = await app.rest('POST', rotate, { token_type: 'normal' }, admin);
  expect(rotated.status).toBe(200);
  expect((await listed(app.url, { cookie })).status).toBe(401);
  await page.getByText('The session has ended, or its token was replaced.').waitFor();
  // The browser itself notes the refusals.
  browser.problems.splice(0).forEach((each) => expect(each).toContain('401'));
});

test('other sites, other ports of the host and pages of other accounts cannot use a session', async () => {
  await using app = await startApp();
  const cookie = await cookieOf(app, NORMAL);
  expect((await listed(app.url, { cookie })).status).toBe(200);
  // Without the header, which other sites cannot send with a cookie.
  expect((await listed(app.url, { cookie, 'x-console-token': '' })).status).toBe(401);
  // A page that does not know yet that another account has signed in.
  for (const [account, status] of [
    ['default', 200],
    ['other', 401],
  ] as const) {
    const meant = { cookie, 'x-console-account': account };
    expect((await listed(app.url, meant)).status).toBe(status);
  }
  const foreign = { 'sec-fetch-site': 'same-site' };
  expect((await listed(app.url, { cookie, ...foreign })).status).toBe(401);
  for (const method of ['GET', 'DELETE', 'POST']) {
    const body = method === 'POST' ? { token: NORMAL } : undefined;
    const { status, json } = await app.rest(method, PATH, body, { cookie, ...foreign });
    expect([status, json.code]).toEqual([403, 'other_origin']);
  }
  const form = { 'content-type': 'text/plain' };
  expect((await signIn(app, NORMAL, form)).status).toBe(401);
  const preflight = await app.rest('OPTIONS', PATH, undefined, { origin: 'https://a.example' });
  expect(preflight.headers.get('access-control-allow-origin')).toBeNull();
  // A path takes the token of the session, where its own has a hyphen.
  const named = { cookie, 'x-console-token': 'normal' };
  expect((await app.rest('GET', '/crawler/-/stats', undefined, named)).status).toBe(200);
  expect((await app.rest('GET', '/crawler/-/stats', undefined, { cookie })).status).toBe(401);
  // A cross-origin call of the API is answered to a page only if it carries no cookie.
  const cross = await listed(app.url, { cookie, origin: 'https://a.example' });
  expect(cross.headers.get('access-control-allow-credentials')).toBeNull();
});

test('a session has tokens of one account, and wrong ones are refused and counted', async () => {
  await using app = await startApp();
  const admin = { authorization: `Bearer ${ADMIN}` };
  const made = await app.rest('POST', '/accounts', { name: 'other' }, admin);
  const cookie = await cookieOf(app, NORMAL);
  const other = await signIn(app, made.json.normal_token, { cookie });
  expect([other.status, other.json.code]).toEqual([409, 'other_account']);
  const both = await signIn(app, ADMIN, { cookie });
  expect(both.json).toEqual({ account: 'default', tokens: ['normal', 'admin'] });
  for (const token of ['', 7, undefined, 'x'.repeat(5_000)]) {
    expect((await signIn(app, token)).json.code).toBe('missing_token');
  }
  const json = { 'content-type': 'application/json' };
  for (const body of ['null', '[]', '"text"', '{']) {
    const refused = await app.rest('POST', '/console/session', body, json);
    expect([body, refused.status, refused.json?.code]).toEqual([body, 401, 'missing_token']);
  }
  expect((await signIn(app, 'guess')).json.code).toBe('invalid_token');
  // At once, however long a busy machine takes for each.
  await eventually(async () => {
    const guesses = Array.from({ length: 120 }, (_, at) => signIn(app, `guess-${at}`));
    const codes = (await Promise.all(guesses)).map(({ json }) => json.code);
    expect(codes).toContain('too_many_wrong_tokens');
  });
  expect((await signIn(app, NORMAL)).json.tokens).toEqual(['normal']);
});

test('a session survives a restart, and another process of the database serves it', async () => {
  await using app = await startApp();
  const cookie = await cookieOf(app, NORMAL);
  if (process.env.TEST_STORE === 'mongodb') {
    await using second = await startApp({ dataDir: app.dataDir });
    expect((await listed(second.url, { cookie })).status).toBe(200);
  }
  await app.stop();
  await using next = await startApp({ dataDir: app.dataDir });
  expect((await listed(next.url, { cookie })).status).toBe(200);
  await eventually(async () => {
    expect((await next.rest('GET', PATH, undefined, { cookie })).json.account).toBe('default');
  });
  // That of another service on this host has another name, so neither ends the other.
  await using stranger = await startApp();
  expect((await cookieOf(stranger, NORMAL)).split('=')[0]).not.toBe(cookie.split('=')[0]);
  expect((await listed(stranger.url, { cookie })).status).toBe(401);
});

test('over TLS the cookie is sent by TLS only, and no other host of the domain can set it', async () => {
  await using app = await startTlsApp();
  const call = (method: string, headers: Record<string, string>, body = '') =>
    new Promise<{ headers: IncomingHttpHeaders; text: string }>((resolve, reject) => {
      const options = { method, headers, rejectUnauthorized: false, agent: false } as const;
      const made = request(app.url + PATH, options, (reply) => {
        text(reply).then((read) => resolve({ headers: reply.headers, text: read }), reject);
      });
      made.on('error', reject).end(body);
    });
  const json = { 'content-type': 'application/json' };
  const { headers } = await call('POST', json, JSON.stringify({ token: NORMAL }));
  const [set = ''] = headers['set-cookie'] ?? [];
  expect(set).toMatch(/^__Host-.*; Path=\/; .*; HttpOnly; SameSite=Strict; Secure$/);
  const [cookie = ''] = set.split(';');
  const accountOf = async (sent: string) =>
    (JSON.parse((await call('GET', { cookie: sent })).text) as { account: string }).account;
  expect(await accountOf(cookie)).toBe('default');
  expect(await accountOf(cookie.replace('__Host-', ''))).toBe('');
});
