import { afterAll, beforeAll, expect, test } from 'vitest';
import { toDelivery } from '../../contract/store/outcomes.ts';
import { createUseCases, openEmbeddedStore, type UseCaseOptions } from '../../support/use-cases.ts';

let opened: Awaited<ReturnType<typeof openEmbeddedStore>>;
beforeAll(async () => {
  opened = await openEmbeddedStore();
});
afterAll(() => opened[Symbol.asyncDispose]());

const UNKNOWN = '0123456789abcdef01234567';
const NOT_FOUND = { kind: 'not_found', reason: 'rid_not_found', field: 'rid' };

async function setUp(options: UseCaseOptions = {}) {
  const useCases = createUseCases(opened.store, options);
  const owner = await useCases.account();
  const { crawler } = await useCases.crawlers.create(owner.normal, 'hook', {
    settings: {},
    callbackUrl: 'https://example.com/in',
  });
  const push = async (path: string) => {
    const { rid } = await useCases.pushing.push(owner.normal, 'hook', {
      url: `https://example.com/${path}`,
      parameters: {},
    });
    return rid;
  };
  return { ...useCases, owner: owner.normal, other: owner.javascript, crawler, push };
}

/** The same with a delivery that waits for its first attempt. */
async function setUpDelivery(options: UseCaseOptions = {}) {
  const given = await setUp(options);
  const rid = await given.push('delivered');
  await given.dispatch(given.crawler.crawlerId, (job) => toDelivery(job));
  given.calls.wakes.length = 0;
  return { ...given, rid };
}

test('a job is found while it waits and while it is crawled, and not after it ended', async () => {
  const { jobs, owner, crawler, push, dispatch } = await setUp();
  const rid = await push('a');
  expect(await jobs.find(owner, 'hook', rid)).toMatchObject({ rid, state: 'waiting' });
  await dispatch(crawler.crawlerId);
  expect(await jobs.find(owner, 'hook', rid)).toMatchObject({ rid, state: 'running' });
  await dispatch(crawler.crawlerId, (job) => toDelivery(job));
  expect(await jobs.find(owner, 'hook', rid)).toBeUndefined();
  expect(await jobs.find(owner, 'hook', 'no rid at all')).toBeUndefined();
});

test('a removed job is gone, and its crawl aborted', async () => {
  const { jobs, owner, crawler, push, calls } = await setUp();
  const rid = await push('a');
  await jobs.remove(owner, 'hook', rid);
  expect(calls.aborted).toEqual([`${crawler.crawlerId} ${rid}`]);
  expect(await jobs.find(owner, 'hook', rid)).toBeUndefined();
  await expect(jobs.remove(owner, 'hook', rid)).rejects.toMatchObject(NOT_FOUND);
  await expect(jobs.remove(owner, 'hook', '')).rejects.toMatchObject({ reason: 'missing_rid' });
});

test('a job of another crawler is not removed', async () => {
  const { jobs, crawlers, owner, push } = await setUp();
  await crawlers.create(owner, 'second', { settings: {} });
  const rid = await push('a');
  await expect(jobs.remove(owner, 'second', rid)).rejects.toMatchObject(NOT_FOUND);
  expect(await jobs.find(owner, 'hook', rid)).toMatchObject({ rid });
});

test('every method refuses the other token; all but finding refuse an unknown crawler', async () => {
  const { jobs, owner, other } = await setUp();
  await expect(jobs.find(other, 'hook', UNKNOWN)).rejects.toMatchObject({
    reason: 'wrong_token_type',
  });
  expect(await jobs.find(owner, 'nobody', UNKNOWN)).toBeUndefined();
  const calls = [
    (caller: typeof owner, name: string) => jobs.remove(caller, name, UNKNOWN),
    (caller: typeof owner, name: string) => jobs.delivery(caller, name, UNKNOWN),
    (caller: typeof owner, name: string) => jobs.replay(caller, name, { rid: UNKNOWN }),
  ];
  for (const call of calls) {
    await expect(call(other, 'hook')).rejects.toMatchObject({ reason: 'wrong_token_type' });
    await expect(call(owner, 'nobody')).rejects.toMatchObject({ reason: 'crawler_not_found' });
  }
});

test('a delivery is shown while it waits; what never was one is not found', async () => {
  const { jobs, owner, rid, push } = await setUpDelivery();
  expect(await jobs.delivery(owner, 'hook', rid)).toMatchObject({ rid, state: 'pending' });
  const queued = await push('queued');
  for (const missing of [queued, UNKNOWN, 'no rid at all', '']) {
    await expect(jobs.delivery(owner, 'hook', missing)).rejects.toMatchObject(NOT_FOUND);
  }
});

test('a replay makes one delivery due, and wakes its crawler', async () => {
  const { jobs, owner, rid, calls, crawler } = await setUpDelivery();
  expect((await jobs.replay(owner, 'hook', { rid })).count).toBe(1);
  expect(calls.wakes).toEqual([`crawl ${crawler.crawlerId}`]);
  await expect(jobs.replay(owner, 'hook', { rid: UNKNOWN })).rejects.toMatchObject(NOT_FOUND);
});

test('a replay of a time range counts its deliveries; an empty one wakes nobody', async () => {
  const { jobs, owner, calls, clock } = await setUpDelivery();
  const hourAgo = new Date(clock.now().getTime() - 3_600_000);
  const empty = { from: new Date(0), to: hourAgo };
  expect((await jobs.replay(owner, 'hook', empty)).count).toBe(0);
  expect(calls.wakes).toEqual([]);
  clock.advance(1);
  expect((await jobs.replay(owner, 'hook', { from: hourAgo, to: undefined })).count).toBe(1);
});

test('a replay of more than the quota has left replays none', async () => {
  const { jobs, owner, rid, calls, clock, push, dispatch, crawler } = await setUpDelivery({
    accountLimits: { replaysPerHour: 1 },
  });
  await push('second');
  await dispatch(crawler.crawlerId, (job) => toDelivery(job));
  calls.wakes.length = 0;
  clock.advance(1);
  const all = { from: new Date(0), to: undefined };
  await expect(jobs.replay(owner, 'hook', all)).rejects.toMatchObject({
    kind: 'exhausted',
    reason: 'replays_per_hour_quota_exceeded',
  });
  expect(calls.wakes).toEqual([]);
  expect((await jobs.replay(owner, 'hook', { rid })).count).toBe(1);
  await expect(jobs.replay(owner, 'hook', { rid })).rejects.toMatchObject({ kind: 'exhausted' });
  clock.advance(3_600_000);
  expect((await jobs.replay(owner, 'hook', { rid })).count).toBe(1);
});
