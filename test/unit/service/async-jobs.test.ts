import { afterAll, beforeAll, expect, test } from 'vitest';
import { ASYNC_CRAWLER, ensureAsyncCrawler } from '../../../src/service/crawlers/async-crawler.ts';
import { createUseCases, openEmbeddedStore } from '../../support/use-cases.ts';

let opened: Awaited<ReturnType<typeof openEmbeddedStore>>;
beforeAll(async () => {
  opened = await openEmbeddedStore();
});
afterAll(() => opened[Symbol.asyncDispose]());

async function setUp() {
  const useCases = createUseCases(opened.store);
  const { normal, javascript } = await useCases.account();
  const { clock, pushing } = useCases;
  const push = async (path: string) => {
    await ensureAsyncCrawler({ crawlers: opened.store.crawlers, clock, defaults: {} }, normal);
    clock.advance(1);
    const url = `https://example.com/${path}`;
    return (await pushing.push(normal, ASYNC_CRAWLER, { url, parameters: {} })).rid;
  };
  return { ...useCases, owner: normal, other: javascript, push };
}

test('before the first async crawl there is nothing to list, find or purge', async () => {
  const { asyncJobs, owner } = await setUp();
  expect((await asyncJobs.list(owner, { limit: 10 })).rows).toEqual([]);
  expect(await asyncJobs.find(owner, '0123456789abcdef01234567')).toBeUndefined();
  expect(await asyncJobs.purge(owner)).toBe(0);
  await expect(asyncJobs.remove(owner, '0123456789abcdef01234567')).rejects.toMatchObject({
    reason: 'rid_not_found',
  });
});

test('queued crawls are listed earliest first, page by page', async () => {
  const { asyncJobs, owner, push } = await setUp();
  const rids = [await push('a'), await push('b'), await push('c')];
  const first = await asyncJobs.list(owner, { limit: 2 });
  const second = await asyncJobs.list(owner, { limit: 2, cursor: first.cursor ?? '' });
  expect([...first.rows, ...second.rows].map(({ rid }) => rid)).toEqual(rids);
  expect(second.cursor).toBeUndefined();
});

test('a queued crawl is found and removed by the token that asked for it, and by no other', async () => {
  const { asyncJobs, owner, other, push, calls } = await setUp();
  const rid = await push('a');
  expect(await asyncJobs.find(other, rid)).toBeUndefined();
  await expect(asyncJobs.remove(other, rid)).rejects.toMatchObject({ reason: 'rid_not_found' });
  expect(await asyncJobs.find(owner, rid)).toMatchObject({ rid, state: 'waiting' });
  await asyncJobs.remove(owner, rid);
  expect(calls.aborted).toEqual([expect.stringContaining(rid)]);
  expect(await asyncJobs.find(owner, rid)).toBeUndefined();
  for (const gone of [rid, 'no rid at all']) {
    await expect(asyncJobs.remove(owner, gone)).rejects.toMatchObject({ reason: 'rid_not_found' });
  }
  await expect(asyncJobs.remove(owner, '')).rejects.toMatchObject({ reason: 'missing_rid' });
});

test('a purge removes all that wait', async () => {
  const { asyncJobs, owner, push } = await setUp();
  await push('a');
  await push('b');
  expect(await asyncJobs.purge(owner)).toBe(2);
  expect((await asyncJobs.list(owner, { limit: 10 })).rows).toEqual([]);
});

test('the crawler of async crawls cannot be addressed by its name', async () => {
  const { crawlers, pushing, owner, push } = await setUp();
  await push('a');
  const [stored] = await opened.store.crawlers.list(owner.account.accountId, { limit: 1 });
  const name = stored?.name ?? '';
  expect(name).not.toBe('');
  await expect(crawlers.details(owner, name)).rejects.toMatchObject({
    reason: 'crawler_not_found',
  });
  const input = { url: 'https://example.com/', parameters: {} };
  await expect(pushing.push(owner, name, input)).rejects.toMatchObject({
    reason: 'crawler_not_found',
  });
});
