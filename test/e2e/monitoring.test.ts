import { expect, test } from 'vitest';
import { startApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startMailServer } from '../support/mail-server.ts';
import { startReceiver } from '../support/receiver.ts';
import { startSite } from '../support/site.ts';
import { createTestClock } from '../support/test-clock.ts';

const MINUTE = 60_000;
const monitored = { PROBE_INTERVAL_SECONDS: '60' };

test('a callback URL is probed as the spec says', async () => {
  const clock = createTestClock();
  await using receiver = await startReceiver();
  await using app = await startApp({ clock, env: monitored });
  await createCrawler(app, 'probed', { callback_url: receiver.url });
  await createCrawler(app, 'stored');
  await eventually(() => {
    clock.advance(MINUTE);
    expect(receiver.probes.length).toBeGreaterThanOrEqual(2);
  });
  const [probe] = receiver.probes;
  expect(probe?.headers['content-type']).toBe('application/json');
  expect(probe?.headers['user-agent']).toMatch(/monitor.*bot.*1\.0/i);
  expect(probe?.json).toEqual({ monitor: true });
  expect(probe?.headers.rid).toBeUndefined();
  expect(receiver.deliveries).toEqual([]);
});

test('a receiver that knows the bots by their whole names gets the names that the operator sets', async () => {
  const clock = createTestClock();
  await using site = await startSite();
  await using receiver = await startReceiver();
  const env = { ...monitored, WEBHOOK_BOT_NAME: 'Example' };
  await using app = await startApp({ clock, env });
  const crawler = await createCrawler(app, 'known', { callback_url: receiver.url });
  await crawler.push(`${site.url}/page/1`);
  const [delivery] = await receiver.until(1);
  expect(delivery?.headers['user-agent']).toBe('Example Delivery Bot 1.0');
  await eventually(() => {
    clock.advance(MINUTE);
    expect(receiver.probes[0]?.headers['user-agent']).toBe('Example Monitoring Bot 1.0');
  });
});

test('a callback URL that fails pauses its crawler, tells the owner, and resumes it when it answers', async () => {
  const clock = createTestClock();
  await using site = await startSite();
  await using mail = await startMailServer();
  await using receiver = await startReceiver();
  await using app = await startApp({
    clock,
    env: { ...monitored, SMTP_URL: mail.url, ACCOUNT_EMAIL: 'owner@example.com' },
  });
  const crawler = await createCrawler(app, 'watched', { callback_url: receiver.url });
  receiver.answer({ status: 500 });
  receiver.answerProbes({ status: 500 });
  await eventually(async () => {
    clock.advance(MINUTE);
    expect(await crawler.details()).toMatchObject({ status: 'paused', paused_by: 'monitor' });
  });
  const paused = await crawler.details();
  expect(paused.pause_reason).toContain('status 500');
  for (const moment of [paused.paused_at, paused.activity.last_probe_at]) {
    expect(Math.abs(Date.parse(moment) - clock.now().getTime())).toBeLessThan(60 * MINUTE);
  }
  const text = await eventually(() => {
    expect(mail.mails).toHaveLength(1);
    return mail.mails[0];
  });
  expect(text).toContain('owner@example.com');
  expect(text).toContain('watched');

  const rid = await crawler.push(`${site.url}/page/1`);
  const probes = receiver.probes.length;
  await eventually(() => {
    clock.advance(MINUTE);
    expect(receiver.probes.length).toBeGreaterThan(probes + 2);
  });
  expect((await crawler.find(rid)).json.status).toBe('QUEUED');
  expect(mail.mails).toHaveLength(1);

  receiver.answer({ status: 200 });
  receiver.answerProbes({ status: 200 });
  await eventually(async () => {
    clock.advance(MINUTE);
    expect((await crawler.details()).status).toBe('running');
  });
  const [post] = await receiver.until(1);
  expect(post?.rid).toBe(rid);
  await eventually(async () => {
    const resumed = await crawler.details();
    expect(resumed).not.toHaveProperty('paused_at');
    expect(resumed).not.toHaveProperty('pause_reason');
    const {
      last_push_at: pushed,
      last_crawl_at: crawled,
      last_delivery_at: delivered,
    } = resumed.activity;
    expect(Date.parse(pushed)).toBeLessThanOrEqual(Date.parse(crawled));
    expect(Date.parse(crawled)).toBeLessThanOrEqual(Date.parse(delivered));
  });
});

test("the monitor never lifts a user's pause, and the user may lift the monitor's", async () => {
  const clock = createTestClock();
  await using receiver = await startReceiver();
  await using app = await startApp({ clock, env: monitored });
  const crawler = await createCrawler(app, 'both', { callback_url: receiver.url });
  await crawler.post('pause');
  receiver.answerProbes({ status: 500 });
  const seen = async (count: number): Promise<void> => {
    const before = receiver.probes.length;
    await eventually(() => {
      clock.advance(MINUTE);
      expect(receiver.probes.length).toBeGreaterThanOrEqual(before + count);
    });
  };
  await seen(2);
  receiver.answerProbes({ status: 200 });
  await seen(3);
  expect(await crawler.details()).toMatchObject({ status: 'paused', paused_by: 'user' });

  receiver.answerProbes({ status: 500 });
  await crawler.post('unpause');
  await eventually(async () => {
    clock.advance(MINUTE);
    expect(await crawler.details()).toMatchObject({ status: 'paused', paused_by: 'monitor' });
  });
  expect((await crawler.post('unpause')).json).toMatchObject({ status: 'running' });
});

test('a callback that hangs delays no other crawler', async () => {
  const clock = createTestClock();
  await using hanging = await startReceiver();
  await using broken = await startReceiver();
  hanging.answerProbes({ hang: true });
  broken.answerProbes({ status: 500 });
  await using app = await startApp({ clock, env: monitored });
  const stuck = await createCrawler(app, 'stuck', { callback_url: hanging.url });
  await eventually(() => {
    clock.advance(MINUTE);
    expect(hanging.probes.length).toBeGreaterThan(0);
  });
  const other = await createCrawler(app, 'other', { callback_url: broken.url });
  await eventually(async () => {
    clock.advance(MINUTE);
    expect(await other.details()).toMatchObject({ status: 'paused', paused_by: 'monitor' });
  });
  broken.answerProbes({ status: 200 });
  await eventually(async () => {
    clock.advance(MINUTE);
    expect((await other.details()).status).toBe('running');
  });
  // Its first probe has not even timed out.
  expect(hanging.probes).toHaveLength(1);
  expect((await stuck.details()).status).toBe('running');
});

test('crawlers with the same callback URL share one probe and its answer', async () => {
  const clock = createTestClock();
  await using receiver = await startReceiver();
  receiver.answerProbes({ status: 500 });
  await using app = await startApp({ clock, env: monitored });
  const crawlers = await Promise.all(
    ['one', 'two', 'three'].map((name) => createCrawler(app, name, { callback_url: receiver.url })),
  );
  await eventually(async () => {
    clock.advance(10_000);
    for (const crawler of crawlers) expect((await crawler.details()).status).toBe('paused');
  });
  const { length } = receiver.probes;
  receiver.answerProbes({ status: 200 });
  await eventually(async () => {
    clock.advance(10_000);
    for (const crawler of crawlers) expect((await crawler.details()).status).toBe('running');
  });
  // One each would be three, and six.
  expect(length).toBeLessThan(3);
  expect(receiver.probes.length).toBeLessThan(6);
});

test('a notice is mailed once, however long the mail server is down, restarts of the service included', async () => {
  const clock = createTestClock();
  const gone = await startMailServer();
  await gone[Symbol.asyncDispose]();
  await using receiver = await startReceiver();
  receiver.answerProbes({ status: 500 });
  const env = { ...monitored, SMTP_URL: gone.url, ACCOUNT_EMAIL: 'owner@example.com' };
  await using app = await startApp({ clock, env });
  const crawler = await createCrawler(app, 'watched', { callback_url: receiver.url });
  await eventually(async () => {
    clock.advance(MINUTE);
    expect((await crawler.details()).status).toBe('paused');
  });
  await eventually(() => {
    clock.advance(MINUTE);
    const failures = app.log.filter((line) => line.includes('could not be mailed'));
    expect(failures.length).toBeGreaterThan(1);
  });
  await app.stop();
  await using mail = await startMailServer(Number(new URL(gone.url).port));
  await using again = await startApp({ clock, env, dataDir: app.dataDir });
  await eventually(() => {
    clock.advance(10 * MINUTE);
    expect(mail.mails).toHaveLength(1);
  });
  expect(mail.mails[0]).toContain('watched');
  const { length } = receiver.probes;
  await eventually(() => {
    clock.advance(MINUTE);
    expect(receiver.probes.length).toBeGreaterThan(length + 2);
  });
  expect(mail.mails).toHaveLength(1);
  expect(again.log.filter((line) => line.includes('a notice was mailed'))).toHaveLength(1);
});
