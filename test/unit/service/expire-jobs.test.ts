import { afterAll, beforeAll, expect, test } from 'vitest';
import type { QueuedJob } from '../../../src/domain/job.ts';
import { createTimeouts } from '../../../src/service/queue/expire-jobs.ts';
import { toDelivery, toStored } from '../../contract/store/outcomes.ts';
import { silentLogger } from '../../support/loggers.ts';
import { createUseCases, openEmbeddedStore } from '../../support/use-cases.ts';

let opened: Awaited<ReturnType<typeof openEmbeddedStore>>;
beforeAll(async () => {
  opened = await openEmbeddedStore();
});
afterAll(() => opened[Symbol.asyncDispose]());

/** A crawler, and the task that ends its overdue jobs the way its delivery mode says. */
async function setUp(callbackUrl?: string) {
  const useCases = createUseCases(opened.store);
  const { store, clock, calls, crawlers, pushing } = useCases;
  const { normal: owner } = await useCases.account();
  const input = callbackUrl === undefined ? {} : { callbackUrl };
  const { crawler } = await crawlers.create(owner, 'shop', { settings: {}, ...input });
  const scheduler = {
    wake: async (name: string, key: string) => void calls.wakes.push(name + key),
  };
  const end = callbackUrl === undefined ? toStored : toDelivery;
  const expire = createTimeouts({
    store,
    clock,
    logger: silentLogger,
    scheduler,
    crawlJobs: { expire: async (job: QueuedJob) => ({ ...end(job), timedOut: true }) },
  });
  const push = async (queueTimeout?: number) => {
    const { rid } = await pushing.push(owner, 'shop', {
      url: 'https://example.com/',
      parameters: {},
      ...(queueTimeout === undefined ? {} : { queueTimeout }),
    });
    return rid;
  };
  const run = () => expire(new AbortController().signal);
  return { ...useCases, owner, crawler, push, run };
}

test('a job that waited longer than its queue_timeout ends, the others wait on', async () => {
  const { push, run, clock, jobs, owner, crawlers } = await setUp();
  const short = await push(1);
  const long = await push(2);
  const none = await push();
  expect(await run()).toBe(0);
  clock.advance(60_001);
  expect(await run()).toBe(1);
  expect(await jobs.find(owner, 'shop', short)).toBeUndefined();
  expect(await jobs.find(owner, 'shop', long)).toMatchObject({ state: 'waiting' });
  expect(await jobs.find(owner, 'shop', none)).toMatchObject({ state: 'waiting' });
  expect((await crawlers.details(owner, 'shop')).counters).toMatchObject({ waiting: 2 });
});

test('a job that is being crawled is not ended by its queue_timeout', async () => {
  const { push, run, clock, crawler, dispatch } = await setUp();
  await push(1);
  await dispatch(crawler.crawlerId);
  clock.advance(60_001);
  expect(await run()).toBe(0);
});

test('the end of a webhook crawler’s job wakes it to deliver, a storage crawler’s does not', async () => {
  for (const [callbackUrl, wakes] of [
    ['https://example.com/in', 1],
    [undefined, 0],
  ] as const) {
    const { push, run, clock, calls } = await setUp(callbackUrl);
    await push(1);
    calls.wakes.length = 0;
    clock.advance(60_001);
    expect(await run()).toBe(1);
    expect(calls.wakes).toHaveLength(wakes);
  }
});

test('more overdue jobs than one batch holds all end in one run', async () => {
  const { run, clock, pushing, owner } = await setUp();
  const items = Array.from({ length: 401 }, (_, n) => ({
    url: `https://example.com/${n}`,
    parameters: {},
    queueTimeout: 1,
  }));
  await pushing.pushBatch(owner, 'shop', items, '');
  clock.advance(60_001);
  expect(await run()).toBe(401);
});
