import { fromJson, type JsonObject } from '@bufbuild/protobuf';
import type { Page } from 'playwright-core';
import { Webhook } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import {
  CrawlerService,
  CreateCrawlerRequestSchema,
} from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { VERSION } from '../../src/config/version.ts';
import { type ConsoleBrowser, openConsoleBrowser } from '../support/console-browser.ts';
import { expectAccessiblePages, goWithin, type PageLook } from '../support/console-pages.ts';
import { type ConsoleScene, startConsoleScene } from '../support/console-scene.ts';
import { eventually } from '../support/eventually.ts';
import { createGrpcClient } from '../support/grpc-client.ts';
import { startSite } from '../support/site.ts';
import { ADMIN, JAVASCRIPT, NORMAL } from '../support/tokens.ts';

// One service and one browser for all tests, which use crawlers of their own where they change something.
let scene: ConsoleScene;
let browser: ConsoleBrowser;

beforeAll(async () => {
  scene = await startConsoleScene();
  browser = await openConsoleBrowser(scene.app.url);
});

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]();
  await scene?.[Symbol.asyncDispose]();
});

afterEach(() => {
  expect(browser.problems.splice(0)).toEqual([]);
});

/** No page waits longer between two polls that succeed. */
const POLL_MS = 5_000;

/** The crawler as the API has it. */
const crawler = async (name: string) =>
  (await scene.app.rest('GET', `/crawler/${NORMAL}/${name}`)).json;
const make = (name: string, more: object = {}) =>
  scene.app.rest('POST', `/crawler/${NORMAL}`, { name, ...more });

/** Confirms a removal. */
const removeInDialog = (page: Page) =>
  page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click();

// Most tests use one page, which is signed in once; a test that fails leaves its page behind.
let signedIn: Page | undefined;

async function onPage(path: string, use: (page: Page) => Promise<void>): Promise<void> {
  const page = signedIn ?? (await browser.open(path, NORMAL));
  signedIn = undefined;
  await goWithin(page, path);
  await use(page);
  signedIn = page;
}

async function closing(page: Page, use: () => Promise<void>): Promise<void> {
  await use();
  await page.context().close();
}

test('the console is one page with a strict policy, cached by its content, below 150 KB', async () => {
  const { url } = scene.app;
  const page = await fetch(`${url}/console/crawlers/any`);
  const policy = page.headers.get('content-security-policy') ?? '';
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toContain('unsafe');
  expect(page.headers.get('access-control-allow-origin')).toBeNull();
  const etag = page.headers.get('etag') ?? '';
  const again = await fetch(`${url}/console`, { headers: { 'if-none-match': etag } });
  expect(again.status).toBe(304);

  const names = [...(await page.text()).matchAll(/\/console\/assets\/[\w.-]+/g)].map(String);
  expect(names).toHaveLength(2);
  let bytes = 0;
  for (const name of names) {
    const asset = await fetch(url + name, { headers: { 'accept-encoding': 'gzip' } });
    expect(asset.headers.get('cache-control')).toContain('immutable');
    bytes += Number(asset.headers.get('content-length'));
  }
  expect(bytes).toBeLessThan(150_000);
  expect((await fetch(`${url}/console/assets/none.js`)).status).toBe(404);
  expect((await fetch(`${url}/console`, { method: 'POST' })).status).toBe(405);
});

test('a person who opens / is led to the console, a program is answered as before', async () => {
  const { url } = scene.app;
  const html = { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } } as const;
  const person = await fetch(`${url}/`, { ...html, redirect: 'manual' });
  expect([person.status, person.headers.get('location')]).toEqual([302, '/console']);
  expect((await fetch(`${url}/`)).status).toBe(401);
  const crawl = await fetch(`${url}/?token=${NORMAL}&url=${scene.site.url}/page/1`, html);
  expect(await crawl.text()).toContain('Page 1');
});

test('a wrong token is refused in words, a kept one survives a reload, and neither is in the address', async () => {
  const page = await browser.open('/crawlers', '');
  await page.getByLabel('Token').fill('nobody');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').getByText('No account has this token').waitFor();
  // The browser itself notes the refusals.
  browser.problems.splice(0).forEach((each) => expect(each).toContain('401'));

  await page.getByLabel('Token').fill(NORMAL);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('link', { name: 'news', exact: true }).waitFor();
  await page.reload();
  await page.getByRole('link', { name: 'news', exact: true }).waitFor();
  expect(page.url()).toBe(`${scene.app.url}/console/crawlers`);
  expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain(NORMAL);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Token').waitFor();
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
  await page.context().close();
});

test('crawlers are listed with what they do, filtered and sorted', async () => {
  await onPage('/crawlers', async (page) => {
    const row = (name: string) => page.getByRole('row').filter({ hasText: name });
    await row('forum').getByText('Paused', { exact: true }).waitFor();
    await row('forum').getByText('12', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Waiting' }).click();
    await eventually(async () => {
      expect(await page.getByRole('row').nth(1).innerText()).toMatch(/flights|forum/);
    });
    await page.getByRole('button', { name: 'Need attention' }).click();
    await eventually(async () => expect(await row('news').count()).toBe(0));
    await row('partner').getByText('Callback failing').waitFor();
    await page.getByLabel('Filter by name').fill('nothing');
    await page.getByText('No crawler is like that').waitFor();
    await page.getByRole('button', { name: 'Show all' }).click();
    await row('news').waitFor();
  });
});

test('a crawler is made with its settings, edited, paused, unpaused, purged and deleted', async () => {
  await onPage('/crawlers/+new', async (page) => {
    await page.getByLabel('Name').fill('made');
    await page.getByText('Webhook', { exact: true }).click();
    await page.getByLabel('Callback URL').fill(scene.receiver.url);
    await page.getByLabel('Concurrency').fill('7');
    await page.getByLabel('Retries', { exact: true }).fill('3');
    await page.getByLabel('Delay, milliseconds').fill('250');
    const example = page.getByRole('region', { name: 'REST' });
    expect(await example.innerText()).toContain('"max_retries": 3');
    await page.getByText('gRPC', { exact: true }).click();
    const shown = await page.getByRole('region', { name: 'gRPC' }).innerText();
    expect(shown).toContain('queuedcrawler.v1.CrawlerService/CreateCrawler');
    const shownMessage = JSON.parse(/-d '(.+)'/s.exec(shown)?.[1] ?? '') as JsonObject;
    using grpc = createGrpcClient(new URL(scene.app.url).host);
    const asShown = { ...shownMessage, name: 'made-by-grpc' };
    await grpc.call(
      CrawlerService.method.createCrawler,
      fromJson(CreateCrawlerRequestSchema, asShown),
      NORMAL,
    );
    await page.getByRole('button', { name: 'Create crawler' }).click();
    const first = (await page.getByText('whsec_').innerText()).trim();
    await page.getByRole('button', { name: 'I have saved it' }).click();
    for (const name of ['made', 'made-by-grpc']) {
      expect(await crawler(name)).toMatchObject({
        delivery: 'webhook',
        concurrency: 7,
        max_retries: 3,
        politeness: { delay_ms: 250 },
      });
    }

    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    await page.getByRole('button', { name: 'Unpause', exact: true }).waitFor();
    expect((await crawler('made')).paused_by).toBe('user');
    await page.getByLabel('URLs, one a line').fill(`${scene.site.url}/page/1\nnot a url`);
    await page.getByRole('button', { name: 'Push 2' }).click();
    await page.getByText('1 queued, 1 refused').waitFor();
    expect(Number((await crawler('made')).activity.waiting)).toBe(1);

    await page.getByRole('link', { name: 'Queue', exact: true }).click();
    await page.getByRole('button', { name: /^Remove http/ }).click();
    await removeInDialog(page);
    await page.getByText('Nothing waits').waitFor();
    expect(Number((await crawler('made')).activity.deleted)).toBe(1);

    await scene.push('made', ['/page/2', '/page/3']);
    await page.getByRole('link', { name: 'Settings' }).click();
    await page.getByLabel('Concurrency').fill('9');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved; it applies at once.').waitFor();
    expect((await crawler('made')).concurrency).toBe(9);
    await page.getByRole('button', { name: 'New secret' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Replace' }).click();
    const second = (await page.getByText('whsec_').innerText()).trim();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'I have saved it' }).click();
    expect(second).not.toBe(first);
    const tried = await scene.app.rest('POST', `/crawler/${NORMAL}/made/test_delivery`);
    expect(tried.json.acknowledged).toBe(true);
    const post = scene.receiver.deliveries.at(-1);
    const headers = post?.headers ?? {};
    const at = new Date(Number(headers['webhook-timestamp']) * 1_000);
    for (const secret of [first, second]) {
      const signature = new Webhook(secret).sign(headers['webhook-id'] ?? '', at, post?.text ?? '');
      expect(headers['webhook-signature']?.split(' ')).toContain(signature);
    }

    await page.getByRole('button', { name: 'Purge the queue' }).click();
    const purge = page.getByRole('button', { name: 'Purge', exact: true });
    expect(await purge.isDisabled()).toBe(true);
    await page.getByLabel('Type made to confirm').fill('made');
    await purge.click();
    await page.getByText('Removed 2 URLs').waitFor();
    expect(Number((await crawler('made')).activity.purged)).toBe(2);

    await page.getByRole('button', { name: 'Unpause', exact: true }).click();
    await page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
    expect((await crawler('made')).status).toBe('running');

    await page.getByRole('button', { name: 'Delete…' }).click();
    await page.getByLabel('Type made to confirm').fill('made');
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('heading', { name: 'Crawlers' }).waitFor();
    expect((await scene.app.rest('GET', `/crawler/${NORMAL}/made`)).status).toBe(404);
  });
});

test('results are shown as page, source and tree, and removed', async () => {
  await make('kept');
  const [article, data] = await scene.push('kept', ['/article', '/data.json']);
  await onPage('/crawlers/kept/results', async (page) => {
    await page.getByRole('button', { name: /Open the result of .*article/ }).click();
    const preview = page.frameLocator('iframe.preview').frameLocator('iframe');
    await preview.getByText('Rain again on the coast').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Source' }).click();
    await page
      .getByRole('region', { name: /text\/html/ })
      .getByText('<title>')
      .waitFor();
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: /Open the result of .*data/ }).click();
    await page.getByText('"Lamp"').waitFor();
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: /Remove the result of .*data/ }).click();
    await removeInDialog(page);
    await page.getByText('Removed the result.').waitFor();
    const stored = (rid = '') => scene.app.rest('GET', `/storage?token=${NORMAL}&rid=${rid}`);
    expect((await stored(data)).status).toBe(404);
    expect((await stored(article)).status).toBe(200);
  });
});

test('a hostile page does nothing in the preview', async () => {
  await make('hostile');
  await scene.push('hostile', ['/attack']);
  const page = await browser.open('/crawlers/hostile/results', NORMAL);
  await closing(page, async () => {
    const asked: string[] = [];
    page.on('response', (response) => asked.push(response.url()));
    await page.getByRole('button', { name: /Open the result/ }).click();
    const preview = page.frameLocator('iframe.preview').frameLocator('iframe');
    await preview.getByText('Harmless').waitFor();
    // No policy stops hints to connect somewhere, and no event tells of them.
    expect(await preview.locator('link, meta').count()).toBe(0);
    // The text of a frame within it is escaped once more.
    expect(await preview.locator('[srcdoc]').count()).toBe(0);
    await preview.getByRole('link', { name: 'leave' }).click();
    await preview.getByRole('button', { name: 'send' }).click();
    expect(await page.evaluate(() => document.title)).not.toContain('attacked');
    expect(page.url()).toContain('/console/crawlers/hostile/results');
    expect(asked.filter((url) => !url.startsWith(scene.app.url))).toEqual([]);
    expect(asked.filter((url) => url.includes('stolen'))).toEqual([]);
    // What the page tried and was not let do.
    browser.problems.splice(0);
  });
});

test('JSON of any depth is shown, and unfolded step by step', async () => {
  await make('nested');
  await scene.push('nested', ['/deep.json']);
  await onPage('/crawlers/nested/results', async (page) => {
    await page.getByRole('button', { name: /Open the result/ }).click();
    await page.getByText('first:').waitFor();
    const tree = page.locator('.tree details');
    expect(await tree.count()).toBe(3);
    await tree.last().locator('summary').click();
    await eventually(async () => expect(await tree.count()).toBe(4));
  });
});

test('failures are grouped by reason, deliveries list their attempts and are replayed', async () => {
  await onPage('/crawlers/news/failures', async (page) => {
    await page.getByText('address not allowed').click();
    await page.getByText('169.254.1.1').waitFor();
    await page.getByRole('navigation', { name: 'Places' }).getByText('Crawlers').click();
    await page.getByRole('link', { name: 'shop' }).click();
    await page.getByRole('link', { name: 'Deliveries' }).click();
    await page.getByRole('button', { name: 'Attempts of' }).first().click();
    await page.getByRole('dialog').getByRole('table', { name: 'Attempts' }).waitFor();
    await page.getByRole('button', { name: 'Close' }).click();

    const before = scene.receiver.deliveries.length;
    const came = (count: number) =>
      eventually(() => expect(scene.receiver.deliveries.length).toBe(before + count));
    await page.getByRole('button', { name: 'Replay http' }).first().click();
    await page.getByText('Queued for replay: 1.').waitFor();
    await came(1);
    for (const at of [0, 1]) await page.getByRole('checkbox').nth(at).check();
    await page.getByRole('button', { name: 'Replay 2' }).click();
    await came(3);
    await page.getByLabel('Replay those of the last').selectOption('hour');
    expect(new URL(page.url()).search).toContain('from=');
    await page.getByRole('dialog').getByRole('button', { name: 'Replay 8' }).click();
    await page.getByRole('dialog').getByText('Done: 8 of 8').waitFor();
    await came(11);
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).first().click();
    await page.getByRole('button', { name: 'Send a test' }).click();
    await page.getByText('The callback URL acknowledged it').waitFor();
    await came(12);
    // A crawler with a webhook has no results here.
    await goWithin(page, '/crawlers/shop/results');
    await page.locator('a[aria-current=page]', { hasText: 'Overview' }).waitFor();
  });
});

test('hosts are listed with what they wait for, found, paused and purged', async () => {
  const { host } = new URL(scene.site.url);
  await make('by-host', {});
  await scene.app.rest('POST', `/crawler/${NORMAL}/by-host/pause`);
  for (const n of [1, 2, 3]) {
    const query = `crawler=by-host&callback=true&url=${scene.site.url}/page/${n}`;
    await scene.app.rest('GET', `/?token=${NORMAL}&${query}`);
  }
  await onPage('/crawlers/by-host/hosts', async (page) => {
    const row = page.getByRole('table', { name: 'Hosts' }).getByRole('row', { name: host });
    await row.getByText('3', { exact: true }).waitFor();
    await page.getByRole('button', { name: `Pause ${host}` }).click();
    await row.getByText('paused').waitFor();
    await page.getByRole('button', { name: 'Slowest' }).click();
    await page.getByRole('searchbox').fill('nothing-like-this');
    await page.getByText('Nothing matches the filter').waitFor();
    await page.getByRole('searchbox').fill(host);
    await page.getByRole('button', { name: `Unpause ${host}` }).click();
    await page.getByText(`${host} is crawled again.`).waitFor();
    await page.getByRole('button', { name: `Purge ${host}` }).click();
    await page.getByRole('dialog').getByRole('textbox').fill(host);
    await page.getByRole('dialog').getByRole('button', { name: 'Purge' }).click();
    await page.getByText('Removed 3 URLs.').waitFor();
    expect((await crawler('by-host')).activity).toMatchObject({ purged: 3, waiting: 0 });
  });
});

test('a page is crawled at once with parameters, and a rid is found across crawlers', async () => {
  await onPage('/crawl', async (page) => {
    await page.getByLabel('URL', { exact: true }).fill(`${scene.site.url}/echo`);
    await page.getByText('Request', { exact: true }).click();
    await page.getByLabel('User agent').fill('from-the-console');
    await page.getByLabel('Keep a copy in storage').check();
    const example = page.getByRole('region', { name: 'REST' });
    expect(await example.innerText()).toContain('&user_agent=from-the-console&store=true');
    await page.getByRole('button', { name: 'Crawl', exact: true }).click();
    await page.getByText('"from-the-console"').waitFor();
    const rid = await page.getByText(/^[0-9a-f]{24}$/).innerText();

    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Crawler, command, URL, host or rid' }).fill(rid);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Result' }).waitFor();
    await page.getByText('"from-the-console"').waitFor();
  });
});

test('storage lists what belongs to no crawler, and asynchronous crawls that wait are removed', async () => {
  // A removal leaves what is being crawled: this host asks for an hour without requests.
  await using site = await startSite();
  const crawl = async (path: string): Promise<string> => {
    const url = encodeURIComponent(site.url + path);
    const reply = await scene.app.rest('GET', `/?token=${NORMAL}&async=true&url=${url}`);
    return reply.json.rid;
  };
  const stored = await crawl('/page/77');
  const waiting = await crawl('/status/503?retry-after=3600&waits');
  await eventually(async () => {
    const { jobs } = (await scene.app.rest('GET', `/async/${NORMAL}`)).json;
    expect(jobs).toMatchObject([{ rid: waiting, retry: 1 }]);
  });
  const page = await browser.open('/storage', NORMAL, { hasTestClock: true });
  await closing(page, async () => {
    await page.getByText(stored).waitFor();
    const jobs = page.getByRole('table', { name: 'Asynchronous crawls' });
    await jobs.getByText(waiting).waitFor();
    await jobs.getByRole('button', { name: 'Remove' }).click();
    await removeInDialog(page);
    await page.getByText('Removed the job.').waitFor();
    const found = await scene.app.rest('GET', `/async/${NORMAL}/find_by_rid/${waiting}`);
    expect(found.json.status).toBe('NOT_QUEUED');

    for (const at of [1, 2]) await crawl(`/status/503?retry-after=3600&purged=${at}`);
    await eventually(async () => {
      // A poll that was under way sets the next timer only when it ends.
      await page.clock.fastForward(POLL_MS);
      expect(await jobs.getByText('purged=2').count()).toBe(1);
    });
    await page.getByRole('button', { name: 'Purge…' }).click();
    await page.getByLabel('Type async to confirm').fill('async');
    await page.getByRole('button', { name: 'Purge', exact: true }).click();
    await page.getByText('Removed 2 asynchronous crawls').waitFor();
    const left = await scene.app.rest('GET', `/async/${NORMAL}`);
    expect(left.json.jobs ?? []).toEqual([]);
  });
});

test('everything is reached by the keyboard', async () => {
  // A page of its own: nothing has the focus yet.
  const page = await browser.open('/crawlers', NORMAL);
  await closing(page, async () => {
    await page.getByRole('link', { name: 'news' }).waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard' }).getByText('New crawler').waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('/');
    await page.keyboard.type('foru');
    await eventually(async () => expect(await page.getByRole('row').count()).toBe(2));
    await page.getByLabel('Filter by name').blur();
    await page.keyboard.press('g');
    await page.keyboard.press('a');
    await page.getByRole('heading', { name: 'Account default' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('crawler news');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'news' }).waitFor();
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('main');
    await page.keyboard.press('Tab');
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Pause');
  });
});

test('keys that follow at once are in the panel that a key has opened', async () => {
  const page = await browser.open('/crawlers', NORMAL);
  await closing(page, async () => {
    await page.getByRole('link', { name: 'news' }).waitFor();
    const focused = await page.evaluate(async () => {
      const key = { key: 'k', ctrlKey: true, bubbles: true };
      document.body.dispatchEvent(new KeyboardEvent('keydown', key));
      // The next event may come before the next frame is drawn.
      await new Promise((resolve) => setTimeout(resolve));
      return document.activeElement?.getAttribute('aria-label');
    });
    expect(focused).toBe('Crawler, command, URL, host or rid');
  });
});

test('the account shows its state, and with the other token all crawlers are listed', async () => {
  await scene.app.rest('POST', `/crawler/${JAVASCRIPT}`, { name: 'rendered' });
  const page = await browser.open('/account', NORMAL);
  await closing(page, async () => {
    await page.getByText('crawls@example.com').waitFor();
    await page.getByText('of 1,000,000').waitFor();
    await page.getByRole('textbox', { name: 'Token' }).fill(JAVASCRIPT);
    await page.getByRole('button', { name: 'Add' }).click();
    await page.getByText('Crawlers of both types').waitFor();
    await page.getByRole('link', { name: 'Crawlers' }).click();
    await page.getByRole('link', { name: 'rendered' }).waitFor();
  });
});

test('the operator makes an account, limits it, replaces a token and deletes it', async () => {
  const page = await browser.open('/accounts', ADMIN);
  // The browser itself notes that the token is no account's.
  browser.problems.splice(0).forEach((each) => expect(each).toContain('401'));
  const admin = { authorization: `Bearer ${ADMIN}` };
  const account = async () => {
    const headers = { headers: admin };
    return (await fetch(`${scene.app.url}/accounts/client`, headers)).json() as Promise<{
      limits?: { crawlers: string | number };
    }>;
  };
  await closing(page, async () => {
    expect(await page.getByRole('link', { name: 'Crawlers' }).count()).toBe(0);
    await page.getByRole('button', { name: 'New account' }).click();
    await page.getByLabel('Name').fill('client');
    await page.getByRole('button', { name: 'Make account' }).click();
    const token = await page.getByRole('region', { name: 'Normal token' }).innerText();
    expect((await scene.app.rest('GET', `/crawler/${token.trim()}`)).status).toBe(200);
    // Shown this once: nothing but its button closes it.
    await page.keyboard.press('Escape');
    await page.mouse.click(5, 5);
    await page.getByRole('button', { name: 'I have saved them' }).click();
    const open = page.getByRole('button', { name: 'Open account client' });
    await open.click();
    await page.getByLabel('Crawlers', { exact: true }).fill('3');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved account client.').waitFor();
    expect(Number((await account()).limits?.crawlers)).toBe(3);
    await open.click();
    await page.getByRole('button', { name: 'New token…', exact: true }).click();
    const replace = page.getByRole('button', { name: 'Replace' });
    expect(await replace.isDisabled()).toBe(true);
    expect((await scene.app.rest('GET', `/crawler/${token.trim()}`)).status).toBe(200);
    await page.getByLabel('Type client to confirm').fill('client');
    await replace.click();
    await page.getByText('shown this once').waitFor();
    expect((await scene.app.rest('GET', `/crawler/${token.trim()}`)).status).toBe(401);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'I have saved it' }).click();
    await open.click();
    await page.getByRole('button', { name: 'Delete…' }).click();
    await page.getByLabel('Type client to confirm').fill('client');
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByText('Deleted account client.').waitFor();
  });
});

test('a token that was replaced ends the session, and says so', async () => {
  const admin = { authorization: `Bearer ${ADMIN}`, 'content-type': 'application/json' };
  const call = async (path: string, body: object) => {
    const init = { method: 'POST', headers: admin, body: JSON.stringify(body) };
    return (await (await fetch(scene.app.url + path, init)).json()) as Record<string, string>;
  };
  const made = await call('/accounts', { name: 'leaving' });
  const token = made.normal_token ?? '';
  await scene.app.rest('POST', `/crawler/${token}`, { name: 'own' });
  const page = await browser.open('/crawlers/own', token);
  await closing(page, async () => {
    await page.getByRole('heading', { name: 'own' }).waitFor();
    await call('/accounts/leaving/rotate_token', { token_type: 'normal' });
    await page.getByText('The session has ended, or its token was replaced.').waitFor();
    expect(await page.content()).not.toContain(token);
  });
  browser.problems.splice(0).forEach((each) => expect(each).toContain('401'));
});

test('the operator sees processes and database, and what is not set up', async () => {
  const page = await browser.open('/system', ADMIN);
  browser.problems.splice(0).forEach((each) => expect(each).toContain('401'));
  await closing(page, async () => {
    await page.getByText('answers you').waitFor();
    await page
      .getByText(/^(Embedded|MongoDB)/)
      .first()
      .waitFor();
    await page.getByText(`Version ${VERSION}`).waitFor();
    await page.getByText('SIGTERM drains a process').waitFor();
    for (const name of [
      /^Crawls and deliveries under way, now \d/,
      /, now \d.* %$/,
      /, now .* MiB$/,
    ]) {
      await page.getByRole('img', { name }).waitFor();
    }
    const metrics = page.context().waitForEvent('page');
    await page.getByRole('link', { name: 'Metrics' }).click();
    await (await metrics).getByText('queued_crawler_').first().waitFor();
    await page.getByRole('link', { name: 'Setup' }).click();
    await page.getByText('SMTP_URL', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Try mail and browser' }).click();
    await page.getByRole('region', { name: 'Browser' }).getByText('Works').waitFor();
  });
});

test('it is live while the service streams, and says so when it is not', async () => {
  await make('watched');
  const page = await browser.open('/crawlers/watched', NORMAL, { hasTestClock: true });
  await closing(page, async () => {
    await page.getByText('Live', { exact: true }).waitFor();
    // Nothing asks: what is pushed elsewhere appears by itself.
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    await scene.push('watched', ['/page/1', '/page/2', '/page/3']);
    await page.locator('.figure', { hasText: 'Done' }).getByText('3', { exact: true }).waitFor();
    expect(asked.filter((url) => url.endsWith('/GetCrawler'))).toEqual([]);

    await page.route('**/queuedcrawler.v1.WatchService/*', (route) => route.abort());
    await page.getByRole('link', { name: 'Crawlers', exact: true }).first().click();
    const badge = page.getByText('Not live: updated every few seconds');
    await badge.waitFor();
    expect(await badge.getAttribute('title')).toContain('The service does not answer.');
    await page.getByRole('link', { name: 'watched' }).waitFor();
    await page.route('**/queuedcrawler.v1.*/*', (route) => route.abort());
    await page.clock.fastForward(POLL_MS);
    await page.getByText('Not live: no answer').waitFor();
    await page.getByText('The service does not answer.').waitFor();
    await page.unrouteAll();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('Live', { exact: true }).waitFor();
    browser.problems.splice(0).forEach((each) => expect(each).toContain('ERR_FAILED'));
  });
});

test('the overview of a crawler that is at work names the process that works on it, and its slots', async () => {
  const more = Array.from({ length: 80 }, (_, at) => `/page/${1_000 + at}?delay=1500`);
  await scene.push('flights', more);
  await onPage('/crawlers/flights', async (page) => {
    const facts = page.locator('.facts > div').filter({ hasText: 'Worked on by' });
    await facts.getByText(/^\S+:\d+, 4 slots$/).waitFor();
  });
});

test('queue, results and deliveries follow the stream, with no timer between', async () => {
  await make('followed');
  await make('followed-hook', { callback_url: scene.receiver.url });
  await make('followed-queue');
  await scene.app.rest('POST', `/crawler/${NORMAL}/followed-queue/pause`);
  const page = await browser.open('/crawlers', NORMAL);
  await closing(page, async () => {
    await page.getByText('Live', { exact: true }).waitFor();
    // No pause between two polls ends any more.
    await page.evaluate(() => {
      const start = setTimeout as (run: () => void, ms?: number) => number;
      Object.assign(window, {
        setTimeout: (run: () => void, ms = 0) => (ms > 1_000 ? 0 : start(run, ms)),
      });
    });
    for (const [name, tab, empty] of [
      ['followed', 'results', 'No result is kept'],
      ['followed-hook', 'deliveries', 'No delivery is like that'],
      ['followed-queue', 'jobs', 'Nothing waits'],
    ] as const) {
      await goWithin(page, `/crawlers/${name}/${tab}`);
      await page.getByText(empty).waitFor();
      const [rid = ''] = await scene.push(name, ['/page/1']);
      await page.getByText(rid).waitFor();
    }
  });
});

test('a hidden tab holds no stream, and is live again when it is seen', async () => {
  const page = await browser.open('/crawlers', NORMAL, { hasTestClock: true });
  await closing(page, async () => {
    const seen = (isSeen: boolean) =>
      page.evaluate((hidden) => {
        Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
      }, !isSeen);
    await page.getByText('Live', { exact: true }).waitFor();
    const isWatch = (request: { url(): string }): boolean => request.url().includes('/Watch');
    const closed = page.waitForEvent('requestfailed', isWatch);
    await seen(false);
    await closed;
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    await make('made-while-hidden');
    expect(await page.getByRole('link', { name: 'made-while-hidden' }).count()).toBe(0);
    expect(asked).toEqual([]);
    const opened = page.waitForRequest(isWatch);
    await seen(true);
    await page.getByRole('link', { name: 'made-while-hidden' }).waitFor();
    await page.clock.fastForward(POLL_MS);
    await opened;
  });
});

test('a page that is open for long keeps no listener of each poll', async () => {
  const page = await browser.open('/storage', NORMAL, { hasTestClock: true });
  await closing(page, async () => {
    await page.getByRole('table', { name: 'Results' }).first().waitFor();
    const devtools = await page.context().newCDPSession(page);
    const listeners = async (): Promise<number> => {
      await devtools.send('HeapProfiler.collectGarbage');
      return (await devtools.send('Memory.getDOMCounters')).jsEventListeners;
    };
    const polls = async (count: number): Promise<void> => {
      for (let at = 0; at < count; at += 1) {
        const polled = page.waitForResponse((response) => response.url().endsWith('/ListResults'));
        await eventually(async () => {
          await page.clock.fastForward(POLL_MS);
          await Promise.race([polled, Promise.reject(new Error('not yet'))]);
        });
      }
    };
    let count = await listeners();
    // On a busy machine the first hundred polls have some that Chromium releases late.
    await eventually(async () => {
      await polls(20);
      const before = count;
      count = await listeners();
      expect(count - before).toBeLessThan(10);
    });
  });
});

// At every width and zoom: console-full.test.ts.
test('axe-core finds nothing on any page, in both themes', async () => {
  const looks: readonly PageLook[] = [
    { width: 1_440, theme: 'light' },
    { width: 375, theme: 'dark' },
  ];
  await expectAccessiblePages(browser, scene, looks);
});
