import { expect, test } from 'vitest';
import { ADMIN, NORMAL, type RestReply, startApp, type TestApp } from '../support/app.ts';
import { runCommandLine } from '../support/command-line.ts';
import { openConsoleBrowser } from '../support/console-browser.ts';
import { type CrawlerClient, createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startMailServer } from '../support/mail-server.ts';
import { type Site, startSite } from '../support/site.ts';
import { createTestClock } from '../support/test-clock.ts';

/** Gives the account of the test tokens a quota of its own. */
async function limitStorage(app: TestApp, bytes: number): Promise<void> {
  const authorization = `Bearer ${ADMIN}`;
  const limits = { storage_bytes: bytes };
  const reply = await app.rest('PUT', '/accounts/default', { limits }, { authorization });
  expect(reply.status, reply.text).toBe(200);
}

/** Stores one page, and queues another when no more may be stored. */
async function fillStorage(app: TestApp, crawler: CrawlerClient, site: Site): Promise<string> {
  await crawler.stored(await crawler.push(`${site.url}/page/0`));
  await crawler.post('pause');
  const rid = await crawler.push(`${site.url}/page/1`);
  await limitStorage(app, 1_000);
  await crawler.post('unpause');
  return rid;
}

async function emptyStorage(app: TestApp): Promise<void> {
  const { json: rids } = await app.rest('GET', `/storage/rids?token=${NORMAL}&limit=100`);
  const reply = await app.rest('POST', `/storage/bulk_delete?token=${NORMAL}`, { rids });
  expect(reply.status, reply.text).toBe(200);
}

const find = async (app: TestApp, rid: string): Promise<RestReply['json']> =>
  (await app.rest('GET', `/find_by_rid/${NORMAL}/${rid}`)).json;

async function listed(app: TestApp): Promise<RestReply['json'][]> {
  const path = `/crawler/${NORMAL}?with_activity=true&needs_attention=true`;
  return (await app.rest('GET', path)).json.crawlers;
}

async function metric(app: TestApp, reason: string): Promise<number> {
  const { text } = await app.rest('GET', '/metrics');
  const name = `queued_crawler_crawlers_needing_attention{reason="${reason}"} `;
  const line = text.split('\n').find((each) => each.startsWith(name));
  return Number(line?.slice(name.length));
}

test('a crawler that a full storage holds back says so, with the numbers, until there is room', async () => {
  await using site = await startSite();
  await using app = await startApp();
  const crawler = await createCrawler(app, 'keeper');
  await createCrawler(app, 'idle');
  const rid = await fillStorage(app, crawler, site);
  const [found] = await eventually(async () => {
    const { attention } = await crawler.details();
    expect(attention).toMatchObject([{ reason: 'storage_full' }]);
    return attention;
  });
  const { json: stats } = await app.rest('GET', `/crawler/${NORMAL}/stats`);
  const { limit, used } = stats.quotas.storage_bytes;
  const numbers = [used, limit].map((bytes: number) => bytes.toLocaleString('en-US'));
  expect(found.detail).toBe(
    `the account has stored ${numbers[0]} bytes of the ${numbers[1]} that its quota storage_bytes allows`,
  );
  for (const way of ['Delete stored results', 'auto_delete', 'RESULT_RETENTION_DAYS', 'operator']) {
    expect(found.next_step).toContain(way);
  }
  const { activity } = await crawler.details();
  const moved = [activity.last_push_at, activity.last_crawl_at]
    .toSorted((a, b) => Date.parse(a) - Date.parse(b))
    .at(-1);
  expect(found.since).toBe(moved);
  expect(await listed(app)).toMatchObject([{ name: 'keeper', attention: [found] }]);
  expect(await find(app, rid)).toMatchObject({ waits_for: 'storage_full' });
  await eventually(async () => expect(await metric(app, 'storage_full')).toBe(1));
  expect(await metric(app, 'disk_full')).toBe(0);

  // Who paused it knows why it stands.
  await crawler.post('pause');
  expect((await crawler.details()).attention).toEqual([]);
  expect(await find(app, rid)).toMatchObject({ waits_for: 'user_pause' });
  await crawler.post('unpause');

  await emptyStorage(app);
  await eventually(async () => expect((await crawler.details()).attention).toEqual([]));
  await crawler.stored(rid);
  await eventually(async () => expect(await listed(app)).toEqual([]));
});

test('the console, doctor and find show a full storage', async () => {
  await using site = await startSite();
  await using app = await startApp();
  const crawler = await createCrawler(app, 'keeper');
  const rid = await fillStorage(app, crawler, site);
  await eventually(async () => {
    expect(await find(app, rid)).toMatchObject({ waits_for: 'storage_full' });
  });
  const command = { env: { QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL } };
  const { stdout: doctor } = await runCommandLine(['doctor'], command);
  expect(doctor).toMatch(/crawler keeper +warning +storage_full since 20.*Delete stored results/);
  const { stdout: life } = await runCommandLine(['find', rid], command);
  expect(life).toMatch(/^waits +for storage_full$/m);

  await using browser = await openConsoleBrowser(app.url);
  const list = await browser.open('/crawlers', NORMAL);
  const row = list.getByRole('row').filter({ hasText: 'keeper' });
  const title = await row.getByText('Storage full').getAttribute('title');
  expect(title).toMatch(/the account has stored [\d,]+ bytes of the 1,000/);
  await list.context().close();
  const job = await browser.open(`/jobs/${rid}`, NORMAL);
  await job.getByText('Waits: the storage of the account is full').waitFor();
  await job.context().close();
  const page = await browser.open('/crawlers/keeper', NORMAL);
  const notice = page.getByRole('alert').filter({ hasText: 'Storage full' });
  await notice.getByText(/Began .*: the account has stored/).waitFor();
  const link = notice.getByRole('link', { name: 'Storage' });
  expect(await link.getAttribute('href')).toMatch(/\/storage$/);
  // The page follows by itself.
  await emptyStorage(app);
  await eventually(async () => expect(await notice.count()).toBe(0));
  expect(browser.problems).toEqual([]);
});

test('one mail tells of a full storage, to owners who want that', async () => {
  const clock = createTestClock();
  await using site = await startSite();
  await using mail = await startMailServer();
  const env = { SMTP_URL: mail.url, ACCOUNT_EMAIL: 'owner@example.com' };
  await using app = await startApp({ clock, env });
  const crawler = await createCrawler(app, 'keeper', { notify_after_minutes: 5 });
  const rid = await fillStorage(app, crawler, site);
  await eventually(async () => {
    clock.advance(10_000);
    expect(await find(app, rid)).toMatchObject({ waits_for: 'storage_full' });
    expect(mail.mails).toHaveLength(1);
  });
  expect(mail.mails[0]).toContain('Crawler keeper needs attention');
  expect(mail.mails[0]).toContain('storage_full');
  expect(mail.mails[0]).toContain('Delete stored results');
});

test.runIf(process.env.TEST_STORE === 'mongodb')(
  'a process that crawls nothing tells of a full storage, too',
  async () => {
    await using site = await startSite();
    await using app = await startApp();
    await using other = await startApp({ dataDir: app.dataDir, env: { ROLE: 'api' } });
    const crawler = await createCrawler(app, 'keeper');
    const rid = await fillStorage(app, crawler, site);
    await eventually(async () => {
      expect(await listed(other)).toMatchObject([{ attention: [{ reason: 'storage_full' }] }]);
      expect(await find(other, rid)).toMatchObject({ waits_for: 'storage_full' });
      expect(await metric(other, 'storage_full')).toBe(1);
    });
    const [here, there] = [await listed(app), await listed(other)];
    expect(there[0].attention).toEqual(here[0].attention);
    await emptyStorage(other);
    await eventually(async () => expect(await listed(other)).toEqual([]));
    await crawler.stored(rid);
  },
);
