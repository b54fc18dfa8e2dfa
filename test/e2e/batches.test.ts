import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';
import { runCommandLine } from '../support/command-line.ts';
import { type CrawlerClient, createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startMailServer } from '../support/mail-server.ts';
import { startReceiver } from '../support/receiver.ts';
import { shareApp } from '../support/shared-app.ts';
import { startSite } from '../support/site.ts';

/** A batch, once it is in that state. */
function batchIn(app: { rest: Rest }, shop: CrawlerClient, batch: string, state: string) {
  return eventually(async () => {
    const { json } = await app.rest('GET', `${shop.path}/batches/${batch}`);
    expect(json).toMatchObject({ state });
    return json as { readonly id: string };
  });
}

type Rest = Awaited<ReturnType<typeof startApp>>['rest'];

const shared = shareApp();

test('a batch tells what became of its URLs, and its results are read alone', async () => {
  await using site = await startSite();
  const app = shared();
  const shop = await createCrawler(app, 'shop', { max_retries: 0 });
  const items = [
    ...[1, 2, 3].map((n) => ({ url: `${site.url}/page/${n}`, batch: 'monday' })),
    { url: 'http://127.0.0.1:1/', batch: 'monday' },
    { url: `${site.url}/status/500`, batch: 'monday' },
    { url: `${site.url}/page/9` },
    { url: `${site.url}/page/10`, batch: 'monday', delay: 3_600 },
    { url: `${site.url}/page/11`, batch: '-no' },
  ];
  const reply = await app.rest('POST', `${shop.path}/push_batch`, { items });
  const { results } = reply.json as { results: { rid: string; error?: { field: string } }[] };
  expect(results.map(({ error }) => error?.field)).toEqual([
    ...Array.from({ length: 7 }, () => undefined),
    'batch',
  ]);
  await eventually(async () => {
    const { json } = await app.rest('GET', `${shop.path}/batches/monday`);
    expect(json).toMatchObject({
      name: 'monday',
      state: 'open',
      accepted: 6,
      waiting: 1,
      scheduled: 1,
      completed: 3,
      failed: 2,
      percent: 83.3,
    });
    expect(json.failures).toEqual([
      { reason: expect.any(String), count: 1 },
      { reason: expect.any(String), count: 1 },
    ]);
  });
  const own = results.slice(0, 5).map(({ rid }) => rid);
  const part = await app.rest('GET', `${shop.path}/batches/monday/results`);
  expect(part.json.results.map((each: { rid: string }) => each.rid).toSorted()).toEqual(
    own.toSorted(),
  );
  expect(part.json.results[0]).toMatchObject({ batch: 'monday' });
  const behind = await app.rest(
    'GET',
    `${shop.path}/batches/monday/results?resume_token=${part.json.resume_token}`,
  );
  expect(behind.json).toMatchObject({ results: [], is_end: true });
  const streamed = await app.rest(
    'GET',
    `/storage/stream?token=${NORMAL}&crawler=shop&batch=monday`,
  );
  expect(streamed.text.trim().split('\n')).toHaveLength(6);
  const acknowledged = await app.rest('POST', `/storage/acknowledge?token=${NORMAL}`, {
    crawler: 'shop',
    batch: 'monday',
    resume_token: part.json.resume_token,
  });
  expect(acknowledged.json).toEqual({ removed: 5 });
  const cancelled = await app.rest('POST', `${shop.path}/batches/monday/cancel`);
  expect(cancelled.json).toEqual({ removed: 1, has_more: false });
  await batchIn(app, shop, 'monday', 'completed');
  const late = await shop.tryPush(`${site.url}/page/12`, '&batch=monday');
  expect([late.status, late.json.field, late.json.code]).toEqual([422, 'batch', 'batch_closed']);
  const listed = await app.rest('GET', `${shop.path}/batches`);
  expect(listed.json).toMatchObject({ batches: [{ name: 'monday', removed: 1 }] });
  expect((await app.rest('GET', `${shop.path}/batches/no`)).status).toBe(404);
});

test('a closed batch of a webhook crawler ends with one signed event, sent until it is taken', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver();
  await using app = await startApp({ env: { WEBHOOK_RETRY_SCHEDULE: '1s,1s,1s,1s' } });
  const made = await app.rest('POST', `/crawler/${NORMAL}`, {
    name: 'hook',
    callback_url: receiver.url,
  });
  const { webhook_secret: secret } = made.json.crawler as { webhook_secret: string };
  const hook = await createCrawler(app, 'hook', { callback_url: receiver.url });
  receiver.answer((post, nth) =>
    post.headers['webhook-event'] !== undefined && nth < 5 ? { status: 500 } : {},
  );
  const rids = [
    await hook.push(`${site.url}/page/1`, '&batch=list'),
    await hook.push(`${site.url}/page/2`, '&batch=list'),
  ];
  await receiver.until(2);
  expect(receiver.byRid(rids[0] ?? '')[0]?.headers).toMatchObject({ 'webhook-batch': 'list' });
  expect(receiver.deliveries).toHaveLength(2);
  const closed = await app.rest('POST', `${hook.path}/batches/list/close`);
  expect(closed.json).toMatchObject({ state: 'completed', accepted: 2, completed: 2 });
  const { id } = closed.json as { id: string };
  await eventually(async () => {
    const { json } = await app.rest('GET', `${hook.path}/deliveries/${id}`);
    expect(json).toMatchObject({ state: 'delivered', event: 'batch.completed', batch: 'list' });
  });
  const posts = receiver.byRid(id);
  expect(posts.length).toBeGreaterThan(1);
  expect(new Set(posts.map(({ headers }) => headers['webhook-id']))).toEqual(new Set([id]));
  const [post] = posts;
  expect(post?.headers).toMatchObject({ 'webhook-event': 'batch.completed', cb_status: '200' });
  expect(post?.json).toMatchObject({
    type: 'batch.completed',
    data: { crawler: 'hook', batch: 'list', id, accepted: 2, completed: 2, failed: 0 },
  });
  const webhook = new Webhook(secret);
  expect(() => webhook.verify(post?.text ?? '', { ...post?.headers })).not.toThrow();
  const { activity } = await hook.details();
  expect(activity).toMatchObject({ completed: 2, deliveries_pending: 0 });
  // Only the event was sent again.
  expect(receiver.rids().size).toBe(3);

  // A replay of a range has the event, too, by the same identifiers.
  const before = posts.length;
  const range = {
    from: new Date(0).toISOString(),
    to: new Date(Date.now() + 60_000).toISOString(),
  };
  expect((await hook.post('replay', range)).json).toMatchObject({ replayed: 3 });
  await eventually(() => expect(receiver.byRid(id)).toHaveLength(before + 1));
  expect(receiver.byRid(id).at(-1)?.headers).toMatchObject({
    'webhook-id': id,
    'webhook-event': 'batch.completed',
  });
});

test('the command line pushes a batch, closes it and follows it to its end', async () => {
  await using site = await startSite();
  const app = shared();
  await createCrawler(app, 'shop');
  const env = { HOME: '/nonexistent', QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
  const run = (...args: string[]) => runCommandLine(['--json', ...args], { env });
  const urls = [1, 2, 3].map((n) => `${site.url}/page/${n}`);
  const pushed = await run('push', 'shop', ...urls, '--batch', 'monday', '--close-batch');
  expect([pushed.code, pushed.stderr]).toEqual([0, '']);
  const watched = await run('batches', 'watch', 'shop', 'monday');
  expect(watched.json.at(-1)).toMatchObject({ state: 'completed', completed: 3, percent: 100 });
  expect((await run('batches', 'list', 'shop')).json).toMatchObject([{ name: 'monday' }]);
  const shown = await runCommandLine(['batches', 'show', 'shop', 'monday'], { env });
  expect(shown.stdout).toContain('monday completed 100 %: 3 accepted');
  const results = await run('results', '--crawler', 'shop', '--batch', 'monday');
  expect(results.json).toHaveLength(3);
  const refused = await run('batches', 'cancel', 'shop', 'monday');
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('--yes')]);
  const cancelled = await run('batches', 'cancel', 'shop', 'monday', '--yes');
  expect(cancelled.json).toEqual([{ batch: 'monday', removed: 0 }]);
  const missing = await run('push', 'shop', urls[0] ?? '', '--close-batch');
  expect(missing.stderr).toContain('--close-batch needs --batch');
});

test('the account gets one mail at the end of a batch, if the crawler asks for it', async () => {
  await using site = await startSite();
  await using mail = await startMailServer();
  const env = { SMTP_URL: mail.url, ACCOUNT_EMAIL: 'owner@example.com' };
  await using app = await startApp({ env });
  const silent = await createCrawler(app, 'silent');
  const asking = await createCrawler(app, 'asking', { notify_batches: true });
  for (const crawler of [silent, asking]) {
    const items = [1, 2].map((n) => ({ url: `${site.url}/page/${n}`, batch: 'monday' }));
    await crawler.post('push_batch', { items });
    await crawler.post('batches/monday/close');
    await eventually(async () => {
      const { json } = await app.rest('GET', `${crawler.path}/batches/monday`);
      expect(json.completed_at).toBeDefined();
    });
  }
  await eventually(() => expect(mail.mails).toHaveLength(1));
  expect(mail.mails[0]).toContain('owner@example.com');
  expect(mail.mails[0]).toContain('Batch monday of crawler asking is complete');
  expect(mail.mails[0]).toContain('Completed: 2');
});
