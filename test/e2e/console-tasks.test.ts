import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ADMIN, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { type ConsoleBrowser, openConsoleBrowser } from '../support/console-browser.ts';
import { faultsInBothThemes, goWithin, NO_FAULTS } from '../support/console-pages.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type Site, startSite } from '../support/site.ts';

// Counted are clicks and fields that are filled; a choice, a paste and a key other than Enter are one
// each. Enter in a field or a list that has the focus sends what was filled there, and is counted apart.

/**
 * Clicks and fields of each task where each step has a control of its own. A task may take half of
 * them, rounded up. What `asks` may take one more: it cuts somebody off, so that a click too many
 * must not do it.
 */
const TASKS = {
  'sign in': { clicks: 1, fields: 1 },
  'create with all settings': { clicks: 3, fields: 6 },
  'create with a webhook': { clicks: 2, fields: 2 },
  'push one URL': { clicks: 3, fields: 1 },
  'push a list': { clicks: 2, fields: 1 },
  'see why a URL failed': { clicks: 4, fields: 0 },
  // One click opens each, one copies its URL; all are pasted.
  'push 36 failed URLs again': { clicks: 72, fields: 1 },
  'change concurrency': { clicks: 2, fields: 1 },
  pause: { clicks: 1, fields: 0 },
  'pause 30 crawlers': { clicks: 60, fields: 0 },
  purge: { clicks: 3, fields: 1 },
  delete: { clicks: 2, fields: 1 },
  'export results': { clicks: 1, fields: 0 },
  'see a page': { clicks: 2, fields: 0 },
  'see the source of a page': { clicks: 2, fields: 0 },
  'replay three': { clicks: 4, fields: 0 },
  'replay a range': { clicks: 3, fields: 0 },
  'replace a secret': { clicks: 1, fields: 0, asks: true },
  'test a delivery': { clicks: 1, fields: 0 },
  'make an account': { clicks: 2, fields: 2 },
  'limit an account': { clicks: 2, fields: 1 },
  'replace a token': { clicks: 2, fields: 0, asks: true },
} satisfies Record<string, Cost>;

interface Cost {
  readonly clicks: number;
  readonly fields: number;
  readonly asks?: boolean;
}

type Task = keyof typeof TASKS;

/** Most clicks and fields that a task may take. */
function mostOf(task: Task): number {
  const { clicks, fields, asks = false }: Cost = TASKS[task];
  return Math.ceil((clicks + fields) / 2) + (asks ? 1 : 0);
}

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
  /** Sends what is filled, by Enter in a field or list that has the focus. It is not counted. */
  enter(): Promise<void>;
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
    async enter() {
      const focused = page.locator('input:focus, select:focus, textarea:focus');
      await focused.press('Enter');
    },
    async paste(text) {
      await page.evaluate((each) => navigator.clipboard.writeText(each), text);
      await counted(page.keyboard.press('Control+v'));
    },
  };
}

/** Does a task, and expects that it takes no more actions than it may. */
async function within(
  task: Task,
  path: string,
  perform: (person: Person) => Promise<void>,
  token = NORMAL,
): Promise<void> {
  const person = await personAt(path, token);
  await person.page.locator('main h1').waitFor();
  await perform(person);
  expect(person.count, task).toBeLessThanOrEqual(mostOf(task));
  await person.page.context().close();
}

/** Expects that axe-core finds nothing on the page, in both themes. */
async function expectAccessible(page: Page): Promise<void> {
  expect(await faultsInBothThemes(page)).toEqual(NO_FAULTS);
}

const button = (page: Page | Locator, name: string) =>
  page.getByRole('button', { name, exact: true });

test('one signs in by a pasted token; a second tab, and a link of a colleague, need none', async () => {
  await within(
    'sign in',
    '/crawlers',
    async ({ page, fill, enter }) => {
      await fill(page.getByLabel('Token'), NORMAL);
      await enter();
      await page.getByRole('navigation', { name: 'Places' }).waitFor();
    },
    '',
  );
  const { page } = await personAt('/crawlers', NORMAL);
  const other = await page.context().newPage();
  await other.goto(`${app.url}/console/account`);
  await other.getByRole('heading', { name: 'Account default' }).waitFor();
  await page.context().close();
});

test('a crawler is made with all settings of another one by a name', async () => {
  await createCrawler(app, 'model', {
    concurrency: 7,
    max_retries: 3,
    priority: 4,
    politeness: { delay_ms: 250, robots_txt: true, max_per_host: 2 },
  });
  await within('create with all settings', '/crawlers/model', async (person) => {
    const { page, click, fill, enter } = person;
    await click(page.getByRole('link', { name: 'Settings' }));
    await click(page.getByRole('link', { name: 'Duplicate' }));
    await fill(page.getByLabel('Name'), 'made-like-it');
    await expectAccessible(page);
    await enter();
    await page.getByRole('heading', { name: 'made-like-it' }).waitFor();
  });
  const settings = async (name: string) => {
    const { json } = await app.rest('GET', `/crawler/${NORMAL}/${name}`);
    const { concurrency, max_retries: retries, priority, politeness, delivery } = json;
    return { concurrency, retries, priority, politeness, delivery };
  };
  expect(await settings('made-like-it')).toEqual(await settings('model'));
});

test('a crawler with a webhook is made by its callback URL, whose host is its name', async () => {
  const { host, hostname, port } = new URL(receiver.url);
  const name = `${hostname}-${port}`;
  await within('create with a webhook', '/crawlers', async ({ page, click, fill, enter }) => {
    await click(page.getByRole('link', { name: 'New crawler' }));
    await fill(page.getByLabel('Callback URL'), receiver.url);
    await expectAccessible(page);
    await enter();
    await page.getByRole('dialog').getByText('whsec_').waitFor();
    await expectAccessible(page);
    await button(page, 'I have saved it').click();
    await page.getByRole('heading', { name }).waitFor();
  });
  const { json } = await app.rest('GET', `/crawler/${NORMAL}/${name}`);
  expect(json).toMatchObject({ delivery: 'webhook', callback_url: receiver.url });
  // A second one of the host gets a number.
  const page = await browser.open('/crawlers', NORMAL);
  await page.getByRole('link', { name, exact: true }).waitFor();
  await page.getByRole('link', { name: 'New crawler' }).click();
  await page.getByLabel('Callback URL').fill(`http://${host}/other`);
  const field = page.getByLabel('Name');
  expect(await field.getAttribute('placeholder')).toBe(`${name}-2`);
  // Storage has no callback URL, and so no name of its own.
  await page.getByRole('radio', { name: /^Storage/ }).check();
  expect(await page.getByLabel('Callback URL').inputValue()).toBe('');
  await button(page, 'Create crawler').click();
  const isMissing = (input: HTMLInputElement) => input.validity.valueMissing;
  expect(await field.evaluate(isMissing)).toBe(true);
  await page.context().close();
});

test('a URL, and a list of 5,000, are pushed by a paste and a click from any page', async () => {
  const crawler = await createCrawler(app, 'pasted');
  await crawler.post('pause');
  await within('push one URL', '/crawlers', async ({ page, click, paste }) => {
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
  await within('push a list', '/crawlers/pasted', async ({ page, paste, enter }) => {
    await paste(lines);
    await page.getByRole('option', { name: 'Push 5,000 URLs into pasted' }).waitFor();
    await enter();
    await page.getByText('5,000 queued').waitFor();
  });
  expect((await crawler.details()).activity.waiting).toBe(5_001);
});

test('why a URL failed is seen by a paste', async () => {
  const crawler = await createCrawler(app, 'why', { max_retries: 0 });
  const url = `${site.url}/status/500?why`;
  await crawler.stored(await crawler.push(url));
  await within('see why a URL failed', '/crawlers', async ({ page, paste, enter }) => {
    await paste(url);
    await page.getByRole('option', { name: /^Find/ }).waitFor();
    await enter();
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
  await within('push 36 failed URLs again', '/crawlers/again/failures', async ({ page, click }) => {
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
  await within('change concurrency', '/crawlers/wider', async ({ page, fill, enter }) => {
    await fill(page.getByLabel('Concurrency'), '40');
    await enter();
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
  await within('pause', '/crawlers/many-0', async ({ page, click }) => {
    await click(button(page, 'Pause'));
    await button(page, 'Unpause').waitFor();
  });
  expect(await paused()).toBe(1);
  await within('pause 30 crawlers', '/crawlers?q=many-', async ({ page, click }) => {
    await click(button(page, 'Choose all 30'));
    await click(button(page, 'Pause 30'));
    await click(button(page.getByRole('dialog'), 'Pause'));
    await page.getByText('30 crawlers paused.').waitFor();
  });
  expect(await paused()).toBe(30);
});

test('a queue is purged, and a crawler deleted, by a click and the name', async () => {
  const crawler = await createCrawler(app, 'gone');
  await crawler.post('pause');
  await crawler.push(`${site.url}/page/1`);
  await within('purge', '/crawlers/gone', async ({ page, click, fill, enter }) => {
    await click(button(page, 'Purge the queue…'));
    await expectAccessible(page);
    await fill(page.getByLabel('Type gone to confirm'), 'gone');
    await enter();
    await page.getByText('Removed 1 URLs').waitFor();
  });
  expect((await crawler.details()).activity.waiting).toBe(0);
  await within('delete', '/crawlers/gone', async ({ page, click, fill, enter }) => {
    await click(button(page, 'Delete…'));
    const field = page.getByLabel('Type gone to confirm');
    await fill(field, 'gon');
    await enter();
    expect(await field.isVisible()).toBe(true);
    await field.press('e');
    await enter();
    await page.getByText('Deleted gone').waitFor();
  });
  expect((await app.rest('GET', crawler.path)).status).toBe(404);
});

test('results are exported by 1 click, a page and its source are seen by 1', async () => {
  const crawler = await createCrawler(app, 'seen');
  for (const n of [1, 2]) await crawler.stored(await crawler.push(`${site.url}/page/${n}`));
  await within('export results', '/crawlers/seen/results', async ({ page, click }) => {
    const saving = page.waitForEvent('download');
    await click(button(page, 'NDJSON'));
    expect((await saving).suggestedFilename()).toBe('seen-results.ndjson');
  });
  await within('see a page', '/crawlers/seen/results', async ({ page, click }) => {
    await click(page.getByRole('button', { name: /^Open the result of .*page\/1$/ }));
    const preview = page.frameLocator('iframe.preview').frameLocator('iframe');
    await preview.getByText('Page 1').first().waitFor();
  });
  await within('see the source of a page', '/crawlers/seen/results', async ({ page, click }) => {
    await click(page.getByRole('button', { name: /^Source of the result of .*page\/1$/ }));
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
  await within(
    'replay three',
    '/crawlers/replayed/failures?kind=delivery',
    async ({ page, click }) => {
      await click(page.getByRole('button', { name: /^Replay: / }));
      await click(button(page.getByRole('dialog'), 'Replay 3'));
      await page.getByText('Done: 3 of 3').waitFor();
    },
  );
  await came(6);
  await within(
    'replay a range',
    '/crawlers/replayed/deliveries',
    async ({ page, click, choose }) => {
      await choose(page.getByLabel('Replay those of the last'), 'hour');
      await click(button(page.getByRole('dialog'), 'Replay 3'));
      await page.getByText('Done: 3 of 3').waitFor();
    },
  );
  await came(9);
});

// The secret asks, since receivers that do not know the new one are cut off. It is shown until one says
// that it is saved, which is no part of replacing it.
test('a delivery is tested by 1 click, a secret replaced by 2', async () => {
  await createCrawler(app, 'secret', { callback_url: receiver.url });
  await within('test a delivery', '/crawlers/secret/deliveries', async ({ page, click }) => {
    await click(button(page, 'Send a test'));
    await page.getByText('The callback URL acknowledged it').waitFor();
  });
  await within('replace a secret', '/crawlers/secret/settings', async ({ page, click }) => {
    await click(button(page, 'New secret'));
    await click(button(page.getByRole('dialog'), 'Replace'));
    await page.getByRole('dialog').getByText('whsec_').waitFor();
    await button(page, 'I have saved it').click();
  });
});

// A token asks for the name of the account, whose programs are cut off.
test('an account is made by its e-mail, limited by a number, and its token replaced by its name', async () => {
  const asOperator = (task: Task, perform: (person: Person) => Promise<void>) =>
    within(task, '/accounts', perform, ADMIN);
  const account = 'client-example.com';
  await asOperator('make an account', async ({ page, click, fill, enter }) => {
    await click(button(page, 'New account'));
    await fill(page.getByLabel('E-mail'), 'client@example.com');
    await expectAccessible(page);
    await enter();
    await page.getByRole('heading', { name: `Tokens of ${account}` }).waitFor();
    await expectAccessible(page);
  });
  await asOperator('limit an account', async ({ page, click, fill, enter }) => {
    await click(button(page, `Open account ${account}`));
    await expectAccessible(page);
    await fill(page.getByLabel('Stored results and deliveries, GiB'), '1.5');
    await enter();
    await page.getByText(`Saved account ${account}.`).waitFor();
  });
  const headers = { authorization: `Bearer ${ADMIN}` };
  const read = await fetch(`${app.url}/accounts/${account}`, { headers });
  const { email, limits } = (await read.json()) as {
    email: string;
    limits: { storage_bytes: string };
  };
  expect(email).toBe('client@example.com');
  expect(Number(limits.storage_bytes)).toBe(1.5 * 1024 ** 3);
  await asOperator('replace a token', async ({ page, click, fill, enter }) => {
    await click(button(page, `New token for ${account}`));
    await expectAccessible(page);
    await fill(page.getByLabel(`Type ${account} to confirm`), account);
    await enter();
    await page.getByText('shown this once').waitFor();
    await goWithin(page, '/accounts');
  });
});
