import { expect, test } from 'vitest';
import { NORMAL } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { startReceiver } from '../support/receiver.ts';
import { shareApp } from '../support/shared-app.ts';
import { type SiteRoute, startSite } from '../support/site.ts';

/** A page that is another one at each request. */
function countingPage(): SiteRoute {
  let n = 0;
  return (_request, response) => {
    n += 1;
    response.writeHead(200, { 'content-type': 'text/html', etag: `"${n}"` }).end(`<p>no ${n}`);
  };
}

const shared = shareApp();

test('a stored page that is young enough is the result, without a request', async () => {
  await using site = await startSite({ routes: { '/news': countingPage() } });
  await using receiver = await startReceiver();
  const app = shared();
  const shop = await createCrawler(app, 'shop');
  const hook = await createCrawler(app, 'hook', { callback_url: receiver.url });
  const url = `${site.url}/news`;
  const first = await shop.stored(await shop.push(url));
  expect(first.json).toMatchObject({ body: '<p>no 1' });
  expect(first.json).not.toHaveProperty('crawled_at');

  const second = await shop.stored(await shop.push(url, '&max_age=600'));
  expect(second.json).toMatchObject({
    body: '<p>no 1',
    cb_status: 200,
    original_status: 200,
    crawled_at: expect.stringMatching(/^20.*Z$/),
  });
  const inline = await app.rest('GET', `/?token=${NORMAL}&url=${url}&max_age=600&format=json`);
  expect(inline.json).toMatchObject({ body: '<p>no 1', crawled_at: second.json.crawled_at });
  const rid = await hook.push(url, '&max_age=600&format=json');
  await receiver.until(1);
  const [post] = receiver.byRid(rid);
  expect(post?.headers).toMatchObject({ cb_status: '200' });
  expect(post?.headers['webhook-crawled-at']).toBe(second.json.crawled_at);
  expect(post?.json).toMatchObject({ rid, body: '<p>no 1' });
  expect(site.hits('/news')).toBe(1);
  expect((await shop.details()).activity).toMatchObject({ completed: 2 });
});

test('another token, other parameters, a POST, a failure and an older page are crawled', async () => {
  await using site = await startSite({ routes: { '/news': countingPage() } });
  const app = shared();
  const shop = await createCrawler(app, 'shop', { max_retries: 0 });
  const url = `${site.url}/news`;
  const push = async (more: string) => (await shop.stored(await shop.push(url, more))).json.body;
  expect(await push('&max_age=600')).toBe('<p>no 1');
  expect(await push('&max_age=600&user_agent=other')).toBe('<p>no 2');
  expect(await push('&user_agent=other&max_age=60&pretty=true')).toBe('<p>no 2');
  expect(await push('&max_age=600')).toBe('<p>no 1');
  expect(await push('')).toBe('<p>no 3');
  // What came from storage does not grow younger by that.
  expect(await push('&max_age=600')).toBe('<p>no 3');
  const items = [{ url, method: 'POST', parameters: { max_age: 600 } }];
  const posted = await app.rest('POST', `${shop.path}/push_batch`, { items });
  expect((await shop.stored(posted.json.results[0].rid as string)).json.body).toBe('<p>no 4');
  const lost = `${site.url}/status/500`;
  await shop.stored(await shop.push(lost));
  await shop.stored(await shop.push(lost, '&max_age=600'));
  expect(site.hits('/status/500')).toBe(2);
  const old = await shop.tryPush(url, '&max_age=0');
  expect([old.status, old.json.field]).toEqual([422, 'max_age']);
});

test('the headers of a stored page come along, and Markdown has a page of its own', async () => {
  await using site = await startSite({ routes: { '/news': countingPage() } });
  const app = shared();
  const shop = await createCrawler(app, 'shop');
  const url = `${site.url}/news`;
  const push = async (more: string) => (await shop.stored(await shop.push(url, more))).json;
  expect(await push('&get_headers=true')).toMatchObject({ original_etag: '"1"' });
  expect(await push('&get_headers=true&max_age=99')).toMatchObject({
    original_etag: '"1"',
    body: '<p>no 1',
  });
  expect((await push('&format=md&max_age=99')).body).toMatch(/^no 2/);
  expect((await push('&format=md&max_age=99')).body).toMatch(/^no 2/);
  expect(site.hits('/news')).toBe(2);
});
