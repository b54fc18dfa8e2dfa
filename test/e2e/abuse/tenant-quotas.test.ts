import { Code, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { describe, expect, test } from 'vitest';
import { AccountService } from '../../../gen/queuedcrawler/v1/account_service_pb.ts';
import { StatsService } from '../../../gen/queuedcrawler/v1/stats_service_pb.ts';
import {
  ADMIN,
  JAVASCRIPT,
  NORMAL,
  type RestReply,
  startApp,
  type TestApp,
} from '../../support/app.ts';
import { createCrawler } from '../../support/crawler-client.ts';
import { eventually } from '../../support/eventually.ts';
import { createGrpcClient } from '../../support/grpc-client.ts';
import { startReceiver } from '../../support/receiver.ts';
import { shareApp } from '../../support/shared-app.ts';
import { startSite } from '../../support/site.ts';

const authorization = `Bearer ${ADMIN}`;

function admin(app: TestApp, method: string, path: string, body?: object): Promise<RestReply> {
  return app.rest(method, `/accounts${path}`, body, { authorization });
}

/** Gives the account of the test tokens limits of its own. */
async function limit(app: TestApp, limits: Record<string, number>): Promise<void> {
  const reply = await admin(app, 'PUT', '/default', { limits });
  expect(reply.status, reply.text).toBe(200);
}

// oxlint-disable-next-line typescript/no-explicit-any -- tests read replies of many shapes
async function quotas(app: TestApp): Promise<any> {
  return (await app.rest('GET', `/crawler/${NORMAL}/stats`)).json.quotas;
}

const create = (app: TestApp, name: string, more: object = {}): Promise<RestReply> =>
  app.rest('POST', `/crawler/${NORMAL}`, { name, ...more });

/** A refusal names the quota, its limit and what is used. */
function expectRefused(
  reply: RestReply,
  status: number,
  quota: string,
  limits: { limit: number; used?: number },
): void {
  expect([reply.status, reply.json.code]).toEqual([status, `${quota}_quota_exceeded`]);
  expect(reply.json.error).toContain(quota);
  expect(reply.json.error).toContain(String(limits.limit));
  if (limits.used !== undefined) expect(reply.json.error).toContain(String(limits.used));
  if (status === 429) expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
}

const shared = shareApp();

describe('the limits of an account', () => {
  test('are the settings’, or its own, and shown with their use', async () => {
    await using app = await startApp({ env: { ACCOUNT_CRAWLERS: '7' } });
    await create(app, 'one', { concurrency: 30 });
    const stats = await quotas(app);
    expect(stats).toMatchObject({
      crawlers: { limit: 7, used: 1 },
      concurrency: { limit: 200_000, used: 30 },
      storage_bytes: { limit: 1_099_511_627_776, used: 0 },
      queue_bytes: { limit: 10_737_418_240, used: 0 },
      replays_per_hour: { limit: 100_000, used: 0 },
      probes_per_minute: { limit: 2_400 },
    });
    const own = { crawlers: 3, storage_bytes: 5_000_000_000_000 };
    const changed = await admin(app, 'PUT', '/default', { limits: own });
    expect(changed.json.limits).toEqual(own);
    expect(changed.json.quotas).toMatchObject({
      crawlers: { limit: 3, used: 1 },
      storage_bytes: { limit: 5_000_000_000_000 },
    });
    // Other changes leave them; an empty set gives the settings' back.
    await admin(app, 'PUT', '/default', { email: 'owner@example.com' });
    expect((await admin(app, 'GET', '/default')).json.limits).toEqual(own);
    await limit(app, {});
    expect((await admin(app, 'GET', '/default')).json.quotas.crawlers.limit).toBe(7);

    const made = await admin(app, 'POST', '', { name: 'guest', limits: { concurrency: 5 } });
    expect(made.json.account).toMatchObject({ limits: { concurrency: 5 } });
    const token = made.json.normal_token as string;
    using client = createGrpcClient(`127.0.0.1:${app.port}`);
    const answer = await client.call(StatsService.method.getStats, {}, token);
    expect(answer.quotas?.concurrency).toMatchObject({ limit: 5n, used: 0n });
    const wide = await app.rest('POST', `/crawler/${token}`, { name: 'wide', concurrency: 6 });
    expectRefused(wide, 422, 'concurrency', { limit: 5, used: 0 });
    const negative = await admin(app, 'PUT', '/guest', { limits: { crawlers: -1 } });
    expect([negative.status, negative.json.field]).toEqual([422, 'limits.crawlers']);
  });

  test('bound crawlers and their concurrency, whatever is tried at once', async () => {
    const app = shared();
    await limit(app, { crawlers: 5, concurrency: 100 });
    const replies = await Promise.all(
      Array.from({ length: 40 }, (_, n) => create(app, `c${n}`, { concurrency: 10 })),
    );
    expect(replies.filter((reply) => reply.status === 200)).toHaveLength(5);
    const refused = replies.find((reply) => reply.status !== 200) as RestReply;
    expectRefused(refused, 422, 'crawlers', { limit: 5, used: 5 });
    const { json } = await app.rest('GET', `/crawler/${NORMAL}`);
    const name = json.crawlers[0].name as string;
    const put = (concurrency: number) =>
      app.rest('PUT', `/crawler/${NORMAL}/${name}`, { concurrency });
    expectRefused(await put(61), 422, 'concurrency', { limit: 100, used: 50 });
    expect((await put(60)).status).toBe(200);
    expect((await quotas(app)).concurrency.used).toBe(100);
    // What is there is answered, and what goes makes room.
    expect((await create(app, name, { concurrency: 60 })).json.created).toBe(false);
    await app.rest('POST', `/crawler/${NORMAL}/${name}/delete`);
    expect((await create(app, 'late', { concurrency: 60 })).status).toBe(200);
    // async=true needs no crawler of the client's.
    await using site = await startSite();
    const async = await app.rest('GET', `/?token=${NORMAL}&async=true&url=${site.url}`);
    expect(async.status).toBe(200);
    await eventually(async () => {
      const found = await app.rest('GET', `/storage?token=${NORMAL}&rid=${async.json.rid}`);
      expect(found.status).toBe(200);
    });
  });
});

test('queued bytes are bounded; what is over is refused, and accepted when there is room', async () => {
  const app = shared();
  const crawler = await createCrawler(app, 'bodies');
  await crawler.post('pause');
  await limit(app, { queue_bytes: 10_000 });
  const push = () =>
    app.rest(
      'POST',
      `/?token=${NORMAL}&crawler=bodies&callback=true&url=http://127.0.0.1:1/`,
      'x'.repeat(3_000),
      { 'content-type': 'text/plain' },
    );
  for (let n = 0; n < 3; n += 1) expect((await push()).status).toBe(200);
  const refused = await push();
  expectRefused(refused, 429, 'queue_bytes', { limit: 10_000 });
  const used = (await quotas(app)).queue_bytes.used as number;
  expect(used).toBeGreaterThan(9_000);
  expect(used).toBeLessThanOrEqual(10_000);
  // In a batch, what fits is taken.
  const url = `http://127.0.0.1:1/${'y'.repeat(400)}`;
  const batch = await crawler.post('push_batch', {
    items: Array.from({ length: 5 }, () => ({ url })),
  });
  const codes = batch.json.results.map((each: { error?: { code: string } }) => each.error?.code);
  expect(codes[0]).toBeUndefined();
  expect(codes.at(-1)).toBe('queue_bytes_quota_exceeded');
  await crawler.post('purge');
  await eventually(async () => expect((await push()).status).toBe(200));
});

test('a full storage pauses crawls and refuses pushes and copies; no result is lost, and all continue with new room', async () => {
  await using site = await startSite();
  const app = shared();
  const crawler = await createCrawler(app, 'keeper', { concurrency: 1 });
  await crawler.stored(await crawler.push(`${site.url}/page/0`));
  const size = (await quotas(app)).storage_bytes.used as number;
  expect(size).toBeGreaterThan(0);
  await crawler.post('pause');
  const rids: string[] = [];
  for (let n = 1; n <= 10; n += 1) rids.push(await crawler.push(`${site.url}/page/${n}`));
  await limit(app, { storage_bytes: size * 2 + 10 });
  await crawler.post('unpause');
  const full = () =>
    app.rest('GET', `/?token=${NORMAL}&crawler=keeper&callback=true&url=${site.url}`);
  await eventually(async () => {
    expectRefused(await full(), 429, 'storage_bytes', { limit: size * 2 + 10 });
  });
  const copy = await app.rest('GET', `/?token=${NORMAL}&store=true&url=${site.url}/page/99`);
  expectRefused(copy, 422, 'storage_bytes', { limit: size * 2 + 10 });
  const picture = `/?token=${JAVASCRIPT}&screenshot=true&url=${site.url}/page/99`;
  expectRefused(await app.rest('GET', picture), 422, 'storage_bytes', { limit: size * 2 + 10 });
  // What is crawled within a second of the limit is stored all the same; the rest waits. No result is lost.
  await eventually(async () => {
    const { activity } = await crawler.details();
    expect([activity.running, activity.failed]).toEqual([0, 0]);
    const { json } = await app.rest('GET', `/storage/total_count?token=${NORMAL}`);
    expect(activity.waiting + json.totalCount).toBe(activity.pushed);
  });
  await limit(app, {});
  for (const rid of rids) expect((await crawler.stored(rid)).json.original_status).toBe(200);

  // Deleting makes room as well.
  await limit(app, { storage_bytes: size });
  await eventually(async () => expect((await full()).status).toBe(429));
  await crawler.post('purge');
  await eventually(async () => {
    const { json: stored } = await app.rest('GET', `/storage/rids?token=${NORMAL}&limit=100`);
    if (stored.length > 0) {
      await app.rest('POST', `/storage/bulk_delete?token=${NORMAL}`, { rids: stored });
    }
    expect((await full()).status).toBe(200);
  });
});

test('a full storage holds back crawls that are queued already', async () => {
  await using site = await startSite();
  const app = shared();
  const crawler = await createCrawler(app, 'keeper');
  await crawler.stored(await crawler.push(`${site.url}/page/0`));
  await limit(app, { storage_bytes: 1 });
  await crawler.post('pause');
  await limit(app, {});
  const rid = await crawler.push(`${site.url}/page/1`);
  await limit(app, { storage_bytes: 1 });
  await eventually(async () => {
    const reply = await crawler.tryPush(`${site.url}/page/2`);
    expect(reply.status).toBe(429);
  });
  const token = (await admin(app, 'POST', '', { name: 'guest' })).json.normal_token as string;
  const before = site.hits();
  await crawler.post('unpause');
  // The dispatcher takes what another account pushes later, again and again.
  for (let n = 0; n < 5; n += 1) {
    const url = encodeURIComponent(`${site.url}/page/1?other=${n}`);
    const { rid } = (await app.rest('GET', `/?token=${token}&async=true&url=${url}`)).json;
    await eventually(async () => {
      const reply = await app.rest('GET', `/storage?token=${token}&rid=${rid}`);
      expect(reply.status).toBe(200);
    });
  }
  expect(site.hits()).toBe(before + 5);
  expect((await crawler.find(rid)).json.status).toBe('QUEUED');
  await limit(app, {});
  await crawler.stored(rid);
});

test('calls other than pushes have a rate; pushes are not counted, nor is another account', async () => {
  await using app = await startApp();
  await createCrawler(app, 'own');
  const guest = (await admin(app, 'POST', '', { name: 'guest' })).json.normal_token as string;
  await limit(app, { requests_per_second: 2 });
  const details = (token = NORMAL) => app.rest('GET', `/crawler/${token}`);
  const replies = await Promise.all(Array.from({ length: 60 }, () => details()));
  // Ten seconds' worth at once.
  expect(replies.filter((reply) => reply.status === 200).length).toBeGreaterThanOrEqual(20);
  const refused = replies.find((reply) => reply.status !== 200) as RestReply;
  expectRefused(refused, 429, 'requests_per_second', { limit: 2 });
  const others = [
    `/crawler/${NORMAL}/stats`,
    `/storage/total_count?token=${NORMAL}`,
    `/async/${NORMAL}`,
    `/?token=${NORMAL}&url=http://127.0.0.1:1/`,
  ];
  for (const path of others) {
    const burst = await Promise.all(Array.from({ length: 15 }, () => app.rest('GET', path)));
    const codes = new Set(burst.map((reply) => reply.json?.code as string | undefined));
    expect([path, codes.has('requests_per_second_quota_exceeded')]).toEqual([path, true]);
  }
  const push = () =>
    app.rest('GET', `/?token=${NORMAL}&crawler=own&callback=true&url=http://127.0.0.1:1/`);
  const pushes = await Promise.all(Array.from({ length: 40 }, push));
  expect(new Set(pushes.map((reply) => reply.status))).toEqual(new Set([200]));
  expect((await details(guest)).status).toBe(200);
  await eventually(async () => expect((await details()).status).toBe(200));
});

test('replays are counted by delivery; more than are left are refused as a whole', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver();
  const app = shared();
  const crawler = await createCrawler(app, 'hooks', { callback_url: receiver.url });
  const rids: string[] = [];
  for (let n = 0; n < 6; n += 1) rids.push(await crawler.push(`${site.url}/page/${n}`));
  await receiver.until(6);
  await eventually(async () => {
    expect((await crawler.details()).activity.deliveries_pending).toBe(0);
  });
  await limit(app, { replays_per_hour: 10 });
  const all = { from: '2020-01-01T00:00:00Z' };
  const first = await crawler.post('replay', all);
  expect(first.json).toMatchObject({ replayed: 6 });
  await eventually(async () => {
    expect(receiver.deliveries).toHaveLength(12);
    expect((await crawler.details()).activity.deliveries_pending).toBe(0);
  });
  const second = await crawler.post('replay', all);
  expectRefused(second, 429, 'replays_per_hour', { limit: 10, used: 6 });
  for (const rid of rids.slice(0, 4)) {
    expect((await crawler.post('replay', { rid })).json).toMatchObject({ replayed: 1 });
  }
  const more = await crawler.post('replay', { rid: rids[4] as string });
  expectRefused(more, 429, 'replays_per_hour', { limit: 10, used: 10 });
  await eventually(() => expect(receiver.deliveries).toHaveLength(16));
  expect((await quotas(app)).replays_per_hour).toEqual({ limit: 10, used: 10 });
  const unknown = await crawler.post('replay', { rid: '0'.repeat(24) });
  expect(unknown.status).toBe(404);
});

test('every admin call is logged in one line: by whom, what, about whom, how it ended; never a token', async () => {
  await using app = await startApp();
  const lines = () =>
    app.log
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter((line) => line.audit === 'admin');
  const made = await admin(app, 'POST', '', { name: 'guest', email: 'a@example.com' });
  await admin(app, 'GET', '');
  await admin(app, 'GET', '/nobody');
  await admin(app, 'PUT', '/guest', { email: '', limits: { crawlers: 1 } });
  const rotated = await admin(app, 'POST', '/guest/rotate_token', { token_type: 'normal' });
  await admin(app, 'DELETE', '/guest');
  const wrong = 'wrong-token-wrong-token';
  const withWrong = { authorization: `Bearer ${wrong}` };
  await app.rest('DELETE', '/accounts/default', undefined, withWrong);
  await app.rest('POST', '/accounts', { name: 'other' }, withWrong);
  const client = createClient(AccountService, createGrpcTransport({ baseUrl: app.url }));
  const refused = client.getAccount({ name: 'default' }, { headers: withWrong });
  await expect(refused).rejects.toMatchObject({ code: Code.Unauthenticated });
  expect(
    lines().map(({ by, method, account, fields, outcome }) => ({
      by,
      method,
      account,
      fields,
      outcome,
    })),
  ).toEqual([
    { by: 'admin', method: 'CreateAccount', account: 'guest', outcome: 'ok' },
    { by: 'admin', method: 'ListAccounts', outcome: 'ok' },
    { by: 'admin', method: 'GetAccount', account: 'nobody', outcome: 'account_not_found' },
    {
      by: 'admin',
      method: 'UpdateAccount',
      account: 'guest',
      fields: ['email', 'limits'],
      outcome: 'ok',
    },
    { by: 'admin', method: 'RotateToken', account: 'guest', fields: ['normal'], outcome: 'ok' },
    { by: 'admin', method: 'DeleteAccount', account: 'guest', outcome: 'ok' },
    { by: 'unauthenticated', method: 'DeleteAccount', outcome: 'invalid_token' },
    { by: 'unauthenticated', method: 'CreateAccount', outcome: 'invalid_token' },
    { by: 'unauthenticated', method: 'GetAccount', outcome: 'invalid_token' },
  ]);
  for (const line of lines()) expect(line.remote).toMatch(/127\.0\.0\.1$/);
  const all = app.log.join('\n');
  const secrets = [
    ADMIN,
    wrong,
    made.json.normal_token,
    made.json.javascript_token,
    rotated.json.token,
  ];
  for (const secret of secrets) expect(all).not.toContain(secret);
});

test('many crawlers at one host that is not theirs do not multiply its probes; others are probed as ever', async () => {
  await using victim = await startReceiver();
  await using own = await startReceiver();
  await using app = await startApp({ env: { PROBE_INTERVAL_SECONDS: '1' } });
  await limit(app, { probes_per_minute: 5 });
  const token = (await admin(app, 'POST', '', { name: 'guest' })).json.normal_token as string;
  const hook = { name: 'own', callback_url: own.url };
  expect((await app.rest('POST', `/crawler/${token}`, hook)).status).toBe(200);
  const startedAt = performance.now();
  for (let n = 0; n < 30; n += 1) {
    await create(app, `c${n}`, { callback_url: `${victim.url}/${n}` });
  }
  await victim.untilProbes(5);
  await own.untilProbes(4);
  const minutes = (performance.now() - startedAt) / 60_000;
  expect(victim.probes.length).toBeLessThanOrEqual(5 + Math.ceil(5 * minutes));
});
