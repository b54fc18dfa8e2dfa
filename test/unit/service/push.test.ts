import { afterAll, beforeAll, expect, test } from 'vitest';
import { DomainError } from '../../../src/domain/errors.ts';
import type { PushedItem } from '../../../src/service/queue/push.ts';
import type { PushInput } from '../../../src/service/queue/push-input.ts';
import type { Store } from '../../../src/store/store.ts';
import { createUseCases, openEmbeddedStore, type UseCaseOptions } from '../../support/use-cases.ts';

let opened: Awaited<ReturnType<typeof openEmbeddedStore>>;
beforeAll(async () => {
  opened = await openEmbeddedStore();
});
afterAll(() => opened[Symbol.asyncDispose]());

const page = (path: string, more: Partial<PushInput> = {}): PushInput => ({
  url: `https://example.com/${path}`,
  parameters: {},
  ...more,
});
const pages = (count: number): PushInput[] => Array.from({ length: count }, (_, n) => page(`${n}`));

/** `rid`, or the reason of the refusal, for each item. */
const outcomes = (items: readonly PushedItem[]): string[] =>
  items.map((item) => ('rid' in item ? 'rid' : item.error.reason));

async function setUp(
  options: UseCaseOptions = {},
  callbackUrl?: string,
  store: Store = opened.store,
) {
  const useCases = createUseCases(store, options);
  const owner = await useCases.account();
  const input = callbackUrl === undefined ? {} : { callbackUrl };
  const { crawler } = await useCases.crawlers.create(owner.normal, 'shop', {
    settings: {},
    ...input,
  });
  return { ...useCases, owner, crawler, crawlerId: crawler.crawlerId };
}

test('a pushed URL is queued under the rid that is returned, and its idle crawler woken', async () => {
  const { pushing, jobs, owner, calls, crawlerId } = await setUp();
  const { rid } = await pushing.push(owner.normal, 'shop', page('a'));
  expect(await jobs.find(owner.normal, 'shop', rid)).toMatchObject({
    rid,
    url: 'https://example.com/a',
    state: 'waiting',
    retry: 0,
  });
  expect(calls.wakes).toEqual([`crawl ${crawlerId}`]);
});

test('the run of an idle crawler begins while its URL is written, and is not begun again', async () => {
  const runs: string[] = [];
  let isWritten = false;
  const { queue } = opened.store;
  const store = {
    ...opened.store,
    queue: {
      ...queue,
      async push(...args: Parameters<typeof queue.push>) {
        const receipt = await queue.push(...args);
        isWritten = true;
        return receipt;
      },
    },
  };
  const runNow = (name: string, key: string): boolean => {
    runs.push(`${isWritten ? 'late' : 'early'} ${name} ${key}`);
    return true;
  };
  const { pushing, owner, calls, crawlerId } = await setUp({ runNow }, undefined, store);
  await pushing.push(owner.normal, 'shop', page('a'));
  expect(runs).toEqual([`early crawl ${crawlerId}`]);
  expect(calls.wakes).toEqual([]);
});

test('a crawler that somebody dispatches is not woken', async () => {
  const { pushing, owner, calls, crawlerId, clock } = await setUp();
  await opened.store.queue.acquire(crawlerId, 'another process', 15_000, clock.now());
  await pushing.push(owner.normal, 'shop', page('a'));
  expect(calls.wakes).toEqual([]);
});

test('a batch answers item by item, in order, and queues those that can be', async () => {
  const { pushing, owner, calls, crawlers } = await setUp();
  const items = [
    page('good'),
    { url: 'nothing', parameters: {} },
    page('also', { queueTimeout: 5 }),
    page('late', { queueTimeout: 10_081 }),
    page('verb', { method: 'BREW' }),
  ];
  const results = await pushing.pushBatch(owner.normal, 'shop', items, '');
  expect(outcomes(results)).toEqual([
    'rid',
    'invalid_url',
    'rid',
    'invalid_queue_timeout',
    'invalid_method',
  ]);
  expect(calls.pushed).toEqual([[2, 3]]);
  expect((await crawlers.details(owner.normal, 'shop')).counters).toMatchObject({ waiting: 2 });
});

test('a single push throws what a refused item of a batch carries', async () => {
  const { pushing, owner } = await setUp();
  const input = { url: 'nothing', parameters: {} };
  const [item] = await pushing.pushBatch(owner.normal, 'shop', [input], '');
  const error = item !== undefined && 'error' in item ? item.error : undefined;
  expect(error).toBeInstanceOf(DomainError);
  await expect(pushing.push(owner.normal, 'shop', input)).rejects.toEqual(error);
});

test.each([
  [[], '', 'invalid_items', 'items'],
  [pages(1_001), '', 'invalid_items', 'items'],
  [pages(1), 'x'.repeat(65), 'invalid_request_id', 'request_id'],
] as const)(
  'a batch of %j with request_id "%s" is refused as a whole',
  async (items, id, reason, field) => {
    const { pushing, owner } = await setUp();
    await expect(pushing.pushBatch(owner.normal, 'shop', items, id)).rejects.toMatchObject({
      reason,
      field,
    });
  },
);

test('callback headers are read for a webhook crawler and ignored for a storage one', async () => {
  const input = page('a', { callbackHeaders: 'no header at all' });
  const hook = await setUp({}, 'https://example.com/in');
  const refused = hook.pushing.push(hook.owner.normal, 'shop', input);
  await expect(refused).rejects.toMatchObject({ field: 'callback_headers' });
  const { rid } = await hook.pushing.push(hook.owner.normal, 'shop', {
    ...input,
    callbackHeaders: 'x-id:7',
  });
  expect(await hook.jobs.find(hook.owner.normal, 'shop', rid)).toMatchObject({
    callbackHeaders: [['x-id', '7']],
  });
  const storage = await setUp();
  const { rid: stored } = await storage.pushing.push(storage.owner.normal, 'shop', input);
  expect(await storage.jobs.find(storage.owner.normal, 'shop', stored)).toMatchObject({
    callbackHeaders: [],
  });
});

test('the push rate takes what it can of a batch and says when the rest may come', async () => {
  const { pushing, owner, clock } = await setUp({ ratePerSecond: 2 });
  const results = await pushing.pushBatch(owner.normal, 'shop', pages(3), '');
  expect(outcomes(results)).toEqual(['rid', 'rid', 'rate_limited']);
  const last = results[2];
  const retryAfterMs = last !== undefined && 'error' in last ? (last.error.retryAfterMs ?? 0) : 0;
  expect(retryAfterMs).toBeGreaterThan(0);
  clock.advance(retryAfterMs);
  await pushing.push(owner.normal, 'shop', page('later'));
});

test('the rate of one token is not the other’s', async () => {
  const { pushing, crawlers, owner } = await setUp({ ratePerSecond: 1 });
  await crawlers.create(owner.javascript, 'script', { settings: {} });
  await pushing.push(owner.normal, 'shop', page('a'));
  await pushing.push(owner.javascript, 'script', page('a'));
  await expect(pushing.push(owner.normal, 'shop', page('b'))).rejects.toMatchObject({
    kind: 'exhausted',
    reason: 'rate_limited',
  });
});

test('a full queue refuses what is too much, naming its limit', async () => {
  const { pushing, owner } = await setUp({ pushLimits: { crawlerQueue: 2 } });
  const results = await pushing.pushBatch(owner.normal, 'shop', pages(3), '');
  expect(outcomes(results)).toEqual(['rid', 'rid', 'crawler_queue_full']);
  await expect(pushing.push(owner.normal, 'shop', page('x'))).rejects.toMatchObject({
    message: 'The queue of crawler "shop" is full: it holds 2 URLs.',
    metadata: { limit: 2 },
  });
});

test('an account that goes over its limit is noticed once, and its pushes pause', async () => {
  const { pushing, owner, calls } = await setUp({ pushLimits: { accountQueue: 2 } });
  await pushing.pushBatch(owner.normal, 'shop', pages(3), '');
  for (const path of ['x', 'y']) {
    await expect(pushing.push(owner.normal, 'shop', page(path))).rejects.toMatchObject({
      reason: 'account_queue_full',
    });
  }
  expect(calls.overLimit).toEqual([owner.normal.account.accountId]);
});

test('a quota of queued bytes refuses the items that do not fit', async () => {
  const { pushing, owner } = await setUp({ accountLimits: { queueBytes: 2_000 } });
  const long = page('a'.repeat(1_500));
  const results = await pushing.pushBatch(owner.normal, 'shop', [long, long, page('b')], '');
  expect(outcomes(results)).toEqual([
    'rid',
    'queue_bytes_quota_exceeded',
    'queue_bytes_quota_exceeded',
  ]);
});

test('a repeated request_id answers as the first call did and queues nothing', async () => {
  const { pushing, owner, crawlers } = await setUp();
  const items = [page('a'), page('b')];
  const first = await pushing.pushBatch(owner.normal, 'shop', items, 'once');
  expect(await pushing.pushBatch(owner.normal, 'shop', items, 'once')).toEqual(first);
  expect((await crawlers.details(owner.normal, 'shop')).counters).toMatchObject({ pushed: 2 });
});

test('a crawler that another process removed and made again takes pushes at once', async () => {
  const { pushing, owner, crawlers } = await setUp();
  await pushing.push(owner.normal, 'shop', page('to the first'));
  const other = createUseCases(opened.store);
  await other.crawlers.remove(owner.normal, 'shop');
  await other.crawlers.create(owner.normal, 'shop', { settings: {} });
  await pushing.push(owner.normal, 'shop', page('to the second'));
  expect((await crawlers.details(owner.normal, 'shop')).counters).toMatchObject({ waiting: 1 });
});

test('a crawler that another process removed is not found', async () => {
  const { pushing, owner } = await setUp();
  await pushing.push(owner.normal, 'shop', page('a'));
  await createUseCases(opened.store).crawlers.remove(owner.normal, 'shop');
  await expect(pushing.push(owner.normal, 'shop', page('b'))).rejects.toMatchObject({
    reason: 'crawler_not_found',
    field: 'crawler',
  });
});
