import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { expect, test } from 'vitest';
import {
  ActivityService,
  CrawlOutcome,
  FailureKind,
  JobState,
} from '../../gen/queuedcrawler/v1/activity_service_pb.ts';
import {
  CrawlerOrder,
  CrawlerService,
  DeliveryState,
} from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { JAVASCRIPT, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { createGrpcClient } from '../support/grpc-client.ts';
import { startReceiver } from '../support/receiver.ts';
import { shareApp } from '../support/shared-app.ts';
import { startSite } from '../support/site.ts';

const bearer = { headers: { authorization: `Bearer ${NORMAL}` } };

function connect(app: TestApp) {
  const transport = createConnectTransport({ baseUrl: app.url, httpVersion: '1.1' });
  return {
    activity: createClient(ActivityService, transport),
    crawlers: createClient(CrawlerService, transport),
  };
}

/** The values of one member of each object of a reply's list. */
const pluck = (list: readonly Record<string, unknown>[], name: string): unknown[] =>
  list.map((each) => each[name]);

const shared = shareApp();

test('crawlers are listed by what they do, filtered, sorted and page by page', async () => {
  await using site = await startSite();
  const app = shared();
  const busy = await createCrawler(app, 'shop-busy', { concurrency: 2 });
  const full = await createCrawler(app, 'shop-full');
  await createCrawler(app, 'News', {});
  await app.rest('POST', `/crawler/${JAVASCRIPT}`, { name: 'shop-browser' });
  await full.post('pause');
  for (let n = 0; n < 3; n += 1) await full.push(`${site.url}/page/${n}`);
  const rid = await busy.push(`${site.url}/page/9`);
  await busy.stored(rid);

  const list = async (query: string) => (await app.rest('GET', `/crawler/${NORMAL}?${query}`)).json;
  const plain = await list('');
  expect(pluck(plain.crawlers, 'name')).toEqual(['News', 'shop-busy', 'shop-full']);
  expect(plain).not.toHaveProperty('total');
  expect(plain.crawlers[0]).not.toHaveProperty('activity');

  const shops = await list('name_contains=SHOP&with_activity=true');
  expect(pluck(shops.crawlers, 'name')).toEqual(['shop-busy', 'shop-full']);
  expect(shops.total).toBe(2);
  expect(shops.crawlers[0]).toMatchObject({ status: 'running', activity: { completed: 1 } });
  expect(shops.crawlers[1]).toMatchObject({
    status: 'paused',
    paused_by: 'user',
    paused_at: expect.any(String),
    activity: { waiting: 3, last_push_at: expect.any(String) },
  });
  expect(pluck((await list('status=paused')).crawlers, 'name')).toEqual(['shop-full']);
  expect(pluck((await list('descending=true')).crawlers, 'name')).toEqual([
    'shop-full',
    'shop-busy',
    'News',
  ]);

  // Page by page, in an order of numbers.
  const names: unknown[] = [];
  let token = '';
  do {
    const page = await list(
      `order_by=waiting&descending=true&page_size=1&with_activity=true&page_token=${token}`,
    );
    names.push(...pluck(page.crawlers, 'name'));
    token = page.next_page_token;
  } while (token !== '' && token !== undefined);
  expect(names).toEqual(['shop-full', 'News', 'shop-busy']);

  const { crawlers } = connect(app);
  const byCrawl = await crawlers.listCrawlers(
    { orderBy: CrawlerOrder.LAST_CRAWL, descending: true, withActivity: true },
    bearer,
  );
  expect(byCrawl.crawlers[0]).toMatchObject({ name: 'shop-busy', activity: { completed: 1n } });
  // The second reading measures what happened since the first.
  await eventually(async () => {
    const [first] = (await list('order_by=rate&descending=true&with_activity=true')).crawlers;
    expect(first.activity.rates.measured_ms).toBeGreaterThan(0);
  });
  const wrong = await app.rest('GET', `/crawler/${NORMAL}?name_contains=${'x'.repeat(65)}`);
  expect(wrong.json).toMatchObject({ code: 'invalid_name_contains', field: 'name_contains' });
  expect(wrong.status).toBe(422);
});

test('jobs, results and failures are listed without their pages, and a rid is found anywhere', async () => {
  await using site = await startSite();
  const app = shared();
  using grpc = createGrpcClient(`127.0.0.1:${app.port}`);
  const { activity } = connect(app);
  const crawler = await createCrawler(app, 'mixed', { max_retries: 0 });
  const good = await crawler.push(`${site.url}/page/1?size=2000`);
  const bad = await crawler.push(`${site.url}/status/500`);
  await crawler.stored(good);
  await crawler.stored(bad);
  const retrier = await createCrawler(app, 'retrier');
  const retried = await retrier.push(`${site.url}/status/500`);
  const job = await eventually(async () => {
    const request = { name: 'retrier', state: JobState.RETRYING };
    const { jobs } = await grpc.call(ActivityService.method.listJobs, request, NORMAL);
    expect(jobs).toHaveLength(1);
    return jobs[0];
  });
  expect(job).toMatchObject({
    rid: retried,
    url: `${site.url}/status/500`,
    state: JobState.RETRYING,
    tries: 1,
    lastFailure: expect.stringMatching(/\w/),
  });
  await retrier.post('pause');
  const waiting = await retrier.push(`${site.url}/page/2`);
  const { jobs } = (await app.rest('GET', `${retrier.path}/jobs?state=waiting`)).json;
  expect(pluck(jobs, 'rid')).toEqual([waiting]);
  expect(jobs[0]).toMatchObject({ state: 'waiting', tries: 0, method: 'GET' });

  const all = await activity.listResults({ name: 'mixed' }, bearer);
  expect(new Set(all.results.map(({ rid }) => rid))).toEqual(new Set([good, bad]));
  const failed = await activity.listResults(
    { name: 'mixed', outcome: CrawlOutcome.FAILED },
    bearer,
  );
  expect(failed.results).toMatchObject([
    { rid: bad, cbStatus: 500, pcStatus: 500, failure: expect.any(String) },
  ]);
  const stored = (await app.rest('GET', `/storage/results?token=${NORMAL}&outcome=completed`)).json;
  expect(stored.results).toMatchObject([{ rid: good, cb_status: 200, pc_status: 200 }]);
  expect(stored.results[0].size_bytes).toBeGreaterThan(50);
  expect(stored.results[0]).not.toHaveProperty('body');

  const { groups } = (await app.rest('GET', `${crawler.path}/failures`)).json;
  const statuses = { cb_status: 500, pc_status: 500, original_status: 500 };
  expect(groups).toMatchObject([{ count: 1, ...statuses, examples: [{ rid: bad }] }]);
  const retries = await activity.listFailures({ name: 'retrier', kind: FailureKind.RETRY }, bearer);
  expect(retries.groups).toMatchObject([
    { reason: job?.lastFailure, count: 1, examples: [{ rid: retried }] },
  ]);

  const found = (await app.rest('GET', `/find_by_rid/${NORMAL}/${good}`)).json;
  expect(found).toMatchObject({ rid: good, crawler: 'mixed', result: { cb_status: 200 } });
  const queued = await grpc.call(ActivityService.method.findRid, { rid: waiting }, NORMAL);
  expect(queued).toMatchObject({ crawler: 'retrier', job: { state: JobState.WAITING } });
  const others = await app.rest('GET', `/find_by_rid/${JAVASCRIPT}/${good}`);
  expect(others.json).toMatchObject({ code: 'rid_not_found' });
  expect(others.status).toBe(404);

  const now = (await app.rest('GET', `/activity/${NORMAL}`)).json;
  expect(now).toMatchObject({
    account: 'default',
    token_type: 'normal',
    admission: { queued: 2, pushes_paused: false },
    crawlers_running: 1,
    crawlers_paused_by_user: 1,
    totals: { waiting: 1, retrying: 1, completed: 1, failed: 1 },
  });
  for (const path of ['jobs', 'results', 'deliveries', 'failures']) {
    const none = await app.rest('GET', `/crawler/${NORMAL}/nobody/${path}`);
    expect(none.json).toMatchObject({ code: 'crawler_not_found' });
    const size = await app.rest('GET', `${crawler.path}/${path}?page_size=201`);
    if (path !== 'failures') expect(size.json).toMatchObject({ code: 'invalid_page_size' });
    const place = await app.rest('GET', `${crawler.path}/${path}?page_token=eHg`);
    if (path !== 'failures') expect(place.json).toMatchObject({ code: 'invalid_page_token' });
  }
});

test('deliveries are listed by their state and replayed one, several or in parts', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver();
  // Twice, and then given up.
  await using app = await startApp({ env: { WEBHOOK_RETRY_SCHEDULE: '1s' } });
  const { activity, crawlers } = connect(app);
  const crawler = await createCrawler(app, 'hook', { callback_url: receiver.url });
  receiver.answer({ status: 500 });
  const rids: string[] = [];
  for (let n = 0; n < 5; n += 1) rids.push(await crawler.push(`${site.url}/page/${n}`));
  const list = async (state: DeliveryState) =>
    (await activity.listDeliveries({ name: 'hook', state }, bearer)).deliveries;
  await eventually(async () => expect(await list(DeliveryState.FAILED)).toHaveLength(5));
  const [failed] = await list(DeliveryState.FAILED);
  expect(failed?.attempts).toMatchObject([
    { attempt: 1, status: 500, error: 'status 500' },
    { attempt: 2, status: 500, error: 'status 500' },
  ]);
  expect(failed?.attempts[0]?.startedAt).toBeDefined();
  const groups = await activity.listFailures({ name: 'hook', kind: FailureKind.DELIVERY }, bearer);
  expect(groups.groups).toMatchObject([{ reason: 'status 500', originalStatus: 500, count: 5 }]);
  expect(await list(DeliveryState.PENDING)).toEqual([]);

  receiver.answer({ status: 200 });
  const one = await crawler.post('replay', { rids: [rids[0], 'f'.repeat(24)] });
  expect(one.json).toMatchObject({ replayed: 1 });
  await eventually(async () => expect(await list(DeliveryState.DELIVERED)).toHaveLength(1));
  const delivered = (await app.rest('GET', `${crawler.path}/deliveries?state=delivered`)).json;
  expect(delivered.deliveries).toMatchObject([
    {
      rid: rids[0],
      pc_status: 200,
      state: 'delivered',
      attempts: [{}, {}, { attempt: 3, status: 200 }],
    },
  ]);

  // The rest of those that failed, three and then one.
  const from = '2026-01-01T00:00:00Z';
  const part = { from, state: 'failed', max_count: 3 };
  const first = (await crawler.post('replay', part)).json;
  expect(first).toMatchObject({ replayed: 3, next_page_token: expect.stringMatching(/./) });
  const rest = await crawler.post('replay', { ...part, page_token: first.next_page_token });
  expect(rest.json).toMatchObject({ replayed: 1 });
  expect(rest.json.next_page_token ?? '').toBe('');
  await eventually(async () => expect(await list(DeliveryState.DELIVERED)).toHaveLength(5));
  const found = (await app.rest('GET', `/find_by_rid/${NORMAL}/${rids[4]}`)).json;
  expect(found).toMatchObject({ crawler: 'hook', delivery: { state: 'delivered' } });

  const both = await crawler.post('replay', { rid: rids[0], rids: [rids[1]] });
  expect(both.status).toBe(422);
  const { length } = receiver.deliveries;
  const sent = await crawlers.testDelivery({ name: 'hook' }, bearer);
  expect(sent).toMatchObject({ acknowledged: true, attempt: { attempt: 1, status: 200 } });
  const post = receiver.deliveries[length];
  expect(post?.headers).toMatchObject({
    test: 'true',
    rid: '0'.repeat(24),
    'webhook-signature': expect.stringMatching(/^v1,/),
  });
  expect(post?.text).toContain('This delivery is a test');
  receiver.answer({ status: 503 });
  const refused = (await crawler.post('test_delivery')).json;
  expect(refused).toMatchObject({ acknowledged: false, attempt: { status: 503 } });
  await eventually(async () => {
    const { json, status } = await crawler.post('test_delivery');
    expect(json).toMatchObject({ code: 'too_many_test_deliveries' });
    expect(status).toBe(429);
  });
  const storing = await createCrawler(app, 'storing');
  expect((await storing.post('test_delivery')).json).toMatchObject({ code: 'no_webhook' });
});

test('a crawler shows the process that works on it and its slots, and none when it is idle', async () => {
  await using site = await startSite();
  const app = shared();
  const worked = await createCrawler(app, 'worked', { concurrency: 3 });
  const processes = async () =>
    (await app.rest('GET', `/crawler/${NORMAL}/worked`)).json.processes as unknown;
  expect(await processes()).toEqual([]);
  await worked.push(`${site.url}/page/1?delay=1500`);
  await eventually(async () => {
    expect(await processes()).toEqual([{ id: expect.stringMatching(/^.+:\d+:.+$/), slots: 3 }]);
  });
  await eventually(async () => expect(await processes()).toEqual([]));
});
