import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/receiver.ts';
import { startSite } from '../support/site.ts';
import { sumDays } from '../support/sum-days.ts';
import { createTestClock } from '../support/test-clock.ts';

const MINUTE = 60_000;
const env = { WEBHOOK_RETRY_SCHEDULE: '1m,10m' };

test.for([
  ['an error', { status: 500 }, 500],
  ['a redirect', { redirect: '/elsewhere' }, 302],
  ['a success that is no acknowledgement', { status: 202 }, 202],
  ['no answer in time', { hang: true }, 0],
  ['a broken connection', { reset: true }, 0],
] as const)('after %s the page is kept and delivered again', async ([, answer, status]) => {
  const clock = createTestClock();
  await using site = await startSite();
  await using receiver = await startReceiver({ answer });
  await using app = await startApp({ clock, env });
  const crawler = await createCrawler(app, 'again', { callback_url: receiver.url });
  const rid = await crawler.push(`${site.url}/page/1`);
  const first = await eventually(async () => {
    const { json } = await app.rest('GET', `${crawler.path}/deliveries/${rid}`);
    expect(json.attempts).toHaveLength(1);
    return json;
  });
  expect(first).toMatchObject({
    state: 'pending',
    cb_status: 200,
    attempts: [{ attempt: 1, status }],
  });
  expect(first.attempts[0].error).not.toBe('');
  expect((await crawler.find(rid)).json.status).toBe('NOT_QUEUED');
  expect((await crawler.details()).activity.deliveries_pending).toBe(1);

  receiver.answer({ status: 204 });
  clock.advance(2 * MINUTE);
  const second = await eventually(async () => {
    const { json } = await app.rest('GET', `${crawler.path}/deliveries/${rid}`);
    expect(json.state).toBe('delivered');
    return json;
  });
  expect(second.attempts[1]).toMatchObject({ attempt: 2, status: 204, error: '' });
  expect(site.hits('/page/1')).toBe(1);
  expect(receiver.deliveries.at(-1)?.text).toContain('Page 1');
  const stats = await app.rest('GET', `/crawler/${NORMAL}/stats`);
  // The crawl and one delivery retry.
  const sums = sumDays(stats.json.history);
  expect(sums).toMatchObject({ billed: 2, deliveries: 1, delivery_failures: 1 });
});

test('a delivery is due across a restart, given up after its schedule, and replayed by rid', async () => {
  const clock = createTestClock();
  await using site = await startSite();
  await using receiver = await startReceiver({ answer: { status: 500 } });
  await using app = await startApp({ clock, env });
  const crawler = await createCrawler(app, 'restart', { callback_url: receiver.url });
  const rid = await crawler.push(`${site.url}/page/1`);
  await eventually(() => expect(receiver.deliveries).toHaveLength(1));
  await app.stop();
  clock.advance(2 * MINUTE);
  await using again = await startApp({ clock, env, dataDir: app.dataDir });
  await eventually(async () => {
    const { json } = await again.rest('GET', `${crawler.path}/deliveries/${rid}`);
    expect(json.attempts).toHaveLength(2);
  });
  clock.advance(20 * MINUTE);
  await eventually(async () => {
    const { json } = await again.rest('GET', `${crawler.path}/deliveries/${rid}`);
    expect(json.state).toBe('failed');
    expect(json.attempts).toHaveLength(3);
  });
  receiver.answer({ status: 200 });
  const replay = await again.rest('POST', `${crawler.path}/replay`, { rid });
  expect(replay.json).toMatchObject({ replayed: 1 });
  await eventually(async () => {
    const { json } = await again.rest('GET', `${crawler.path}/deliveries/${rid}`);
    expect(json.state).toBe('delivered');
  });
  expect(site.hits('/page/1')).toBe(1);
});

test('what was delivered can be replayed by time for a day', async () => {
  const clock = createTestClock();
  await using site = await startSite();
  await using receiver = await startReceiver();
  await using app = await startApp({ clock });
  const crawler = await createCrawler(app, 'replay', { callback_url: receiver.url });
  const from = clock.now().toISOString();
  const rid = await crawler.push(`${site.url}/page/1`);
  for (const n of [2, 3]) await crawler.push(`${site.url}/page/${n}`);
  await receiver.until(3);
  await eventually(async () =>
    expect((await crawler.details()).activity.deliveries_pending).toBe(0),
  );
  clock.advance(1_000);
  const replayed = await crawler.post('replay', { from });
  expect(replayed.json).toMatchObject({ replayed: 3 });
  await eventually(async () => {
    expect(receiver.deliveries).toHaveLength(6);
    expect((await crawler.details()).activity.deliveries_pending).toBe(0);
  });
  expect((await crawler.post('replay', {})).status).toBe(422);
  clock.advance(26 * 60 * MINUTE);
  await eventually(async () => {
    expect((await app.rest('GET', `${crawler.path}/deliveries/${rid}`)).status).toBe(404);
  });
  expect((await crawler.post('replay', { from })).json).toMatchObject({ replayed: 0 });
  expect((await crawler.post('replay', { rid })).status).toBe(404);
});

test('a dead endpoint of one crawler does not hold up another', async () => {
  await using site = await startSite();
  await using dead = await startReceiver({ answer: { hang: true } });
  await using alive = await startReceiver();
  await using app = await startApp({ env });
  const stuck = await createCrawler(app, 'stuck', { callback_url: dead.url });
  const fine = await createCrawler(app, 'fine', { callback_url: alive.url });
  const items = Array.from({ length: 200 }, (_, n) => ({ url: `${site.url}/page/${n}` }));
  await stuck.post('push_batch', { items });
  await eventually(() => expect(dead.deliveries.length).toBeGreaterThan(0));
  await fine.push(`${site.url}/page/alone`);
  await alive.until(1);
  expect((await stuck.details()).activity.deliveries_pending).toBeGreaterThan(0);
});

test('signatures verify with a Standard Webhooks library, also through a rotation', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver();
  await using app = await startApp();
  const made = await app.rest('POST', `/crawler/${NORMAL}`, {
    name: 'signed',
    callback_url: receiver.url,
  });
  const { webhook_secret: first } = made.json.crawler;
  expect(first).toMatch(/^whsec_/);
  const crawler = await createCrawler(app, 'signed', { callback_url: receiver.url });
  expect(await crawler.details()).not.toHaveProperty('webhook_secret');
  const verifies = (secret: string, index: number): boolean => {
    const post = receiver.deliveries[index];
    try {
      new Webhook(secret).verify(post?.text ?? '', post?.headers ?? {}, { jsonParse: false });
      return true;
    } catch {
      // The library says by throwing that a signature does not fit.
      return false;
    }
  };
  await crawler.push(`${site.url}/page/1`);
  await receiver.until(1);
  expect(verifies(first, 0)).toBe(true);
  expect(verifies(`whsec_${Buffer.alloc(32, 7).toString('base64')}`, 0)).toBe(false);

  const rotated = await crawler.post('rotate_webhook_secret');
  const { webhook_secret: second } = rotated.json;
  await crawler.push(`${site.url}/page/2`);
  await receiver.until(2);
  expect(verifies(first, 1)).toBe(true);
  expect(verifies(second, 1)).toBe(true);
});

test('an automation platform is sent plain bodies', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver();
  await using app = await startApp({ env: { WEBHOOK_PLAIN_HOSTS: '127.0.0.1' } });
  const crawler = await createCrawler(app, 'plain', { callback_url: receiver.url });
  await crawler.push(`${site.url}/page/1`);
  const [post] = await receiver.until(1);
  expect(post?.headers).not.toHaveProperty('content-encoding');
  expect(post?.rawBody.toString()).toContain('Page 1');
});

test('callback headers that would break the delivery are refused; storage crawlers ignore them', async () => {
  await using site = await startSite();
  await using app = await startApp();
  const hook = await createCrawler(app, 'hook', { callback_url: 'https://example.com/' });
  const store = await createCrawler(app, 'store');
  await hook.post('pause');
  const refused = [
    'content-length:3',
    'rid|x',
    'a|b|c',
    'X-A:1\r\nX-B:2',
    'host:evil',
    'failure|none',
  ];
  for (const text of refused) {
    const more = `&callback_headers=${encodeURIComponent(text)}`;
    const reply = await hook.tryPush(`${site.url}/page/1`, more);
    expect([text, reply.status, reply.json.field]).toEqual([text, 422, 'callback_headers']);
    await store.push(`${site.url}/page/1`, more);
  }
});
