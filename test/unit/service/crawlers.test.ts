import { afterAll, beforeAll, expect, test } from 'vitest';
import { ASYNC_CRAWLER, ensureAsyncCrawler } from '../../../src/service/crawlers/async-crawler.ts';
import { createUseCases, openEmbeddedStore } from '../../support/use-cases.ts';

let opened: Awaited<ReturnType<typeof openEmbeddedStore>>;
beforeAll(async () => {
  opened = await openEmbeddedStore();
});
afterAll(() => opened[Symbol.asyncDispose]());

const WEBHOOK = { settings: {}, callbackUrl: 'https://example.com/in' };
const STORAGE = { settings: {} };
const OFF = { maxPerHost: 0, delayMs: 0, robotsTxt: false };

async function setUp(options: Parameters<typeof createUseCases>[1] = {}) {
  const useCases = createUseCases(opened.store, options);
  return { ...useCases, owner: await useCases.account() };
}

test('a creation takes the operator’s defaults, then the service’s, and stays as it was made', async () => {
  const { crawlers, owner } = await setUp({ defaults: { concurrency: 7 } });
  const made = await crawlers.create(owner.normal, 'shop', {
    ...WEBHOOK,
    settings: { maxRetries: 3 },
  });
  expect(made).toMatchObject({
    created: true,
    crawler: {
      name: 'shop',
      tokenType: 'normal',
      delivery: 'webhook',
      callbackUrl: 'https://example.com/in',
      concurrency: 7,
      deliveryConcurrency: 0,
      maxRetries: 3,
      retryWindowHours: 48,
      politeness: undefined,
      webhookSecrets: [{ secret: expect.stringMatching(/^whsec_/) as string }],
    },
    counters: { waiting: 0, pushed: 0 },
  });
  expect((await crawlers.details(owner.normal, 'shop')).crawler).toEqual(made.crawler);
});

test('a creation may be repeated with the same values, in part or in whole', async () => {
  const { crawlers, owner } = await setUp();
  const first = await crawlers.create(owner.normal, 'shop', {
    ...WEBHOOK,
    settings: { concurrency: 5, politeness: OFF },
  });
  for (const settings of [{}, { concurrency: 5 }, { politeness: OFF }]) {
    const again = await crawlers.create(owner.normal, 'shop', { ...WEBHOOK, settings });
    expect(again).toMatchObject({ created: false, crawler: first.crawler });
  }
});

test.each([
  ['concurrency', { ...WEBHOOK, settings: { concurrency: 6 } }],
  ['politeness', { ...WEBHOOK, settings: { politeness: { ...OFF, robotsTxt: true } } }],
  ['callback_url', { ...WEBHOOK, callbackUrl: 'https://example.com/other' }],
  ['delivery', STORAGE],
])('a repeated creation with another %s is a conflict that names it', async (field, input) => {
  const { crawlers, owner } = await setUp();
  await crawlers.create(owner.normal, 'shop', { ...WEBHOOK, settings: { concurrency: 5 } });
  await expect(crawlers.create(owner.normal, 'shop', input)).rejects.toMatchObject({
    kind: 'conflict',
    reason: 'crawler_exists',
    field,
  });
});

test('a name that the other token has taken is a conflict', async () => {
  const { crawlers, owner } = await setUp();
  await crawlers.create(owner.normal, 'shop', STORAGE);
  await expect(crawlers.create(owner.javascript, 'shop', STORAGE)).rejects.toMatchObject({
    reason: 'crawler_exists',
    field: 'token_type',
  });
});

test.each([
  [{ ...STORAGE, delivery: 'webhook' }, 'callback_url', 'Webhook delivery needs a callback_url.'],
  [{ ...WEBHOOK, delivery: 'storage' }, 'callback_url', 'Storage delivery takes no callback_url.'],
  [
    { ...STORAGE, tokenType: 'javascript' },
    'token_type',
    'token_type must be the type of the token that is used.',
  ],
  [
    { ...STORAGE, callbackUrl: 'http://localhost/in' },
    'callback_url',
    'callback_url is this machine.',
  ],
] as const)('the creation %j is refused', async (input, field, message) => {
  const { crawlers, owner } = await setUp();
  await expect(crawlers.create(owner.normal, 'shop', input)).rejects.toMatchObject({
    kind: 'invalid',
    field,
    message,
  });
  await expect(crawlers.details(owner.normal, 'shop')).rejects.toMatchObject({
    reason: 'crawler_not_found',
  });
});

test('a list has the crawlers of its token page by page, without the service’s own', async () => {
  const { crawlers, asyncJobs, pushing, store, clock, owner } = await setUp();
  for (const name of ['c', 'a', 'b']) await crawlers.create(owner.normal, name, STORAGE);
  await crawlers.create(owner.javascript, 'other', STORAGE);
  await ensureAsyncCrawler({ crawlers: store.crawlers, clock, defaults: {} }, owner.normal);
  await pushing.push(owner.normal, ASYNC_CRAWLER, { url: 'https://example.com/', parameters: {} });
  expect((await asyncJobs.list(owner.normal, { limit: 10 })).rows).toHaveLength(1);
  const names = async (limit: number, after: string) =>
    (await crawlers.list(owner.normal, limit, after)).map(({ name }) => name);
  expect(await names(2, '')).toEqual(['a', 'b']);
  expect(await names(2, 'b')).toEqual(['c']);
  expect(await names(10, '.')).toEqual(['a', 'b', 'c']);
});

test('an update changes what it names, and politeness that asks for nothing switches it off', async () => {
  const { crawlers, owner } = await setUp();
  const politeness = { ...OFF, delayMs: 100 };
  await crawlers.create(owner.normal, 'shop', { ...WEBHOOK, settings: { politeness } });
  const update = async (input: Parameters<typeof crawlers.update>[2]) =>
    (await crawlers.update(owner.normal, 'shop', input)).crawler;
  expect(await update({ settings: { concurrency: 9 } })).toMatchObject({
    concurrency: 9,
    politeness,
    callbackUrl: 'https://example.com/in',
  });
  expect(await update({ settings: { politeness: OFF } })).toMatchObject({
    concurrency: 9,
    politeness: undefined,
  });
  expect(await update({ settings: {}, callbackUrl: 'https://example.com/new' })).toMatchObject({
    concurrency: 9,
    callbackUrl: 'https://example.com/new',
  });
});

test.each([
  [{ settings: {} }, 'nothing_to_change', undefined],
  [{ settings: {}, delivery: 'webhook' }, 'delivery_mode_fixed', 'delivery'],
  [{ settings: {}, tokenType: 'javascript' }, 'token_type_fixed', 'token_type'],
  [{ settings: {}, callbackUrl: 'https://example.com/' }, 'delivery_mode_fixed', 'callback_url'],
  [{ settings: { concurrency: 0 } }, 'invalid_concurrency', 'concurrency'],
  [
    { settings: { concurrency: 9, deliveryConcurrency: 2 } },
    'invalid_delivery_concurrency',
    'delivery_concurrency',
  ],
] as const)('the update %j of a storage crawler is refused', async (input, reason, field) => {
  const { crawlers, owner } = await setUp();
  const { crawler } = await crawlers.create(owner.normal, 'shop', STORAGE);
  await expect(crawlers.update(owner.normal, 'shop', input)).rejects.toMatchObject({
    reason,
    field,
  });
  expect((await crawlers.details(owner.normal, 'shop')).crawler).toEqual(crawler);
});

test('an update that changes nothing says what can be changed', async () => {
  const { crawlers, owner } = await setUp();
  await crawlers.create(owner.normal, 'shop', STORAGE);
  await expect(crawlers.update(owner.normal, 'shop', STORAGE)).rejects.toThrow(
    'give callback_url, concurrency, delivery_concurrency, deliver_batch, max_retries, retry_window_hours, politeness, proxy, escalate, max_proxy_megabytes_a_day, group_by_domain, unique, unique_for, notify_after_minutes or notify_batches.',
  );
});

test('a crawler of the other token, of another account, or of no name is not found or forbidden', async () => {
  const { crawlers, owner, account } = await setUp();
  await crawlers.create(owner.normal, 'shop', STORAGE);
  const stranger = await account();
  const details = (caller: typeof owner.normal, name: string) => crawlers.details(caller, name);
  await expect(details(owner.javascript, 'shop')).rejects.toMatchObject({
    kind: 'forbidden',
    reason: 'wrong_token_type',
  });
  const notFound = { kind: 'not_found', reason: 'crawler_not_found', field: 'name' };
  await expect(details(stranger.normal, 'shop')).rejects.toMatchObject(notFound);
  await expect(details(owner.normal, '.async-normal')).rejects.toMatchObject(notFound);
  await expect(details(owner.normal, '')).rejects.toMatchObject({ reason: 'missing_name' });
});

test('a paused crawler says so, and unpausing wakes it', async () => {
  const { crawlers, owner, calls } = await setUp();
  const { crawler } = await crawlers.create(owner.normal, 'shop', STORAGE);
  expect((await crawlers.pause(owner.normal, 'shop')).crawler.pausedByUser).toBe(true);
  expect(calls.wakes).toEqual([]);
  expect((await crawlers.unpause(owner.normal, 'shop')).crawler.pausedByUser).toBe(false);
  expect(calls.wakes).toEqual([`crawl ${crawler.crawlerId}`]);
});

test('a rotated secret signs alone after a day; a storage crawler has none', async () => {
  const { crawlers, owner, clock } = await setUp();
  const { crawler } = await crawlers.create(owner.normal, 'hook', WEBHOOK);
  const { secret, previousUntil } = await crawlers.rotateSecret(owner.normal, 'hook');
  expect(previousUntil.getTime() - clock.now().getTime()).toBeGreaterThan(23 * 3_600_000);
  const known = (await crawlers.details(owner.normal, 'hook')).crawler.webhookSecrets;
  expect(known.map((each) => each.secret)).toEqual([secret, crawler.webhookSecrets[0]?.secret]);
  await crawlers.create(owner.normal, 'store', STORAGE);
  await expect(crawlers.rotateSecret(owner.normal, 'store')).rejects.toMatchObject({
    kind: 'failed_precondition',
    reason: 'no_webhook',
    message: 'A storage-mode crawler signs nothing.',
  });
});

test('rotations at the same moment all keep the secret that they return', async () => {
  const { crawlers, owner } = await setUp();
  await crawlers.create(owner.normal, 'hook', WEBHOOK);
  const rotated = await Promise.all(
    Array.from({ length: 3 }, () => crawlers.rotateSecret(owner.normal, 'hook')),
  );
  const known = (await crawlers.details(owner.normal, 'hook')).crawler.webhookSecrets;
  expect(known.map((each) => each.secret)).toEqual(
    expect.arrayContaining(rotated.map((each) => each.secret)),
  );
});

test('a removed crawler is gone with its queue, and its crawls are aborted', async () => {
  const { crawlers, pushing, owner, calls } = await setUp();
  const { crawler } = await crawlers.create(owner.normal, 'shop', STORAGE);
  const items = ['a', 'b'].map((path) => ({ url: `https://example.com/${path}`, parameters: {} }));
  await pushing.pushBatch(owner.normal, 'shop', items, '');
  expect(await crawlers.remove(owner.normal, 'shop')).toBe(2);
  expect(calls.aborted).toEqual([crawler.crawlerId]);
  await expect(crawlers.remove(owner.normal, 'shop')).rejects.toMatchObject({
    reason: 'crawler_not_found',
    field: 'name',
  });
  await expect(pushing.pushBatch(owner.normal, 'shop', items, '')).rejects.toMatchObject({
    reason: 'crawler_not_found',
    field: 'crawler',
  });
});

test('a quota of crawlers refuses one too many, and the service’s own do not count', async () => {
  const { crawlers, owner } = await setUp({ accountLimits: { crawlers: 1 } });
  await crawlers.create(owner.normal, 'first', STORAGE);
  await expect(crawlers.create(owner.normal, 'second', STORAGE)).rejects.toMatchObject({
    kind: 'invalid',
    reason: 'crawlers_quota_exceeded',
  });
  expect(await crawlers.create(owner.normal, 'first', STORAGE)).toMatchObject({ created: false });
});
