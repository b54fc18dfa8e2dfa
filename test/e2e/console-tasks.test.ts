import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ADMIN, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { type ConsoleBrowser, openConsoleBrowser } from '../support/console-browser.ts';
import { allFaults, goWithin } from '../support/console-pages.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type Site, startSite } from '../support/site.ts';

// How many clicks, keys and fields each task takes that people do all day. A field that is filled,
// a paste and a key such as Enter are one each.

let site: Site;
let receiver: Receiver;
let app: TestApp;
let browser: ConsoleBrowser;

beforeAll(async () => {
  site = await startSite();
  receiver = await startReceiver();
  app = await startApp({ env: { WEBHOOK_RETRY_SCHEDULE: '1h' } });
  browser = await openConsoleBrowser(app.url);
});

afterAll(async () => {
  // The browser itself notes that a token is not the operator's, or no account's.
  browser?.problems.forEach((each) => expect(each).toContain('401'));
  await browser?.[Symbol.asyncDispose]();
  await app?.[Symbol.asyncDispose]();
  await receiver?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
});

/** A person at a page, whose actions are counted. */
interface Person {
  readonly page: Page;
  readonly count: number;
  click(what: Locator): Promise<void>;
  fill(what: Locator, text: string): Promise<void>;
  choose(what: Locator, option: string): Promise<void>;
  press(key: string): Promise<void>;
  paste(text: string): Promise<void>;
}

async function personAt(path: string, token: string): Promise<Person> {
  const page = await browser.open(path, token);
  let count = 0;
  const counted = async (act: Promise<unknown>): Promise<void> => {
    count += 1;
    await act;
  };
  return {
    page,
    get count() {
      return count;
    },
    click: (what) => counted(what.click()),
    fill: (what, text) => counted(what.fill(text)),
    choose: (what, option) => counted(what.selectOption(option)),
    press: (key) => counted(page.keyboard.press(key)),
    async paste(text) {
      await page.evaluate((each) => navigator.clipboard.writeText(each), text);
      await counted(page.keyboard.press('Control+v'));
    },
  };
}

/** Does a task, and expects that it takes `most` actions or fewer. */
async function within(
  most: number,
  path: string,
  perform: (person: Person) => Promise<void>,
  token = NORMAL,
): Promise<void> {
  const person = await personAt(path, token);
  await person.page.locator('main h1').waitFor();
  await perform(person);
  expect(person.count).toBeLessThanOrEqual(most);
  await person.page.context().close();
}

/** Expects that axe-core finds nothing on the page, in both themes. */
async function expectAccessible(page: Page): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    expect([colorScheme, await allFaults(page)]).toEqual([colorScheme, []]);
  }
}

const button = (page: Page | Locator, name: string) =>
  page.getByRole('button', { name, exact: true });

test('a second tab, and a link that a colleague sends, need no sign-in', async () => {
  const { page } = await personAt('/crawlers', NORMAL);
  const other = await page.context().newPage();
  await other.goto(`${app.url}/console/account`);
  await other.getByRole('heading', { name: 'Account default' }).waitFor();
  await page.context().close();
});

test('a crawler is made with all settings of another one by 4 actions', async () => {
  await createCrawler(app, 'model', {
    concurrency: 7,
    max_retries: 3,
    priority: 4,
    politeness: { delay_ms: 250, robots_txt: true, max_per_host: 2 },
  });
  await within(4, '/crawlers/model', async ({ page, click, fill, press }) => {
    await click(page.getByRole('link', { name: 'Settings' }));
    await click(page.getByRole('link', { name: 'Duplicate' }));
    await fill(page.getByLabel('Name'), 'made-like-it');
    await expectAccessible(page);
    await press('Enter');
    await page.getByRole('heading', { name: 'made-like-it' }).waitFor();
  });
  const settings = async (name: string) => {
    const { json } = await app.rest('GET', `/crawler/${NORMAL}/${name}`);
    const { concurrency, max_retries: retries, priority, politeness, delivery } = json;
    return { concurrency, retries, priority, politeness, delivery };
  };
  expect(await settings('made-like-it')).toEqual(await settings('model'));
});

// Half of 4 are the two fields alone; the third action sends them.
test('a crawler with a webhook is made like another one by 3 actions', async () => {
  await createCrawler(app, 'hook-model', { callback_url: receiver.url });
  await within(3, '/crawlers/hook-model/settings', async ({ page, click, fill, press }) => {
    await click(page.getByRole('link', { name: 'Duplicate' }));
    await fill(page.getByLabel('Name'), 'hook-copy');
    await press('Enter');
    await page.getByRole('dialog').getByText('whsec_').waitFor();
    await expectAccessible(page);
  });
  const { json } = await app.rest('GET', `/crawler/${NORMAL}/hook-copy`);
  expect(json.callback_url).toBe(receiver.url);
});

test('a URL, and a list of 5,000, are pushed by a paste and a click from any page', async () => {
  const crawler = await createCrawler(app, 'pasted');
  await crawler.post('pause');
  await within(2, '/crawlers', async ({ page, click, paste }) => {
    await page.getByRole('link', { name: 'pasted', exact: true }).waitFor();
    await paste(`${site.url}/page/1`);
    await expectAccessible(page);
    await click(page.getByRole('option', { name: 'Push this URL into pasted' }));
    await page.getByText('1 queued').waitFor();
    await expectAccessible(page);
  });
  const { json } = await app.rest('GET', `${crawler.path}/jobs`);
  expect(json.jobs).toMatchObject([{ url: `${site.url}/page/1` }]);
  const lines = Array.from({ length: 5_000 }, (_, at) => `http://a.example/${at}`).join('\n');
  await within(2, '/crawlers/pasted', async ({ page, paste, press }) => {
    await paste(lines);
    await page.getByRole('option', { name: 'Push 5,000 URLs into pasted' }).waitFor();
    await press('Enter');
    await page.getByText('5,000 queued').waitFor({ timeout: 30_000 });
  });
  expect((await crawler.details()).activity.waiting).toBe(5_001);
});

test('why a URL failed is seen by a paste and a key', async () => {
  const crawler = await createCrawler(app, 'why', { max_retries: 0 });
  const url = `${site.url}/status/500?why`;
  await crawler.stored(await crawler.push(url));
  await within(2, '/crawlers', async ({ page, paste, press }) => {
    await paste(url);
    await page.getByRole('option', { name: /^Find/ }).waitFor();
    await press('Enter');
    await page.getByText('Try 1: target error, the site answered 500').waitFor();
  });
});

test('36 failed crawls are pushed again by 2 clicks', async () => {
  const crawler = await createCrawler(app, 'again', { max_retries: 0, concurrency: 20 });
  const items = Array.from({ length: 36 }, (_, at) => ({ url: `${site.url}/status/500?${at}` }));
  await app.rest('POST', `${crawler.path}/push_batch`, { items });
  await eventually(async () => {
    expect((await crawler.details()).activity.failed).toBe(36);
  });
  await within(2, '/crawlers/again/failures', async ({ page, click }) => {
    await click(button(page, 'Push again: target error'));
    await button(page.getByRole('dialog'), 'Push again 36').waitFor();
    await expectAccessible(page);
    await click(button(page.getByRole('dialog'), 'Push again 36'));
    await page.getByText('Done: 36 of 36').waitFor();
  });
  expect((await crawler.details()).activity.pushed).toBe(72);
});

test('concurrency is changed where it stands, by a number and Enter', async () => {
  const crawler = await createCrawler(app, 'wider', { concurrency: 4 });
  await within(2, '/crawlers/wider', async ({ page, fill, press }) => {
    await fill(page.getByLabel('Concurrency'), '40');
    await press('Enter');
    await page.getByText('Concurrency of wider: 40.').waitFor();
  });
  expect((await crawler.details()).concurrency).toBe(40);
});

test('a crawler is paused by 1 click, and 30 of them by 3', async () => {
  const names = Array.from({ length: 30 }, (_, at) => `many-${at}`);
  for (const name of names) await createCrawler(app, name);
  const paused = async () => {
    const { json } = await app.rest('GET', `/crawler/${NORMAL}?name_contains=many-`);
    const crawlers = json.crawlers as { status: string }[];
    return crawlers.filter(({ status }) => status === 'paused').length;
  };
  await within(1, '/crawlers/many-0', async ({ page, click }) => {
    await click(button(page, 'Pause'));
    await button(page, 'Unpause').waitFor();
  });
  expect(await paused()).toBe(1);
  await within(3, '/crawlers?q=many-', async ({ page, click }) => {
    await click(button(page, 'Choose all 30'));
    await click(button(page, 'Pause 30'));
    await click(button(page.getByRole('dialog'), 'Pause'));
    await page.getByText('30 crawlers paused.').waitFor();
  });
  expect(await paused()).toBe(30);
});

// Purge and delete ask for the name, so they stay as they were: 3 clicks and a field, 2 and a field.
test('a queue is purged by 3 clicks and the name, a crawler deleted by 2 and the name', async () => {
  await createCrawler(app, 'gone');
  await within(4, '/crawlers/gone', async ({ page, click, fill }) => {
    await click(page.getByRole('link', { name: 'Settings' }));
    await click(button(page, 'Purge the queue…'));
    await fill(page.getByLabel('Type gone to confirm'), 'gone');
    await click(button(page, 'Purge'));
    await page.getByText('Removed 0 URLs').waitFor();
  });
  await within(3, '/crawlers/gone/settings', async ({ page, click, fill }) => {
    await click(button(page, 'Delete the crawler…'));
    await fill(page.getByLabel('Type gone to confirm'), 'gone');
    await click(button(page, 'Delete'));
    await page.getByText('Deleted gone').waitFor();
  });
});

test('results are exported by 1 click, and the next page is seen in the same view by 1', async () => {
  const crawler = await createCrawler(app, 'seen');
  for (const n of [1, 2]) await crawler.stored(await crawler.push(`${site.url}/page/${n}`));
  await within(1, '/crawlers/seen/results', async ({ page, click }) => {
    const saving = page.waitForEvent('download');
    await click(button(page, 'NDJSON'));
    expect((await saving).suggestedFilename()).toBe('seen-results.ndjson');
  });
  await within(1, '/crawlers/seen/results?view=source', async ({ page, click }) => {
    await click(page.getByRole('button', { name: /^Open the result of .*page\/1$/ }));
    await page
      .getByRole('region', { name: /text\/html/ })
      .getByText('<title>')
      .waitFor();
  });
});

test('deliveries are replayed by 2 actions: those of a reason, and those of the last hour', async () => {
  const hook = await createCrawler(app, 'replayed', { callback_url: receiver.url });
  receiver.answer({ status: 500 });
  const before = receiver.deliveries.length;
  const came = (count: number) =>
    eventually(() => expect(receiver.deliveries.length).toBe(before + count));
  for (const n of [1, 2, 3]) await hook.push(`${site.url}/page/${n}`);
  await came(3);
  receiver.answer({ status: 200 });
  await within(2, '/crawlers/replayed/failures?kind=delivery', async ({ page, click }) => {
    await click(page.getByRole('button', { name: /^Replay: / }));
    await click(button(page.getByRole('dialog'), 'Replay 3'));
    await page.getByText('Done: 3 of 3').waitFor();
  });
  await came(6);
  await within(2, '/crawlers/replayed/deliveries', async ({ page, click, choose }) => {
    await choose(page.getByLabel('Replay those of the last'), 'hour');
    await click(button(page.getByRole('dialog'), 'Replay 3'));
    await page.getByText('Done: 3 of 3').waitFor();
  });
  await came(9);
});

// The secret asks since a click too many would cut receivers off.
test('a delivery is tested by 1 click, a secret replaced by 2 and told to be saved', async () => {
  await createCrawler(app, 'secret', { callback_url: receiver.url });
  await within(1, '/crawlers/secret/deliveries', async ({ page, click }) => {
    await click(button(page, 'Send a test'));
    await page.getByText('The callback URL acknowledged it').waitFor();
  });
  await within(3, '/crawlers/secret/settings', async ({ page, click }) => {
    await click(button(page, 'New secret'));
    await click(button(page.getByRole('dialog'), 'Replace'));
    await page.getByRole('dialog').getByText('whsec_').waitFor();
    await click(button(page, 'I have saved it'));
  });
});

// Half of an account are its two fields; a new token asks for the name, since it cuts the old one off.
test('an account is made by 4 actions, limited by 2 at its address, its token replaced by 4', async () => {
  const account = async (perform: (person: Person) => Promise<void>, most: number, path: string) =>
    within(most, path, perform, ADMIN);
  await account(
    async ({ page, click, fill, press }) => {
      await click(button(page, 'New account'));
      await fill(page.getByLabel('Name'), 'client');
      await fill(page.getByLabel('E-mail'), 'client@example.com');
      await press('Enter');
      await page.getByRole('heading', { name: 'Tokens of client' }).waitFor();
      await expectAccessible(page);
    },
    4,
    '/accounts',
  );
  await account(
    async ({ page, fill, press }) => {
      await expectAccessible(page);
      await fill(page.getByLabel('Stored results and deliveries, GiB'), '1.5');
      await press('Enter');
      await page.getByText('Saved account client.').waitFor();
    },
    2,
    '/accounts?account=client',
  );
  const headers = { authorization: `Bearer ${ADMIN}` };
  const { limits } = (await (await fetch(`${app.url}/accounts/client`, { headers })).json()) as {
    limits: { storage_bytes: string };
  };
  expect(Number(limits.storage_bytes)).toBe(1.5 * 1024 ** 3);
  await account(
    async ({ page, click, fill, press }) => {
      await click(button(page, 'Open account client'));
      await click(button(page, 'New Normal token…'));
      await fill(page.getByLabel('Type client to confirm'), 'client');
      await press('Enter');
      await page.getByText('shown this once').waitFor();
      await goWithin(page, '/accounts');
    },
    4,
    '/accounts',
  );
});
