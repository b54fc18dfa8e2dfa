import { expect, test } from 'vitest';
import { NORMAL } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/receiver.ts';
import { shareApp } from '../support/shared-app.ts';
import { type Site, startSite } from '../support/site.ts';

const encoded = (value: string): string => encodeURIComponent(value);

const shared = shareApp();

test('metadata comes back with the stored result, in lists and by rid', async () => {
  await using site = await startSite();
  const app = shared();
  const kept = await createCrawler(app, 'kept');
  const metadata = '{"order": 12345678901234567890, "café": "\u{1F600}"}';
  const back = '{"order": 12345678901234567890, "caf\\u00e9": "\\ud83d\\ude00"}';
  await app.rest('POST', `/crawler/${NORMAL}/kept/pause`);
  const rid = await kept.push(`${site.url}/page`, `&metadata=${encoded(metadata)}`);
  const queued = await app.rest('GET', `/crawler/${NORMAL}/kept/jobs`);
  expect(queued.json).toMatchObject({ jobs: [{ rid, metadata: back }] });
  const found = await app.rest('GET', `/find_by_rid/${NORMAL}/${rid}`);
  expect(found.json).toMatchObject({ job: { metadata: back } });
  await app.rest('POST', `/crawler/${NORMAL}/kept/unpause`);
  const stored = await kept.stored(rid);
  expect(stored.json).toMatchObject({ rid, metadata: back });
  expect(stored.headers.get('metadata')).toBe(back);
  const listed = await app.rest('GET', `/storage/results?token=${NORMAL}&name=kept`);
  expect(listed.json).toMatchObject({ results: [{ rid, metadata: back }] });
  const bulk = await app.rest('POST', `/storage/bulk?token=${NORMAL}`, { rids: [rid] });
  expect(bulk.json).toMatchObject([{ rid, metadata: back }]);
});

test('metadata comes back in the header and the envelope of a delivery, also of a failed one', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver();
  const app = shared();
  const hook = await createCrawler(app, 'hook', { callback_url: receiver.url, max_retries: 0 });
  const metadata = encoded('[1,\n2]');
  const rid = await hook.push(`${site.url}/page`, `&format=json&metadata=${metadata}`);
  const [post] = await receiver.until(1);
  expect(post?.headers['metadata']).toBe('[1, 2]');
  expect(post?.json).toMatchObject({ rid, metadata: '[1, 2]' });
  const delivery = await app.rest('GET', `/crawler/${NORMAL}/hook/deliveries/${rid}`);
  expect(delivery.json).toMatchObject({ rid, metadata: '[1, 2]' });
  const lost = await hook.push('http://127.0.0.1:1/', '&metadata=7');
  await receiver.until(2);
  expect(receiver.byRid(lost)[0]?.headers).toMatchObject({ metadata: '7', cb_status: '523' });
});

test('metadata that is no JSON or too long is refused by name, and costs no other item', async () => {
  const app = shared();
  await createCrawler(app, 'kept');
  const items = [
    { url: 'https://example.com/', metadata: '{' },
    { url: 'https://example.com/', metadata: JSON.stringify('x'.repeat(1_023)) },
    { url: 'https://example.com/', metadata: JSON.stringify('é'.repeat(171)) },
    { url: 'https://example.com/', metadata: JSON.stringify('x'.repeat(1_022)) },
    { url: 'https://example.com/', metadata: '' },
  ];
  const reply = await app.rest('POST', `/crawler/${NORMAL}/kept/push_batch`, { items });
  const { results } = reply.json as { results: { rid: string; error?: { field: string } }[] };
  expect(results.map(({ error }) => error?.field)).toEqual([
    'metadata',
    'metadata',
    'metadata',
    undefined,
    undefined,
  ]);
  const one = await app.rest(
    'GET',
    `/?token=${NORMAL}&crawler=kept&url=https://example.com/&metadata=no`,
  );
  expect(one.status).toBe(422);
  expect(one.json).toMatchObject({ field: 'metadata' });
});

test('a delayed URL waits as scheduled, is found, removed and purged, and its timeout begins then', async () => {
  const app = shared();
  const shop = await createCrawler(app, 'shop');
  const before = Date.now();
  const delayed = await shop.push('https://example.com/1', '&delay=3600&queue_timeout=1');
  const notBefore = new Date(Date.now() + 86_400_000).toISOString();
  const later = await shop.push('https://example.com/2', `&not_before=${notBefore}`);
  expect((await shop.details()).activity).toMatchObject({ waiting: 2, scheduled: 2, pushed: 2 });
  const { jobs } = (await app.rest('GET', `${shop.path}/jobs?state=scheduled`)).json;
  expect(jobs).toMatchObject([
    { rid: delayed, state: 'scheduled' },
    { rid: later, state: 'scheduled', not_before: notBefore, next_try_at: notBefore },
  ]);
  const [{ not_before: start, queue_deadline: deadline }] = jobs;
  // The service's clock is read once and then followed by monotonic time.
  expect(Date.parse(start)).toBeGreaterThanOrEqual(before - 20 + 3_600_000);
  expect(Date.parse(deadline) - Date.parse(start)).toBe(60_000);
  const found = await app.rest('GET', `/find_by_rid/${NORMAL}/${later}`);
  expect(found.json).toMatchObject({ job: { state: 'scheduled', not_before: notBefore } });
  expect((await shop.find(delayed)).json).toMatchObject({ status: 'QUEUED' });
  expect((await shop.post(`delete_job?rid=${delayed}`)).status).toBe(200);
  expect((await shop.details()).activity).toMatchObject({ waiting: 1, scheduled: 1, deleted: 1 });
  expect((await shop.post('purge')).json).toEqual({ purged: 1 });
  expect((await shop.details()).activity).toMatchObject({ waiting: 0, scheduled: 0, purged: 1 });
});

test('a delayed URL is crawled when its time has come, and one of the past at once', async () => {
  await using site = await startSite();
  const app = shared();
  const shop = await createCrawler(app, 'shop');
  const before = Date.now();
  const delayed = await shop.push(`${site.url}/page/later`, '&delay=1');
  await shop.stored(await shop.push(`${site.url}/page/now`, '&not_before=2020-01-01T00:00:00Z'));
  await shop.stored(delayed);
  await eventually(() => expect(site.seen).toHaveLength(2));
  const late = site.seen.find(({ path }) => path === '/page/later');
  expect(late?.at.getTime()).toBeGreaterThanOrEqual(before + 1_000);
});

test('a wrong time is refused by the name of its field, and costs no other item', async () => {
  const app = shared();
  const shop = await createCrawler(app, 'shop');
  const url = 'https://example.com/';
  const far = new Date(Date.now() + 31 * 86_400_000).toISOString();
  const items = [
    { url, delay: -1 },
    { url, delay: 2_592_001 },
    { url, not_before: far },
    { url, not_before: '2020-01-01T00:00:00Z', delay: 5 },
    { url, delay: 2_592_000 },
  ];
  const { json } = await shop.post('push_batch', { items });
  expect(json.results.map(({ error }: { error?: { field: string } }) => error?.field)).toEqual([
    'delay',
    'delay',
    'not_before',
    'delay',
    undefined,
  ]);
  expect((await shop.tryPush(url, '&not_before=tomorrow')).json).toMatchObject({
    field: 'not_before',
  });
});

test('of the URLs of a host those with a higher priority are crawled first', async () => {
  await using site = await startSite();
  const app = shared();
  const shop = await createCrawler(app, 'shop', { concurrency: 1 });
  await shop.post('pause');
  const priorities = [undefined, 0, 9, 4, 7, 5, 9, 1];
  const url = (n: number) => `${site.url}/page/${n}`;
  for (const [n, priority] of priorities.entries()) {
    await shop.push(url(n), priority === undefined ? '' : `&priority=${priority}`);
  }
  const { jobs } = (await app.rest('GET', `${shop.path}/jobs`)).json;
  expect(jobs.map(({ priority }: { priority: number }) => priority)).toEqual(
    priorities.map((priority) => priority ?? 5),
  );
  await shop.post('unpause');
  await eventually(() => expect(site.seen).toHaveLength(8));
  expect(site.seen.map(({ path }) => path)).toEqual(
    [2, 6, 4, 0, 5, 3, 7, 1].map((n) => `/page/${n}`),
  );
  expect((await shop.tryPush(url(9), '&priority=10')).json).toMatchObject({ field: 'priority' });
  expect((await shop.tryPush(url(9), '&priority=-1')).json).toMatchObject({ field: 'priority' });
});

test('a unique URL is queued once, and the second push gets the first rid', async () => {
  await using site = await startSite();
  const app = shared();
  const shop = await createCrawler(app, 'shop');
  await shop.post('pause');
  const url = `${site.url}/page/1?b=2&a=1`;
  const first = await shop.tryPush(url, '&unique=true');
  expect(first.headers.get('duplicate')).toBeNull();
  const { rid } = first.json;
  const second = await shop.tryPush(`${site.url}/page/1?a=1&b=2#x`, '&unique=true');
  expect([second.status, second.json]).toEqual([200, { rid }]);
  expect(second.headers.get('duplicate')).toBe('true');
  const items = [
    { url, unique: true },
    { url },
    { url, unique_key: 'seven' },
    { url: `${site.url}/page/2`, unique_key: 'seven' },
    { url, unique_for: 2_592_001 },
    { url, unique_key: 'x'.repeat(257) },
  ];
  const { results } = (await shop.post('push_batch', { items })).json;
  expect(results).toMatchObject([
    { rid, duplicate: true },
    { duplicate: false },
    { duplicate: false },
    { rid: results[2].rid, duplicate: true },
    { error: { field: 'unique_for' } },
    { error: { field: 'unique_key' } },
  ]);
  expect((await shop.details()).activity).toMatchObject({ pushed: 3, waiting: 3 });
  await shop.post('unpause');
  await shop.stored(rid);
  await shop.stored(results[2].rid);
  const third = await shop.tryPush(url, '&unique=true');
  expect(third.json.rid).not.toBe(rid);
  expect(third.headers.get('duplicate')).toBeNull();
});

test('a crawler makes its pushes unique for a time, unless one says otherwise', async () => {
  await using site = await startSite();
  const app = shared();
  const shop = await createCrawler(app, 'shop', { unique: true, unique_for: 86_400 });
  expect(await shop.details()).toMatchObject({ unique: true, unique_for: 86_400 });
  const url = `${site.url}/page/1`;
  const rid = await shop.push(url);
  await shop.stored(rid);
  expect(await shop.push(url)).toBe(rid);
  expect(await shop.push(url, '&unique=false')).not.toBe(rid);
  const off = await app.rest('PUT', shop.path, { unique: false, unique_for: 0 });
  expect(off.json).not.toHaveProperty('unique');
  expect(off.json).not.toHaveProperty('unique_for');
  expect(await shop.push(url)).not.toBe(rid);
  const wrong = await app.rest('PUT', shop.path, { unique_for: -1 });
  expect([wrong.status, wrong.json.field]).toEqual([422, 'unique_for']);
});

test('a URL with a higher priority goes before those of other hosts', async () => {
  await using slow = await startSite();
  await using other = await startSite();
  const app = shared();
  const shop = await createCrawler(app, 'shop', { concurrency: 1 });
  await shop.post('pause');
  for (let n = 0; n < 20; n += 1) await shop.push(`${slow.url}/delay/50?n=${n}`);
  const urgent = [];
  // No more than half of what the first look reads.
  for (let n = 0; n < 3; n += 1)
    urgent.push(await shop.push(`${other.url}/page/${n}`, '&priority=9'));
  await shop.post('unpause');
  for (const rid of urgent) await shop.stored(rid);
  const last = other.seen.at(-1)?.at.getTime() ?? 0;
  expect(slow.seen.filter(({ at }) => at.getTime() < last)).toHaveLength(0);
});

test('URLs with a higher priority that are pushed later are crawled before most of a long queue', async () => {
  await using stack = new AsyncDisposableStack();
  const sites: Site[] = [];
  for (let n = 0; n < 12; n += 1) sites.push(stack.use(await startSite()));
  const app = shared();
  const shop = await createCrawler(app, 'shop', { concurrency: 4 });
  const items = Array.from({ length: 600 }, (_, n) => ({
    url: `${sites[n % sites.length]?.url}/delay/50?n=${n}`,
  }));
  await app.rest('POST', `${shop.path}/push_batch`, { items });
  const requests = () => sites.flatMap(({ seen }) => seen);
  await eventually(() => expect(requests().length).toBeGreaterThan(60));
  const urgent = Array.from({ length: 12 }, (_, n) => ({
    url: `${sites[n]?.url}/page/urgent`,
    priority: 9,
  }));
  await app.rest('POST', `${shop.path}/push_batch`, { items: urgent });
  const before = requests().length;
  const isUrgent = ({ path }: { path: string }) => path.endsWith('/urgent');
  await eventually(() => expect(requests().filter(isUrgent)).toHaveLength(12));
  const last = Math.max(
    ...requests()
      .filter(isUrgent)
      .map(({ at }) => at.getTime()),
  );
  const others = requests().filter((each) => !isUrgent(each) && each.at.getTime() <= last);
  // Those in flight, those read ahead, and those of the time until the next look; most of the queue is left.
  expect(others.length - before).toBeLessThan(300);
});
