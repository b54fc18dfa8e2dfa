import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startMailServer } from '../support/mail-server.ts';
import { startSite } from '../support/site.ts';
import { createFrozenClock, createTestClock } from '../support/test-clock.ts';

const url = 'https://example.com/';
const itemsOf = (count: number): { url: string }[] =>
  Array.from({ length: count }, () => ({ url }));

interface Result {
  readonly rid: string;
  readonly error?: { readonly code: string; readonly retry_after_ms: number };
}

test('a crawler holds no more than its limit, in single pushes and in the middle of a batch', async () => {
  await using app = await startApp({ env: { CRAWLER_QUEUE_LIMIT: '5' } });
  const crawler = await createCrawler(app, 'full');
  const other = await createCrawler(app, 'other');
  await Promise.all([crawler.post('pause'), other.post('pause')]);
  const batch = await crawler.post('push_batch', { items: itemsOf(7) });
  const codes = batch.json.results.map((each: Result) => each.error?.code);
  expect(codes).toEqual([...Array(5).fill(undefined), 'crawler_queue_full', 'crawler_queue_full']);
  const refused = await crawler.tryPush(url);
  expect(refused.status).toBe(429);
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(refused.json).toMatchObject({ code: 'crawler_queue_full', limit: 5 });
  await other.push(url);
  await crawler.post('purge');
  await crawler.push(url);
  expect((await crawler.details()).activity).toMatchObject({ pushed: 6, waiting: 1, purged: 5 });
});

test('over the limit of the account all pushes are refused until it is drained; one mail an episode', async () => {
  const clock = createTestClock();
  await using mail = await startMailServer();
  await using app = await startApp({
    clock,
    env: { ACCOUNT_QUEUE_LIMIT: '10', SMTP_URL: mail.url, ACCOUNT_EMAIL: 'owner@example.com' },
  });
  const first = await createCrawler(app, 'first');
  const second = await createCrawler(app, 'second');
  await Promise.all([first.post('pause'), second.post('pause')]);
  await first.post('push_batch', { items: itemsOf(6) });
  await second.post('push_batch', { items: itemsOf(4) });
  expect(mail.mails).toEqual([]);
  // The total may exceed the limit by the push that crosses it; from then on nothing is accepted.
  const crossing = await second.post('push_batch', { items: itemsOf(3) });
  const codes = crossing.json.results.map((each: Result) => each.error?.code);
  expect(codes).toEqual([undefined, 'account_queue_full', 'account_queue_full']);
  for (const crawler of [first, second]) {
    const refused = await crawler.tryPush(url);
    expect([refused.status, refused.json.code]).toEqual([429, 'account_queue_full']);
  }
  await eventually(() => expect(mail.mails).toHaveLength(1));
  await first.post('purge');
  await first.push(url);
  await first.post('push_batch', { items: itemsOf(9) });
  await eventually(() => {
    // An account gets one mail in five minutes.
    clock.advance(60_000);
    expect(mail.mails).toHaveLength(2);
  });
});

test('without a mail server the log names what to set', async () => {
  await using app = await startApp({
    env: { ACCOUNT_QUEUE_LIMIT: '1', ACCOUNT_EMAIL: 'owner@example.com' },
  });
  const crawler = await createCrawler(app, 'unmailed');
  await crawler.post('pause');
  await crawler.post('push_batch', { items: itemsOf(2) });
  await eventually(() => expect(app.log.join('')).toContain('SMTP_URL'));
});

test('a token pushes 30 URLs a second, a batch counting its items', async () => {
  const clock = createFrozenClock();
  await using app = await startApp({ clock, env: { PUSH_RATE_PER_SECOND: '' } });
  const crawler = await createCrawler(app, 'rate');
  await crawler.post('pause');
  const batch = await crawler.post('push_batch', { items: itemsOf(100) });
  const accepted = batch.json.results.filter((each: Result) => each.rid !== '');
  // The bucket holds one second's worth.
  expect(accepted).toHaveLength(30);
  const last = batch.json.results.at(-1) as Result;
  expect(last.error?.code).toBe('rate_limited');
  expect(last.error?.retry_after_ms).toBeGreaterThan(0);
  const burst = await Promise.all(Array.from({ length: 40 }, () => crawler.tryPush(url)));
  const refused = burst.find((reply) => reply.status === 429);
  expect(refused?.headers.get('retry-after')).toBe('1');
  expect(refused?.json).toMatchObject({ code: 'rate_limited', limit: 30 });
  clock.advance(1_000);
  await crawler.push(url);
});

test('inline crawls over the concurrency of a token are refused as clients know it', async () => {
  await using app = await startApp({ env: { INLINE_CONCURRENCY: '2' } });
  const answers = Promise.withResolvers<void>();
  await using site = await startSite({
    routes: {
      '/held': (_request, response) => void answers.promise.then(() => response.end('page')),
    },
  });
  const target = encodeURIComponent(`${site.url}/held`);
  const crawl = () => app.rest('GET', `/?token=${NORMAL}&url=${target}`);
  const others = [crawl(), crawl()];
  await eventually(() => expect(site.hits('/held')).toBe(2));
  const refused = await crawl();
  expect(refused.status).toBe(429);
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(refused.json).toMatchObject({ error: 'Concurrency limit reached', limit: 2 });
  answers.resolve();
  expect((await Promise.all(others)).map(({ status }) => status)).toEqual([200, 200]);
});

test('what a call did not queue for rate or room is refused as request_id_used when it is repeated', async () => {
  const clock = createTestClock();
  await using app = await startApp({
    clock,
    env: { PUSH_RATE_PER_SECOND: '4', CRAWLER_QUEUE_LIMIT: '2' },
  });
  const crawler = await createCrawler(app, 'repeated');
  await crawler.post('pause');
  const request = { items: itemsOf(100), request_id: 'once' };
  const send = async () => (await crawler.post('push_batch', request)).json.results as Result[];
  const codesOf = (results: Result[]) => new Set(results.map(({ error }) => error?.code));
  const first = await send();
  expect(codesOf(first)).toEqual(new Set([undefined, 'crawler_queue_full', 'rate_limited']));
  for (const isLater of [false, true]) {
    if (isLater) {
      await crawler.post('purge');
      clock.advance(60_000);
    }
    const again = await send();
    expect(again.slice(0, 2)).toEqual(first.slice(0, 2));
    expect(codesOf(again.slice(2))).toEqual(new Set(['request_id_used']));
  }
  expect((await crawler.details()).activity).toMatchObject({ pushed: 2 });
});
