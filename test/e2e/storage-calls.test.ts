import { expect, test } from 'vitest';
import { JAVASCRIPT, NORMAL, startApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startSite } from '../support/site.ts';
import { createTestClock } from '../support/test-clock.ts';

const unknown = '0123456789abcdef01234567';

test('by url: the newest record of what was pushed', async () => {
  await using site = await startSite();
  await using app = await startApp();
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

test('delete, one by one and in bulk, in the words clients know', async () => {
  await using site = await startSite();
  await using app = await startApp();
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
  await using app = await startApp();
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
