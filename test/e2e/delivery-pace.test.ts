import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { byLength } from '../support/length.ts';
import { type AnswerRule, startReceiver } from '../support/receiver.ts';
import { shareApp } from '../support/shared-app.ts';
import { startSite } from '../support/site.ts';
import { createTestClock } from '../support/test-clock.ts';

// All times are five times those of the defaults (200 ms to acknowledge; receivers of 5, 20 and 100
// ms). What is counted is what a receiver sees, and a busy machine that stands still for 200 ms
// would look like an overloaded one.
const SCALE = 5;
const env = {
  WEBHOOK_ACK_TIMEOUT_MS: String(200 * SCALE),
  WEBHOOK_RETRY_SCHEDULE: '1s,1s,1s,1s,1s,1s,1s,1s',
};

// For the tests on the time of the machine.
const started = shareApp({ env });

/** Answers one post after the other, each after `ms` times {@link SCALE}, those whose sender has gone included. */
function oneAtATime(ms: number): AnswerRule {
  let last = Promise.resolve();
  return async () => {
    last = last.then(() => sleep(ms * SCALE));
    await last;
    return {};
  };
}

async function pushMany(app: TestApp, path: string, siteUrl: string, count: number): Promise<void> {
  const items = Array.from({ length: count }, (_, n) => ({ url: `${siteUrl}/page/${n}` }));
  const reply = await app.rest('POST', `${path}/push_batch`, { items });
  expect(reply.status, reply.text).toBe(200);
}

const RECEIVERS: [ms: number, results: number][] = [
  [20, 60],
  [5, 120],
  [100, 20],
];

test.for(byLength(RECEIVERS.slice(0, 1), RECEIVERS))(
  'a receiver that takes one post at a time, in %i ms each, gets few of them twice',

  async ([ms, results]) => {
    await using site = await startSite();
    await using receiver = await startReceiver({ answer: oneAtATime(ms) });
    const app = started();
    const crawler = await createCrawler(app, 'paced', { callback_url: receiver.url });
    await pushMany(app, crawler.path, site.url, results);
    await receiver.until(results);
    expect(receiver.deliveries.length).toBeLessThanOrEqual(results * 1.15);
  },
);

test('a replay comes out at the same pace', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver({ answer: oneAtATime(10) });
  const app = started();
  const crawler = await createCrawler(app, 'replayed', { callback_url: receiver.url });
  await pushMany(app, crawler.path, site.url, 100);
  await receiver.until(100);
  await eventually(async () =>
    expect((await crawler.details()).activity.deliveries_pending).toBe(0),
  );
  const before = receiver.deliveries.length;
  const from = new Date(Date.now() - 3_600_000).toISOString();
  expect((await crawler.post('replay', { from })).json).toMatchObject({ replayed: 100 });
  await eventually(async () =>
    expect((await crawler.details()).activity.deliveries_pending).toBe(0),
  );
  expect(receiver.deliveries.length - before).toBeGreaterThanOrEqual(100);
  expect(receiver.deliveries.length - before).toBeLessThanOrEqual(115);
});

test('so do the notices of URLs that waited too long', async () => {
  const clock = createTestClock();
  await using site = await startSite();
  await using receiver = await startReceiver({ answer: oneAtATime(10) });
  await using app = await startApp({ env, clock });
  const crawler = await createCrawler(app, 'late', { callback_url: receiver.url });
  await crawler.post('pause');
  const items = Array.from({ length: 150 }, (_, n) => ({
    url: `${site.url}/page/${n}`,
    queue_timeout: 1,
  }));
  expect((await crawler.post('push_batch', { items })).status).toBe(200);
  clock.advance(90_000);
  await receiver.until(150);
  for (const post of receiver.deliveries) {
    const failure = 'queue_timeout';
    expect(post.headers).toMatchObject({ cb_status: '699', original_status: '504', failure });
  }
  expect(receiver.deliveries.length).toBeLessThanOrEqual(150 * 1.15);
});

test('crawlers that post to the same URL share its pace and take turns', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver({ answer: oneAtATime(20) });
  const app = started();
  const large = await createCrawler(app, 'large', { callback_url: `${receiver.url}?of=large` });
  const small = await createCrawler(app, 'small', { callback_url: `${receiver.url}?of=small` });
  await pushMany(app, large.path, site.url, 90);
  await eventually(() => expect(receiver.deliveries.length).toBeGreaterThan(10));
  await pushMany(app, small.path, site.url, 10);
  const sent = (of: string): number =>
    receiver.deliveries.filter((post) => post.path.endsWith(`of=${of}`)).length;
  await eventually(() => expect(sent('small')).toBeGreaterThanOrEqual(10));
  // In turns ten of one go with about ten of the other.
  expect(sent('large')).toBeLessThan(60);
  await receiver.until(100);
  expect(receiver.deliveries.length).toBeLessThanOrEqual(115);
});

test('Retry-After of a receiver is waited for by all of its deliveries', async () => {
  const clock = createTestClock();
  await using site = await startSite();
  await using receiver = await startReceiver({
    answer: { status: 503, headers: { 'retry-after': '600' } },
  });
  await using app = await startApp({ env, clock });
  const crawler = await createCrawler(app, 'later', { callback_url: receiver.url });
  await pushMany(app, crawler.path, site.url, 30);
  await eventually(async () =>
    expect((await crawler.details()).activity).toMatchObject({
      completed: 30,
      deliveries_pending: 30,
    }),
  );
  await receiver.until(1);
  const [post] = receiver.deliveries;
  await eventually(async () => {
    const { json } = await app.rest('GET', `${crawler.path}/deliveries/${post?.rid ?? ''}`);
    expect(Date.parse(json.next_attempt_at) - clock.now().getTime()).toBeGreaterThan(500_000);
  });
  expect(receiver.deliveries).toHaveLength(1);
  receiver.answer({ status: 200 });
  clock.advance(11 * 60_000);
  await receiver.until(30);
  // The one that was refused may come again after all others.
  await eventually(() => expect(receiver.duplicates()).toBe(1));
});

test('delivery_concurrency bounds the posts in flight, and can be changed and lifted', async () => {
  await using site = await startSite();
  let inFlight = 0;
  let most = 0;
  await using receiver = await startReceiver({
    answer: async () => {
      inFlight += 1;
      most = Math.max(most, inFlight);
      await sleep(10);
      inFlight -= 1;
      return {};
    },
  });
  const app = started();
  const crawler = await createCrawler(app, 'bounded', {
    callback_url: receiver.url,
    delivery_concurrency: 2,
  });
  expect((await crawler.details()).delivery_concurrency).toBe(2);
  await pushMany(app, crawler.path, site.url, 100);
  await receiver.until(100);
  expect(most).toBe(2);

  const changed = await app.rest('PUT', crawler.path, { delivery_concurrency: 0 });
  expect(changed.json.delivery_concurrency).toBe(0);
  await pushMany(app, crawler.path, `${site.url}/.`, 100);
  await receiver.until(200);
  expect(most).toBeGreaterThan(2);
  const refused = await app.rest('PUT', crawler.path, { delivery_concurrency: 1_001 });
  expect([refused.status, refused.json.field]).toEqual([422, 'delivery_concurrency']);
});
