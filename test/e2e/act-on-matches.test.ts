import { expect, test } from 'vitest';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { runCommandLine } from '../support/command-line.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/receiver.ts';
import { startSite } from '../support/site.ts';

interface Progress {
  readonly matched?: number;
  readonly done?: number;
  readonly refused?: number;
}

/** Acts on what matches, and returns the last message of the stream. */
async function act(app: TestApp, name: string, body: object): Promise<Progress> {
  const reply = await app.rest('POST', `/crawler/${NORMAL}/${name}/act`, body);
  expect(reply.status, reply.text).toBe(200);
  const lines = reply.text.trim().split('\n');
  return JSON.parse(lines.at(-1) ?? '{}') as Progress;
}

test('waiting jobs are counted, listed and removed by part of the URL, host and batch, with one audit record', async () => {
  await using app = await startApp();
  const crawler = await createCrawler(app, 'queue');
  await crawler.post('pause');
  const items = [
    ...Array.from({ length: 450 }, (_, n) => ({ url: `http://a.example/cat/${n}`, batch: 'b1' })),
    ...Array.from({ length: 30 }, (_, n) => ({ url: `http://a.example:81/dog/${n}` })),
    ...Array.from({ length: 20 }, (_, n) => ({ url: `http://b.example/Cat/${n}` })),
  ];
  await app.rest('POST', `${crawler.path}/push_batch`, { items });
  const estimate = (filter: object) =>
    act(app, 'queue', { action: 'remove_jobs', filter, estimate: true });
  expect(await estimate({ url_contains: '/cat/' })).toMatchObject({ matched: 470, done: 0 });
  expect(await estimate({ host: 'A.example' })).toMatchObject({ matched: 450 });
  expect(await estimate({ host: 'a.example:81' })).toMatchObject({ matched: 30 });
  expect(await estimate({ batch: 'b1', url_contains: '/cat/44' })).toMatchObject({ matched: 11 });
  expect(await estimate({ from: '2100-01-01T00:00:00Z' })).toMatchObject({ matched: 0 });
  expect(await estimate({})).toMatchObject({ matched: 500 });
  expect((await crawler.details()).activity.waiting).toBe(500);

  // The list takes the same filter, and finds what is far behind.
  const listed = await app.rest(
    'GET',
    `${crawler.path}/jobs?page_size=10&filter.url_contains=b.EXAMPLE`,
  );
  expect(listed.json.jobs).toHaveLength(10);
  for (const { url } of listed.json.jobs) expect(url).toContain('b.example');

  const filter = { url_contains: '/cat/' };
  expect(await act(app, 'queue', { action: 'remove_jobs', filter })).toEqual({
    matched: 470,
    done: 470,
    refused: 0,
    next_page_token: '',
  });
  const { activity } = await crawler.details();
  expect(activity).toMatchObject({ waiting: 30, deleted: 470 });

  const { json } = await app.rest('GET', `/audit/${NORMAL}?method=ActOnMatches`);
  expect(json.records).toHaveLength(1);
  expect(json.records[0]).toMatchObject({ by: 'normal', crawler: 'queue' });
  expect(JSON.parse(json.records[0].changes)).toMatchObject({
    action: 'MATCH_ACTION_REMOVE_JOBS',
    filter: { url_contains: '/cat/' },
    matched: 470,
    done: 470,
  });
});

test('failed crawls are pushed again, and stored results removed, by status and reason', async () => {
  await using site = await startSite();
  await using app = await startApp();
  const crawler = await createCrawler(app, 'store', { max_retries: 0 });
  const rids = await Promise.all(
    ['/status/404', '/status/500', '/page/1', '/page/2', '/status/404?b'].map((path) =>
      crawler.push(site.url + path),
    ),
  );
  await Promise.all(rids.map((rid) => crawler.stored(rid)));
  const failed = { action: 'push_again', filter: { original_status: 500 } };
  expect(await act(app, 'store', { ...failed, estimate: true })).toMatchObject({ matched: 1 });
  expect(await act(app, 'store', failed)).toMatchObject({ matched: 1, done: 1 });
  await eventually(() => expect(site.hits('/status/500')).toBe(2));

  const gone = { action: 'remove_results', filter: { original_status: 404, url_contains: '?B' } };
  expect(await act(app, 'store', gone)).toMatchObject({ matched: 1, done: 1 });
  const left = await app.rest('GET', `${crawler.path}/results?filter.original_status=404`);
  expect(left.json.results).toHaveLength(1);
  expect(left.json.results[0].pushed_url).toBe(`${site.url}/status/404`);
  const completed = { action: 'remove_results', outcome: 'completed' };
  expect(await act(app, 'store', completed)).toMatchObject({ matched: 3, done: 3 });

  const refused = await app.rest('POST', `${crawler.path}/act`, { action: 'replay' });
  expect(refused.text).toContain('no_webhook');
  // What was refused changed nothing, so it left no record.
  const { json } = await app.rest('GET', `/audit/${NORMAL}?method=ActOnMatches`);
  expect(json.records).toHaveLength(3);
  const nothing = await app.rest('POST', `${crawler.path}/act`, {});
  expect(nothing.status).toBe(422);
});

test('deliveries that failed for a reason are replayed, by the command line as well', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver({ answer: { status: 500 } });
  await using app = await startApp({ env: { WEBHOOK_RETRY_SCHEDULE: '1s' } });
  const crawler = await createCrawler(app, 'hook', { callback_url: receiver.url });
  for (let n = 0; n < 4; n += 1) await crawler.push(`${site.url}/page/${n}`);
  await eventually(async () => {
    const { json } = await app.rest('GET', `${crawler.path}/deliveries?state=failed`);
    expect(json.deliveries).toHaveLength(4);
  });
  receiver.answer({ status: 200 });
  const env = { QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
  const run = (...more: string[]) =>
    runCommandLine(['act', 'hook', 'replay', '--url-contains', '/page/', ...more], { env });
  const estimate = await run('--estimate');
  expect(estimate.stdout).toContain('4 match');
  expect(receiver.deliveries.filter(({ path }) => path !== '')).toHaveLength(8);
  const one = { action: 'replay', filter: { reason: 'status 500', url_contains: '/page/3' } };
  expect(await act(app, 'hook', one)).toMatchObject({ matched: 1, done: 1 });
  const replayed = await run('--delivery-state', 'failed');
  expect(replayed.stdout).toContain('3 of 3 done');
  await eventually(async () => {
    const { json } = await app.rest('GET', `${crawler.path}/deliveries?state=delivered`);
    expect(json.deliveries).toHaveLength(4);
  });
});
