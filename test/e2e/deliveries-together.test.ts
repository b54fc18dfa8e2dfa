import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { type ReceivedPost, startReceiver } from '../support/receiver.ts';
import { shareApp } from '../support/shared-app.ts';
import { startSite } from '../support/site.ts';
import { createTestClock } from '../support/test-clock.ts';

const MINUTE = 60_000;

/** A result as a line of a POST has it. */
interface Line {
  readonly rid: string;
  readonly body: string;
  readonly [field: string]: unknown;
}

function linesOf({ text }: ReceivedPost): Line[] {
  expect(text.endsWith('\n')).toBe(true);
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
}

const shared = shareApp();

test('results are delivered together, each with its own fields, in signed POSTs', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver();
  const app = shared();
  const made = await app.rest('POST', `/crawler/${NORMAL}`, {
    name: 'together',
    callback_url: receiver.url,
    deliver_batch: { max_results: 4, max_ms: 10_000 },
  });
  const path = `/crawler/${NORMAL}/together`;
  const { json: before } = await app.rest('GET', path);
  expect(before.deliver_batch).toEqual({ max_results: 4, max_ms: 10_000 });
  const items = Array.from({ length: 20 }, (_, n) => ({
    url: `${site.url}/page/${n}`,
    metadata: `{"n":${n}}`,
    callback_headers: `order|${n}`,
    // One of each form.
    parameters: [{}, { format: 'json' }, { format: 'json', pretty: true }, { format: 'md' }][n % 4],
  }));
  const pushed = await app.rest('POST', `${path}/push_batch`, { items });
  const rids = pushed.json.results.map(({ rid }: { rid: string }) => rid) as string[];
  await eventually(() => expect(receiver.deliveries.flatMap(linesOf)).toHaveLength(20));
  const secret = made.json.crawler.webhook_secret as string;
  for (const post of receiver.deliveries) {
    const lines = linesOf(post);
    expect(lines.length).toBeLessThanOrEqual(4);
    expect(post.headers).toMatchObject({
      'content-type': 'application/x-ndjson',
      'content-encoding': 'gzip',
      'webhook-results': String(lines.length),
    });
    const verify = () => new Webhook(secret).verify(post.text, post.headers, { jsonParse: false });
    expect(verify).not.toThrow();
  }
  const lines = receiver.deliveries.flatMap(linesOf);
  for (const [n, rid] of rids.entries()) {
    expect(lines.find((line) => line.rid === rid)).toMatchObject({
      cb_status: 200,
      pushed_url: `${site.url}/page/${n}`,
      metadata: `{"n":${n}}`,
      callback_headers: { order: String(n) },
      body: expect.stringContaining(`Page ${n}`),
    });
  }
  expect(receiver.deliveries.length).toBeLessThan(20);
  await eventually(async () => {
    const { json } = await app.rest('GET', path);
    expect(json.activity).toMatchObject({ completed: 20, deliveries_pending: 0 });
  });
});

test('a result waits for others no longer than it may, and is retried and replayed by itself', async () => {
  const clock = createTestClock();
  await using site = await startSite();
  await using receiver = await startReceiver({ answer: { status: 500 } });
  await using app = await startApp({ clock, env: { WEBHOOK_RETRY_SCHEDULE: '1m,10m' } });
  const crawler = await createCrawler(app, 'alone', {
    callback_url: receiver.url,
    deliver_batch: { max_results: 100, max_ms: 50 },
  });
  const rids = await Promise.all([1, 2, 3].map((n) => crawler.push(`${site.url}/page/${n}`)));
  const attemptsOf = async (rid: string) =>
    (await app.rest('GET', `${crawler.path}/deliveries/${rid}`)).json;
  for (const rid of rids) {
    await eventually(async () =>
      expect(await attemptsOf(rid)).toMatchObject({
        state: 'pending',
        attempts: [{ attempt: 1, status: 500 }],
      }),
    );
  }
  receiver.answer({ status: 204 });
  clock.advance(2 * MINUTE);
  for (const rid of rids) {
    await eventually(async () =>
      expect(await attemptsOf(rid)).toMatchObject({
        state: 'delivered',
        attempts: [{ status: 500 }, { attempt: 2, status: 204 }],
      }),
    );
  }
  const before = receiver.deliveries.length;
  const replay = await crawler.post('replay', { rid: rids[1] });
  expect(replay.json).toMatchObject({ replayed: 1 });
  await eventually(() => expect(receiver.deliveries).toHaveLength(before + 1));
  expect(receiver.deliveries.slice(before).flatMap(linesOf)).toMatchObject([{ rid: rids[1] }]);
});

test('deliveries of the store fill a POST before its time', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver();
  const app = shared();
  const crawler = await createCrawler(app, 'stored', {
    callback_url: receiver.url,
    deliver_batch: { max_results: 100, max_ms: 10_000 },
  });
  const items = Array.from({ length: 200 }, (_, n) => ({ url: `${site.url}/page/${n}` }));
  const { json } = await crawler.post('push_batch', { items });
  const rids = json.results.map(({ rid }: { rid: string }) => rid) as string[];
  await eventually(() => expect(receiver.deliveries.flatMap(linesOf)).toHaveLength(200));
  await eventually(async () =>
    expect((await crawler.details()).activity.deliveries_pending).toBe(0),
  );
  const before = receiver.deliveries.length;
  const replay = await crawler.post('replay', { rids });
  expect(replay.json).toMatchObject({ replayed: 200 });
  await eventually(() =>
    expect(receiver.deliveries.slice(before).flatMap(linesOf)).toHaveLength(200),
  );
  const sizes = receiver.deliveries.slice(before).map((post) => linesOf(post).length);
  expect(sizes).toEqual([100, 100]);
});

test('an endpoint that answers 413 gets fewer results a POST, and all of them', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver({
    answer: (post) => ({ status: linesOf(post).length > 2 ? 413 : 200 }),
  });
  const app = shared();
  const crawler = await createCrawler(app, 'short', {
    callback_url: receiver.url,
    deliver_batch: { max_results: 8, max_ms: 2_000 },
  });
  const items = Array.from({ length: 16 }, (_, n) => ({ url: `${site.url}/page/${n}` }));
  const pushed = await crawler.post('push_batch', { items });
  const rids = new Set<string>(pushed.json.results.map(({ rid }: { rid: string }) => rid));
  const taken = () => receiver.deliveries.map(linesOf).filter(({ length }) => length <= 2);
  await eventually(() =>
    expect(
      new Set(
        taken()
          .flat()
          .map(({ rid }) => rid),
      ),
    ).toEqual(rids),
  );
  await eventually(async () =>
    expect((await crawler.details()).activity.deliveries_pending).toBe(0),
  );
  for (const rid of rids) {
    const { json } = await app.rest('GET', `${crawler.path}/deliveries/${rid}`);
    expect(json).toMatchObject({ state: 'delivered', attempts: [{ attempt: 1, status: 200 }] });
  }
});

test('the setting is checked, switched off by zero results, and unknown to storage', async () => {
  const app = shared();
  const wrong = await app.rest('POST', `/crawler/${NORMAL}`, {
    name: 'wrong',
    callback_url: 'http://127.0.0.1:18009/',
    deliver_batch: { max_results: 101 },
  });
  expect(wrong.status).toBe(422);
  expect(wrong.text).toContain('deliver_batch.max_results');
  const crawler = await createCrawler(app, 'off', {
    callback_url: 'http://127.0.0.1:18009/',
    deliver_batch: { max_results: 10 },
  });
  expect((await crawler.details()).deliver_batch).toEqual({ max_results: 10, max_ms: 0 });
  await app.rest('PUT', crawler.path, { deliver_batch: { max_results: 0 } });
  expect((await crawler.details()).deliver_batch).toBeUndefined();
  const stored = await createCrawler(app, 'stored');
  expect((await stored.details()).deliver_batch).toBeUndefined();
});
