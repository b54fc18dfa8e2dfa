import { expect, test } from 'vitest';
import { PushService } from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import { StorageService } from '../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { NORMAL } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { createGrpcClient } from '../support/grpc-client.ts';
import { startReceiver } from '../support/receiver.ts';
import { shareApp } from '../support/shared-app.ts';
import { startSite } from '../support/site.ts';

const shared = shareApp();

test('a webhook is told the pushed URL in addition to the final one, in headers and in JSON', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver();
  const app = shared();
  const crawler = await createCrawler(app, 'pushed', { callback_url: receiver.url });
  const pushed = `${site.url}/redirect/1`;
  await crawler.push(pushed);
  await crawler.push(pushed, '&format=json');
  const posts = await receiver.until(2);
  for (const post of posts) {
    expect(post.headers).toMatchObject({ url: `${site.url}/page/0`, pushed_url: pushed });
  }
  const json = posts.map((post) => post.json).find((body) => body !== undefined);
  expect(json).toMatchObject({ url: `${site.url}/page/0`, pushed_url: pushed });
});

test('a stored result and an inline one carry it, too, over REST and RPC', async () => {
  await using site = await startSite();
  const app = shared();
  using grpc = createGrpcClient(`127.0.0.1:${app.port}`);
  const crawler = await createCrawler(app, 'pushed');
  const pushed = `${site.url}/redirect/1`;
  const both = { url: `${site.url}/page/0`, pushed_url: pushed };
  const rid = await crawler.push(pushed);
  expect((await crawler.stored(rid)).json).toMatchObject(both);
  const html = await app.rest('GET', `/storage?token=${NORMAL}&rid=${rid}`);
  expect(Object.fromEntries(html.headers)).toMatchObject(both);
  const bulk = await app.rest('POST', `/storage/bulk?token=${NORMAL}`, { rids: [rid] });
  expect(bulk.json).toMatchObject([both]);
  const inline = await app.rest('GET', `/?token=${NORMAL}&url=${encodeURIComponent(pushed)}`);
  expect(Object.fromEntries(inline.headers)).toMatchObject(both);
  const long = `${site.url}/page/0?${'x'.repeat(8_000)}`;
  // Twice in the headers it would be more than the HTTP clients of node and others take.
  const reply = await app.rest('GET', `/?token=${NORMAL}&url=${encodeURIComponent(long)}`);
  expect([reply.headers.get('url'), reply.headers.get('pushed_url')]).toEqual([long, null]);
  const { result } = await grpc.call(StorageService.method.getResult, { rid }, NORMAL);
  expect(result).toMatchObject({ url: both.url, pushedUrl: pushed });
  const crawled = await grpc.call(PushService.method.crawl, { url: pushed }, NORMAL);
  expect(crawled).toMatchObject({ url: both.url, pushedUrl: pushed });
});

test('a URL whose host has a name that none can have is refused', async () => {
  const crawler = await createCrawler(shared(), 'hosts', { max_retries: 0 });
  const url = (length: number) => `http://${'a'.repeat(length - 8)}.invalid:8080/`;
  expect((await crawler.tryPush(url(253))).status).toBe(200);
  const refused = await crawler.tryPush(url(254));
  expect([refused.status, refused.json.field]).toEqual([422, 'url']);
});

test('the header url of a result has no spaces; JSON has the URL as it was pushed', async () => {
  await using receiver = await startReceiver();
  const app = shared();
  const pushed = 'http://127.0.0.1:9/a b?q=c d';
  const encoded = 'http://127.0.0.1:9/a%20b?q=c%20d';
  const hook = await createCrawler(app, 'pushed', { callback_url: receiver.url, max_retries: 0 });
  await hook.push(pushed);
  const [post] = await receiver.until(1);
  expect(post?.headers).toMatchObject({ url: encoded });
  const kept = await createCrawler(app, 'kept', { max_retries: 0 });
  const rid = await kept.push(pushed);
  const stored = await kept.stored(rid);
  expect([stored.headers.get('url'), stored.json.url]).toEqual([encoded, pushed]);
  const inline = await app.rest('GET', `/?token=${NORMAL}&url=${encodeURIComponent(pushed)}`);
  expect(inline.headers.get('url')).toBe(encoded);
});
