import { describe, expect, test } from 'vitest';
import { CrawlerService } from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { ADMIN, JAVASCRIPT, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { createGrpcClient } from '../support/grpc-client.ts';
import { shareApp } from '../support/shared-app.ts';
import { startSite } from '../support/site.ts';

/** A URL whose crawl takes long enough that the jobs behind it wait. */
const SLOW = 'page/slow?delay=60000';

async function crawlLater(app: TestApp, url: string): Promise<string> {
  const reply = await app.rest(
    'GET',
    `/?token=${NORMAL}&async=true&url=${encodeURIComponent(url)}`,
  );
  expect(reply.status, reply.text).toBe(200);
  return reply.json.rid as string;
}

/** The names on each page of a listing over REST. */
async function pagesOf(app: TestApp, pageSize: number): Promise<string[][]> {
  const pages: string[][] = [];
  let pageToken = '';
  do {
    const query = `page_size=${pageSize}&page_token=${pageToken}`;
    const { json } = await app.rest('GET', `/crawler/${NORMAL}?${query}`);
    pages.push(json.crawlers.map((crawler: { name: string }) => crawler.name));
    pageToken = json.next_page_token;
  } while (pageToken !== '');
  return pages;
}

const shared = shareApp();

describe('after async=true was used', () => {
  test('every crawler is listed, on full pages, over REST and gRPC', async () => {
    await using site = await startSite();
    const app = shared();
    const names = ['0', 'A', 'c0', 'c1', 'z'];
    for (const name of names) await createCrawler(app, name);
    const before = await pagesOf(app, 2);
    await crawlLater(app, `${site.url}/page/1`);
    expect(await pagesOf(app, 2)).toEqual(before);
    expect((await pagesOf(app, 1)).flat()).toEqual(names);
    expect((await pagesOf(app, 5)).flat()).toEqual(names);
    expect((await pagesOf(app, 100)).flat()).toEqual(names);

    using client = createGrpcClient(`127.0.0.1:${app.port}`);
    const { listCrawlers } = CrawlerService.method;
    const first = await client.call(listCrawlers, { pageSize: 3 }, NORMAL);
    const pageToken = first.nextPageToken;
    const second = await client.call(listCrawlers, { pageSize: 3, pageToken }, NORMAL);
    expect([...first.crawlers, ...second.crawlers].map((each) => each.name)).toEqual(names);
    // A token made up to begin before the first name.
    const forged = Buffer.from('.').toString('base64url');
    const third = await client.call(listCrawlers, { pageToken: forged }, NORMAL);
    expect(third.crawlers.map((each) => each.name)).toEqual(names);
  });

  test('the crawler behind it cannot be addressed by its name', async () => {
    await using site = await startSite();
    const app = shared();
    const rid = await crawlLater(app, `${site.url}/${SLOW}`);
    for (const name of ['.async-normal', '%2Easync-normal']) {
      const path = `/crawler/${NORMAL}/${name}`;
      const calls = [
        app.rest('GET', path),
        app.rest('PUT', path, { concurrency: 1_000 }),
        app.rest('POST', `${path}/pause`),
        app.rest('POST', `${path}/unpause`),
        app.rest('POST', `${path}/purge`),
        app.rest('POST', `${path}/delete`),
        app.rest('POST', `${path}/delete_job?rid=${rid}`),
        app.rest('GET', `${path}/find_by_rid/${rid}`),
        app.rest('POST', `${path}/push_batch`, { items: [{ url: site.url }] }),
        app.rest('GET', `/?token=${NORMAL}&crawler=${name}&callback=true&url=${site.url}`),
      ];
      for (const reply of await Promise.all(calls)) {
        expect([reply.status, reply.json.code]).toEqual([404, 'crawler_not_found']);
      }
    }
    const create = await app.rest('POST', `/crawler/${NORMAL}`, { name: '.async-normal' });
    expect(create.status).toBe(422);
  });

  test('its jobs are listed, found, deleted and purged by calls of their own', async () => {
    await using site = await startSite();
    await using app = await startApp({ env: { DEFAULT_CONCURRENCY: '1' } });
    // A crawler of that name is another thing.
    await createCrawler(app, 'async');
    expect((await app.rest('POST', `/async/${NORMAL}/purge`)).json).toEqual({ purged: 0 });
    expect((await app.rest('GET', `/async/${NORMAL}`)).json.jobs).toEqual([]);

    const running = await crawlLater(app, `${site.url}/${SLOW}`);
    await eventually(async () => {
      const { json } = await app.rest('GET', `/crawler/${NORMAL}/stats`);
      expect(json.async_crawls?.[0]?.concurrency.running).toBe(1);
    });
    const waiting: string[] = [];
    for (let n = 0; n < 5; n += 1) waiting.push(await crawlLater(app, `${site.url}/page/${n}`));

    const listed: string[] = [];
    let pageToken = '';
    do {
      const { json } = await app.rest(
        'GET',
        `/async/${NORMAL}?page_size=2&page_token=${pageToken}`,
      );
      listed.push(...json.jobs.map((job: { rid: string }) => job.rid));
      pageToken = json.next_page_token;
    } while (pageToken !== '');
    expect(listed).toEqual(waiting);
    // The other token has its own.
    expect((await app.rest('GET', `/async/${JAVASCRIPT}`)).json.jobs).toEqual([]);

    const found = await app.rest('GET', `/async/${NORMAL}/find_by_rid/${waiting[0]}`);
    expect(found.json).toMatchObject({
      status: 'QUEUED',
      request_info: { rid: waiting[0], url: `${site.url}/page/0`, retry: 0 },
    });
    const other = await app.rest('GET', `/async/${JAVASCRIPT}/find_by_rid/${waiting[0]}`);
    expect(other.json.status).toBe('NOT_QUEUED');

    const { json: stats } = await app.rest('GET', `/crawler/${NORMAL}/stats`);
    expect(stats.crawlers.map((each: { name: string }) => each.name)).toEqual(['async']);
    expect(stats.async_crawls).toMatchObject([
      { token_type: 'normal', queue: { waiting: 5 }, activity: { pushed: 6, running: 1 } },
    ]);
    expect(stats.queue.waiting).toBe(5);

    const remove = (rid: string) => app.rest('POST', `/async/${NORMAL}/delete_job?rid=${rid}`);
    expect((await remove(waiting[0] as string)).status).toBe(200);
    expect((await remove(waiting[0] as string)).status).toBe(404);
    expect((await app.rest('POST', `/async/${NORMAL}/purge`)).json).toEqual({ purged: 4 });
    expect((await app.rest('GET', `/async/${NORMAL}`)).json.jobs).toEqual([]);
    expect((await remove(running)).status).toBe(200);
    await eventually(async () => {
      const { json } = await app.rest('GET', `/crawler/${NORMAL}/stats`);
      expect(json.async_crawls[0].activity).toMatchObject({ running: 0, deleted: 2, purged: 4 });
    });
    const bad = await app.rest('GET', `/async/${NORMAL}?page_token=YQ`);
    expect([bad.status, bad.json.field]).toEqual([422, 'page_token']);
  });
});

test('a repeated creation of a webhook crawler does not tell its secret', async () => {
  const app = shared();
  const body = { name: 'feed', callback_url: 'https://hooks.example.com/crawled' };
  const first = await app.rest('POST', `/crawler/${NORMAL}`, body);
  expect(first.json.crawler.webhook_secret).toMatch(/^whsec_/);
  const second = await app.rest('POST', `/crawler/${NORMAL}`, body);
  expect([second.status, second.json.created]).toEqual([200, false]);
  expect(second.text).not.toContain('whsec_');
});

test('an account whose only crawler is the hidden one can be removed, its results with it', async () => {
  await using site = await startSite();
  const app = shared();
  const authorization = `Bearer ${ADMIN}`;
  const make = () => app.rest('POST', '/accounts', { name: 'guest' }, { authorization });
  const { normal_token: token } = (await make()).json;
  const later = await app.rest('GET', `/?token=${token}&async=true&url=${site.url}/page/1`);
  expect(later.status).toBe(200);
  await eventually(async () => {
    const { json } = await app.rest('GET', `/storage/total_count?token=${token}`);
    expect(json).toEqual({ totalCount: 1 });
  });
  // One more, which is crawled while the account goes.
  await app.rest('GET', `/?token=${token}&async=true&url=${site.url}/page/2?delay=200`);
  await app.rest('POST', `/crawler/${token}`, { name: 'own' });
  const remove = () => app.rest('DELETE', '/accounts/guest', undefined, { authorization });
  expect((await remove()).status).toBe(409);
  await app.rest('POST', `/crawler/${token}/own/delete`);
  expect((await remove()).status).toBe(200);
  const gone = await app.rest('GET', `/storage/total_count?token=${token}`);
  expect(gone.status).toBe(401);
});
