import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/receiver.ts';
import { startSite } from '../support/site.ts';
import { createTestClock } from '../support/test-clock.ts';

const HOUR = 3_600_000;

test('a transient failure is tried again later, stays QUEUED, and leaves its slot to others', async () => {
  const clock = createTestClock();
  await using site = await startSite();
  await using app = await startApp({ clock });
  const crawler = await createCrawler(app, 'retry', { concurrency: 1 });
  const rid = await crawler.push(`${site.url}/flaky/a?fails=2`);
  await eventually(async () => {
    const { json } = await crawler.find(rid);
    expect(json).toMatchObject({ status: 'QUEUED', request_info: { rid, retry: 1 } });
  });
  expect((await crawler.details()).activity).toMatchObject({ retrying: 1, running: 0, waiting: 0 });

  // The one slot is free for another URL while the first waits.
  await crawler.stored(await crawler.push(`${site.url}/page/1`));
  clock.advance(HOUR);
  await eventually(async () => expect((await crawler.find(rid)).json.request_info.retry).toBe(2));
  clock.advance(HOUR);
  const { json } = await crawler.stored(rid);
  expect(json).toMatchObject({ cb_status: 200, original_status: 200 });
  expect(site.hits('/flaky/a')).toBe(3);
  expect((await crawler.details()).activity).toMatchObject({
    completed: 2,
    failed: 0,
    retrying: 0,
  });
});

test('Retry-After is honoured', async () => {
  const clock = createTestClock();
  await using site = await startSite({
    routes: {
      '/later': (_request, response) => {
        const early = clock.now().getTime() < startedAt + 2 * HOUR;
        response.writeHead(early ? 503 : 200, {
          'retry-after': '7200',
          'content-type': 'text/html',
        });
        response.end('<p>page</p>');
      },
    },
  });
  const startedAt = clock.now().getTime();
  await using app = await startApp({ clock });
  const crawler = await createCrawler(app, 'retry-after');
  const rid = await crawler.push(`${site.url}/later`);
  await eventually(async () => expect((await crawler.find(rid)).json.request_info.retry).toBe(1));
  clock.advance(HOUR);
  // Another URL goes through all the way, so the run has looked for due work after the hour.
  await crawler.stored(await crawler.push(`${site.url}/page/1`));
  expect(site.hits('/later')).toBe(1);
  clock.advance(2 * HOUR);
  await crawler.stored(rid);
  expect(site.hits('/later')).toBe(2);
});

test('after the last retry the failure is the result, delivered once with its cb_status', async () => {
  const clock = createTestClock();
  await using site = await startSite();
  await using receiver = await startReceiver();
  await using app = await startApp({ clock });
  const crawler = await createCrawler(app, 'gives-up', {
    callback_url: receiver.url,
    max_retries: 2,
  });
  const rid = await crawler.push(`${site.url}/status/503`);
  for (const retry of [1, 2]) {
    await eventually(async () =>
      expect((await crawler.find(rid)).json.request_info.retry).toBe(retry),
    );
    clock.advance(HOUR);
  }
  const [post] = await receiver.until(1);
  expect(post?.headers).toMatchObject({ rid, cb_status: '503', original_status: '503' });
  expect(site.hits('/status/503')).toBe(3);
  expect((await crawler.find(rid)).json.status).toBe('NOT_QUEUED');
  const { activity } = await crawler.details();
  expect(activity).toMatchObject({ failed: 1, completed: 0, retrying: 0, deliveries_pending: 0 });
});

test('an unreachable site and an empty page end in their own cb_status', async () => {
  await using site = await startSite();
  await using app = await startApp();
  const crawler = await createCrawler(app, 'ends', { max_retries: 0 });
  // Its port is nobody's now.
  const gone = await startSite();
  await gone[Symbol.asyncDispose]();
  const refused = await crawler.push(gone.url);
  const empty = await crawler.push(`${site.url}/empty`);
  const missing = await crawler.push(`${site.url}/status/404`);
  expect((await crawler.stored(refused)).json).toMatchObject({
    cb_status: 521,
    original_status: 0,
  });
  expect((await crawler.stored(empty)).json).toMatchObject({
    cb_status: 520,
    original_status: 200,
  });
  expect((await crawler.stored(missing)).json).toMatchObject({
    cb_status: 200,
    original_status: 404,
  });
});

test('queue_timeout: a URL that no worker has started ends with 504 and 699', async () => {
  const clock = createTestClock();
  await using site = await startSite();
  await using receiver = await startReceiver();
  await using app = await startApp({ clock });
  const hook = await createCrawler(app, 'hook', { callback_url: receiver.url });
  const store = await createCrawler(app, 'store');
  await Promise.all([hook.post('pause'), store.post('pause')]);
  const hooked = await hook.push(`${site.url}/page/1`, '&queue_timeout=5');
  const stored = await store.push(`${site.url}/page/2`, '&queue_timeout=5');
  const patient = await store.push(`${site.url}/page/3`, '&queue_timeout=0');
  const longer = await store.push(`${site.url}/page/4`, '&queue_timeout=10080');
  clock.advance(6 * 60_000);

  const [post] = await receiver.until(1);
  expect(post?.headers).toMatchObject({
    rid: hooked,
    cb_status: '699',
    original_status: '504',
    url: `${site.url}/page/1`,
  });
  expect((await store.stored(stored)).json).toMatchObject({ cb_status: 699, original_status: 504 });
  expect((await store.find(stored)).json.status).toBe('NOT_QUEUED');
  expect((await store.find(patient)).json.status).toBe('QUEUED');
  expect((await store.find(longer)).json.status).toBe('QUEUED');
  expect((await store.details()).activity).toMatchObject({ failed: 1, waiting: 2 });
  expect(site.hits()).toBe(0);
});

test('queue_timeout stops applying once a worker has started, and holds across a restart', async () => {
  const clock = createTestClock();
  await using site = await startSite();
  await using app = await startApp({ clock });
  const crawler = await createCrawler(app, 'started');
  const flaky = await crawler.push(`${site.url}/flaky/t?fails=1`, '&queue_timeout=1');
  await eventually(async () => expect((await crawler.find(flaky)).json.request_info.retry).toBe(1));
  await crawler.post('pause');
  const waiting = await crawler.push(`${site.url}/page/1`, '&queue_timeout=1');
  const life = (rid: string) => app.rest('GET', `/find_by_rid/${NORMAL}/${rid}`);
  expect((await life(waiting)).json.job).toHaveProperty('queue_deadline');
  expect((await life(flaky)).json.job).not.toHaveProperty('queue_deadline');
  await app.stop();

  clock.advance(HOUR);
  await using again = await startApp({ clock, dataDir: app.dataDir });
  const same = await again.rest('POST', crawler.path.replace(/\/started$/, ''), {
    name: 'started',
  });
  expect(same.json.created).toBe(false);
  const record = await eventually(async () => {
    const reply = await again.rest(
      'GET',
      `/storage?token=normal-token-for-tests&rid=${waiting}&format=json`,
    );
    expect(reply.status).toBe(200);
    return reply.json;
  });
  expect(record.cb_status).toBe(699);
  const found = await again.rest('GET', `${crawler.path}/find_by_rid/${flaky}`);
  expect(found.json.status).toBe('QUEUED');
});
