import { expect, test } from 'vitest';
import { JAVASCRIPT, NORMAL, startApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { shareApp } from '../support/shared-app.ts';
import { startSite } from '../support/site.ts';
import { createTestClock } from '../support/test-clock.ts';

const unknown = '0123456789abcdef01234567';

const shared = shareApp();

test('by url: the newest record of what was pushed', async () => {
  await using site = await startSite();
  const app = shared();
  const crawler = await createCrawler(app, 'url');
  const url = `${site.url}/redirect/1`;
  const older = await crawler.push(url);
  await crawler.stored(older);
  const newer = await crawler.push(url);
  await crawler.stored(newer);
  const found = await app.rest(
    'GET',
    `/storage?token=${NORMAL}&url=${encodeURIComponent(url)}&format=json`,
  );
  expect(found.json).toMatchObject({ rid: newer, url: `${site.url}/page/0` });
  expect(found.json.stored_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d|Z)$/);
  expect((await app.rest('GET', `/storage?token=${NORMAL}`)).status).toBe(422);
});

test('by url: white space around it counts as little as in the push', async () => {
  await using site = await startSite();
  const app = shared();
  const crawler = await createCrawler(app, 'spaced');
  const url = encodeURIComponent(` ${site.url}/page/1\n`);
  const pushed = await app.rest('GET', `/?token=${NORMAL}&callback=true&crawler=spaced&url=${url}`);
  await crawler.stored(pushed.json.rid);
  const found = await app.rest('GET', `/storage?token=${NORMAL}&url=${url}&format=json`);
  expect(found.json).toMatchObject({ rid: pushed.json.rid, url: `${site.url}/page/1` });
  const none = await app.rest('GET', `/storage?token=${NORMAL}&url=%20`);
  expect([none.status, none.json.code]).toEqual([422, 'missing_rid']);
});

test('a stored page as Markdown, over REST and RPC', async () => {
  const html = { 'content-type': 'text/html; charset=utf-8' };
  const long = `<p>${'words '.repeat(700_000)}</p>`;
  await using site = await startSite({
    routes: {
      '/article': (_, response) =>
        void response.writeHead(200, html).end('<h1>Grüße</h1><p>An <b>article</b>.</p>'),
      '/long': (_, response) => void response.writeHead(200, html).end(long),
    },
  });
  const app = shared();
  const crawler = await createCrawler(app, 'markdown');
  const [article = '', json = '', missing = '', tooLong = ''] = await Promise.all(
    ['/article', '/echo', '/status/404', '/long'].map((path) => crawler.push(site.url + path)),
  );
  await Promise.all([article, json, missing, tooLong].map((rid) => crawler.stored(rid)));
  const read = (rid: string) =>
    app.rest('GET', `/storage?token=${NORMAL}&rid=${rid}&format=md`, undefined, {
      'accept-encoding': 'gzip',
    });
  const page = await read(article);
  expect(page.text.trim()).toBe('# Grüße\n\nAn **article**.');
  expect(page.headers.get('content-type')).toBe('text/plain; charset=utf-8');
  expect(page.headers.get('cb_status')).toBe('200');
  const asRpc = await app.rest(
    'POST',
    '/queuedcrawler.v1.StorageService/GetResult',
    { rid: article, format: 'STORAGE_FORMAT_MD' },
    { authorization: `Bearer ${NORMAL}` },
  );
  expect(asRpc.json.result.contentType).toBe('text/markdown; charset=utf-8');
  // What is no HTML, or too long to be parsed, is answered as it is.
  expect(JSON.parse((await read(json)).text)).toMatchObject({ method: 'GET' });
  expect((await read(tooLong)).text).toBe(long);
});

test('delete, one by one and in bulk, in the words clients know', async () => {
  await using site = await startSite();
  const app = shared();
  const crawler = await createCrawler(app, 'delete');
  const rids = await Promise.all([1, 2, 3].map((n) => crawler.push(`${site.url}/page/${n}`)));
  await Promise.all(rids.map((rid) => crawler.stored(rid)));
  const one = await app.rest('DELETE', `/storage?token=${NORMAL}&rid=${rids[0]}`);
  expect(one.json).toEqual({ success: 'The Storage item has been deleted successfully' });
  const again = await app.rest('DELETE', `/storage?token=${NORMAL}&rid=${rids[0]}`);
  expect([again.status, again.json]).toEqual([200, { error: 'Not Found' }]);
  const bulk = await app.rest('POST', `/storage/bulk_delete?token=${NORMAL}`, {
    rids: [rids[1], unknown],
  });
  expect(bulk.json).toEqual([
    { rid: rids[1], result: 'Deleted', status: true },
    { rid: unknown, result: 'Not Found', status: false },
  ]);
  expect((await app.rest('GET', `/storage/total_count?token=${NORMAL}`)).json).toEqual({
    totalCount: 1,
  });
});

test('rids: newest first in a bare array, with scroll page by page in either order', async () => {
  await using site = await startSite();
  const app = shared();
  const crawler = await createCrawler(app, 'rids');
  const rids: string[] = [];
  for (let n = 0; n < 5; n++) {
    const rid = await crawler.push(`${site.url}/page/${n}`);
    await crawler.stored(rid);
    rids.push(rid);
  }
  const list = (query: string) => app.rest('GET', `/storage/rids?token=${NORMAL}${query}`);
  expect((await list('')).json).toEqual(rids.toReversed());
  expect((await list('&limit=2')).json).toEqual(rids.toReversed().slice(0, 2));
  const pages: string[] = [];
  let page = await list('&limit=2&scroll=true&scroll_order=asc');
  while (page.json.rids.length > 0) {
    pages.push(...page.json.rids);
    if (page.json.scroll_id === '') break;
    page = await list(`&limit=2&scroll_id=${encodeURIComponent(page.json.scroll_id)}`);
  }
  expect(pages).toEqual(rids);
  for (const query of ['&limit=0', '&limit=10001', '&scroll_id=nonsense']) {
    expect([query, (await list(query)).status]).toEqual([query, 422]);
  }
});

test.each(['asc', 'desc'])('rids %s, until a page has none', async (order) => {
  await using site = await startSite();
  await using app = await startApp();
  const crawler = await createCrawler(app, 'scrolled');
  const rids: string[] = [];
  for (let n = 0; n < 3; n++) {
    const rid = await crawler.push(`${site.url}/page/${n}`);
    await crawler.stored(rid);
    rids.push(rid);
  }
  // A client that sends its parameters again with the `scroll_id` of the last reply in them.
  const parameters = new URLSearchParams({ token: NORMAL, limit: '2', scroll: 'true' });
  parameters.set('scroll_order', order);
  const pages: string[][] = [];
  do {
    const { json } = await app.rest('GET', `/storage/rids?${parameters.toString()}`);
    pages.push(json.rids);
    parameters.set('scroll_id', json.scroll_id);
  } while (pages.at(-1)?.length !== 0 && pages.length < 9);
  const expected = order === 'asc' ? rids : rids.toReversed();
  expect(pages).toEqual([expected.slice(0, 2), expected.slice(2), []]);
  expect(parameters.get('scroll_id')).toBe('');
});

test('the stores of the two tokens are separate', async () => {
  await using site = await startSite();
  await using app = await startApp();
  const crawler = await createCrawler(app, 'mine');
  const rid = await crawler.push(`${site.url}/page/1`);
  await crawler.stored(rid);
  const other = await app.rest('GET', `/storage?token=${JAVASCRIPT}&rid=${rid}`);
  expect(other.status).toBe(404);
  const count = await app.rest('GET', `/storage/total_count?token=${JAVASCRIPT}`);
  expect(count.json).toEqual({ totalCount: 0 });
  const stats = (await app.rest('GET', `/crawler/${JAVASCRIPT}/stats`)).json;
  const [normal, javascript] = stats.stored;
  expect(normal).toMatchObject({ token_type: 'normal', results: 1 });
  expect(normal.bytes).toBeGreaterThan(1_024);
  expect(javascript).toMatchObject({ token_type: 'javascript', results: 0, bytes: 0 });
  const rids = { rids: [rid] };
  expect((await app.rest('POST', `/storage/bulk?token=${JAVASCRIPT}`, rids)).json).toEqual([]);
});

test('results are kept for fourteen days', async () => {
  const clock = createTestClock();
  await using site = await startSite();
  await using app = await startApp({ clock });
  const crawler = await createCrawler(app, 'kept');
  const rid = await crawler.push(`${site.url}/page/1`);
  await crawler.stored(rid);
  clock.advance(13 * 24 * 3_600_000);
  await crawler.stored(await crawler.push(`${site.url}/page/2`));
  await crawler.stored(rid);
  clock.advance(2 * 24 * 3_600_000);
  await eventually(async () => {
    expect((await app.rest('GET', `/storage?token=${NORMAL}&rid=${rid}`)).status).toBe(404);
  });
  expect((await app.rest('GET', `/storage/total_count?token=${NORMAL}`)).json.totalCount).toBe(1);
});
