import { expect, test } from 'vitest';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/listen.ts';
import { startMailServer } from '../support/mail-server.ts';
import { type ProxyFault, startProxy } from '../support/proxy.ts';
import { startReceiver } from '../support/receiver.ts';
import { shareApp } from '../support/shared-app.ts';
import { startSite } from '../support/site.ts';
import { createTestClock } from '../support/test-clock.ts';

const MINUTE = 60_000;

interface Attention {
  readonly reason: string;
  readonly since: string;
  readonly detail: string;
  readonly next_step: string;
}

/** The crawlers that need attention, as their list tells. */
async function troubled(app: TestApp): Promise<{ name: string; attention: Attention[] }[]> {
  const { json } = await app.rest(
    'GET',
    `/crawler/${NORMAL}?with_activity=true&needs_attention=true`,
  );
  return json.crawlers;
}

async function metric(app: TestApp, reason: string): Promise<number> {
  const { text } = await app.rest('GET', '/metrics');
  const name = `queued_crawler_crawlers_needing_attention{reason="${reason}"}`;
  const line = text.split('\n').find((each) => each.startsWith(name));
  return Number(line?.slice(name.length));
}

const shared = shareApp();

test('a crawler whose deliveries all fail needs attention until one is acknowledged', async () => {
  const clock = createTestClock();
  await using site = await startSite();
  await using receiver = await startReceiver({ answer: { status: 500 } });
  await using app = await startApp({ clock, env: { WEBHOOK_RETRY_SCHEDULE: '1m,10m,1h' } });
  await createCrawler(app, 'quiet');
  const crawler = await createCrawler(app, 'hooked', { callback_url: receiver.url });
  const before = clock.now().getTime();
  for (const page of [1, 2]) await crawler.push(`${site.url}/page/${page}`);
  await receiver.until(2);
  expect((await crawler.details()).attention).toEqual([]);
  await crawler.push(`${site.url}/page/3`);
  const [found] = await eventually(async () => {
    const { attention } = await crawler.details();
    expect(attention).toHaveLength(1);
    return attention as Attention[];
  });
  expect(found).toMatchObject({ reason: 'deliveries_fail' });
  expect(found?.detail).toMatch(/^the last 3 deliveries failed, the latest with: .*500/);
  expect(found?.next_step).toContain('acknowledge with 200, 201 or 204');
  expect(Math.abs(Date.parse(found?.since ?? '') - before)).toBeLessThan(MINUTE);
  expect(await troubled(app)).toMatchObject([{ name: 'hooked', attention: [found] }]);
  await eventually(async () => expect(await metric(app, 'deliveries_fail')).toBe(1));
  expect(await metric(app, 'queue_full')).toBe(0);

  const failing = await app.rest('GET', `${crawler.path}/failures?kind=delivery`);
  expect(failing.json.groups).toMatchObject([
    { original_status: 500, count: 3, pending: 3, examples: [{}, {}, {}] },
  ]);

  receiver.answer({ status: 200 });
  clock.advance(2 * MINUTE);
  await eventually(async () => expect((await crawler.details()).attention).toEqual([]));
  expect(await troubled(app)).toEqual([]);
});

test('a crawler whose URLs all wait for a retry needs attention until one succeeds', async () => {
  await using site = await startSite();
  const app = shared();
  const crawler = await createCrawler(app, 'retrying');
  for (let n = 0; n < 6; n += 1) await crawler.push(`${site.url}/status/503?n=${n}`);
  const found = await eventually(async () => {
    const { attention } = await crawler.details();
    expect(attention).toMatchObject([{ reason: 'crawls_fail' }]);
    return attention[0] as Attention;
  });
  expect(found.detail).toMatch(/^the last \d+ tries failed, the latest with: \w+/);
  expect(found.next_step).toContain('Failures');
  expect(await troubled(app)).toMatchObject([{ name: 'retrying' }]);
  await crawler.post('pause');
  expect((await crawler.details()).attention).toEqual([]);
  await crawler.post('unpause');
  expect((await crawler.details()).attention).toMatchObject([{ reason: 'crawls_fail' }]);
  await crawler.push(`${site.url}/page/1`);
  await eventually(async () => expect((await crawler.details()).attention).toEqual([]));
});

test('a crawler most of whose URLs belong to a host that is not reached names that host', async () => {
  await using site = await startSite();
  const app = shared();
  const dead = `127.0.0.1:${await freePort()}`;
  const crawler = await createCrawler(app, 'waiting');
  for (let n = 0; n < 6; n += 1) await crawler.push(`http://${dead}/page/${n}`);
  await crawler.push(`${site.url}/page/1`);
  const found = await eventually(async () => {
    const { attention } = await crawler.details();
    // The first count may miss a URL that is being tried.
    const detail = `${dead} is put aside (connection_failed) and has 6 of 6 queued URLs`;
    expect(attention).toMatchObject([{ reason: 'host_away', detail }]);
    return attention[0] as Attention;
  });
  expect(Date.parse(found.since)).toBeGreaterThan(Date.now() - 10 * MINUTE);
  expect(await troubled(app)).toMatchObject([{ attention: [{ reason: 'host_away' }] }]);
  await crawler.post('purge');
  await eventually(async () => expect((await crawler.details()).attention).toEqual([]));
});

test('a crawler of many hosts whose pool has no proxy that works needs attention', async () => {
  let fault: ProxyFault | undefined = 'login';
  await using proxy = await startProxy({ fault: () => fault });
  const clock = createTestClock();
  await using sites = new AsyncDisposableStack();
  const hosts = [];
  for (let n = 0; n < 4; n += 1) hosts.push(sites.use(await startSite()));
  await using app = await startApp({
    clock,
    env: { PROXIES: JSON.stringify({ fast: proxy.url }) },
  });
  const crawler = await createCrawler(app, 'proxied', { proxy: 'fast' });
  const before = clock.now().getTime();
  const rids = await Promise.all(hosts.map(({ url }) => crawler.push(`${url}/page/1`)));
  const found = await eventually(async () => {
    const { attention } = await crawler.details();
    // One that is being tried again is not queued at that moment.
    const detail = expect.stringContaining('4 URLs are queued');
    expect(attention).toMatchObject([{ reason: 'proxies_fail', detail }]);
    return attention[0] as Attention;
  });
  expect(found.next_step).toContain('add proxies');
  expect(Math.abs(Date.parse(found.since) - before)).toBeLessThan(5 * MINUTE);
  await eventually(async () => expect(await metric(app, 'proxies_fail')).toBe(1));
  fault = undefined;
  clock.advance(15 * MINUTE);
  for (const rid of rids) await crawler.stored(rid);
  await eventually(async () => expect((await crawler.details()).attention).toEqual([]));
});

test('a full queue needs attention until it has room', async () => {
  await using site = await startSite();
  await using app = await startApp({ env: { CRAWLER_QUEUE_LIMIT: '3' } });
  const crawler = await createCrawler(app, 'full');
  await crawler.post('pause');
  for (let n = 0; n < 3; n += 1) await crawler.push(`${site.url}/page/${n}`);
  const { attention, activity } = await crawler.details();
  expect(attention).toMatchObject([
    { reason: 'queue_full', since: activity.last_push_at, detail: '3 of 3 URLs are queued' },
  ]);
  expect((await crawler.tryPush(`${site.url}/page/4`)).status).toBe(429);
  await eventually(async () => expect(await metric(app, 'queue_full')).toBe(1));
  await crawler.post('unpause');
  await eventually(async () => expect((await crawler.details()).attention).toEqual([]));
});

test('a crawler that the monitoring pauses needs attention, with what was found', async () => {
  const clock = createTestClock();
  await using receiver = await startReceiver();
  receiver.answerProbes({ status: 500 });
  await using app = await startApp({ clock, env: { PROBE_INTERVAL_SECONDS: '60' } });
  const crawler = await createCrawler(app, 'paused', { callback_url: receiver.url });
  const { paused_at: since, attention } = await eventually(async () => {
    clock.advance(MINUTE);
    const details = await crawler.details();
    expect(details.paused_by).toBe('monitor');
    return details;
  });
  expect(attention).toMatchObject([{ reason: 'paused_by_monitor', since }]);
  expect(attention[0].detail).toContain('status 500');
});

test('an episode causes one mail, and only where it is wanted', async () => {
  const clock = createTestClock();
  await using site = await startSite();
  await using mail = await startMailServer();
  await using receiver = await startReceiver({ answer: { status: 500 } });
  await using app = await startApp({
    clock,
    env: {
      SMTP_URL: mail.url,
      ACCOUNT_EMAIL: 'owner@example.com',
      WEBHOOK_RETRY_SCHEDULE: Array.from({ length: 90 }, () => '10m').join(','),
    },
  });
  const wanted = await createCrawler(app, 'wanted', {
    callback_url: `${receiver.url}/wanted`,
    notify_after_minutes: 5,
  });
  const silent = await createCrawler(app, 'silent', { callback_url: `${receiver.url}/silent` });
  for (const crawler of [wanted, silent]) {
    for (let n = 0; n < 3; n += 1) await crawler.push(`${site.url}/page/${n}`);
    await eventually(async () => {
      expect((await crawler.details()).attention).toMatchObject([{ reason: 'deliveries_fail' }]);
    });
  }
  await eventually(() => {
    // Slowly, so that the task that looks sees the trouble last.
    clock.advance(MINUTE / 6);
    expect(mail.mails).toHaveLength(1);
  });
  const [text] = mail.mails;
  expect(text).toContain('owner@example.com');
  expect(text).toContain('Crawler wanted needs attention: its deliveries fail');
  expect(text).toContain('deliveries_fail');
  // Less than an hour, after which an episode that was not looked at is another one.
  for (let left = 50; left > 0; left -= 1) clock.advance(MINUTE);
  const posts = receiver.deliveries.length;
  await eventually(() => {
    // Slower than a lease runs out on a busy machine.
    clock.advance(MINUTE / 600);
    expect(receiver.deliveries.length).toBeGreaterThan(posts);
  });
  expect((await wanted.details()).attention).toMatchObject([{ reason: 'deliveries_fail' }]);
  expect(mail.mails).toHaveLength(1);
});

test.runIf(process.env.TEST_STORE === 'mongodb')(
  'an episode that two processes see causes one mail',
  async () => {
    const clock = createTestClock();
    await using site = await startSite();
    await using mail = await startMailServer();
    await using receiver = await startReceiver({ answer: { status: 500 } });
    const env = {
      SMTP_URL: mail.url,
      ACCOUNT_EMAIL: 'owner@example.com',
      WEBHOOK_RETRY_SCHEDULE: Array.from({ length: 90 }, () => '10m').join(','),
    };
    await using app = await startApp({ clock, env });
    await using other = await startApp({ clock, env, dataDir: app.dataDir });
    const settings = { callback_url: receiver.url, notify_after_minutes: 5 };
    const crawler = await createCrawler(app, 'wanted', settings);
    for (let n = 0; n < 3; n += 1) await crawler.push(`${site.url}/page/${n}`);
    await eventually(async () => {
      expect(await troubled(other)).toMatchObject([{ attention: [{ reason: 'deliveries_fail' }] }]);
    });
    await eventually(() => {
      clock.advance(MINUTE / 6);
      expect(mail.mails).toHaveLength(1);
    });
    for (let left = 40; left > 0; left -= 1) clock.advance(MINUTE);
    const posts = receiver.deliveries.length;
    await eventually(() => {
      clock.advance(MINUTE / 600);
      expect(receiver.deliveries.length).toBeGreaterThan(posts);
    });
    expect(mail.mails).toHaveLength(1);
  },
);

test.runIf(process.env.TEST_STORE === 'mongodb')(
  'either process of a database says the same of what needs attention',
  async () => {
    await using receiver = await startReceiver({ answer: { status: 500 } });
    await using site = await startSite();
    await using app = await startApp();
    await using other = await startApp({ dataDir: app.dataDir });
    const hooked = await createCrawler(app, 'hooked', { callback_url: receiver.url });
    const full = await createCrawler(other, 'fails', { max_retries: 50 });
    for (const page of [1, 2, 3]) await hooked.push(`${site.url}/page/${page}`);
    for (let n = 0; n < 5; n += 1) await full.push(`${site.url}/status/503?n=${n}`);
    const both = async () => {
      const lists = await Promise.all([troubled(app), troubled(other)]);
      return lists.map((list) => list.map(({ name, attention }) => ({ name, attention })));
    };
    await eventually(async () => {
      const [here, there] = await both();
      expect(here?.map(({ name }) => name)).toEqual(['fails', 'hooked']);
      expect(there).toEqual(here);
    });
    await hooked.post('pause');
    await other.rest('POST', `/crawler/${NORMAL}/fails/purge`);
    await eventually(async () => {
      const [here, there] = await both();
      expect(here?.some(({ name }) => name === 'fails')).toBe(false);
      expect(there).toEqual(here);
    });
  },
);
