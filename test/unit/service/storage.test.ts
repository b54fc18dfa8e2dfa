import { expect, test } from 'vitest';
import { createRid } from '../../../src/domain/rid.ts';
import { createStorage } from '../../../src/service/reads/storage.ts';
import { createUseCases, openEmbeddedStore } from '../../support/use-cases.ts';

const MIB = 1024 * 1024;
const UNKNOWN = '0123456789abcdef01234567';

async function startStorage() {
  const opened = await openEmbeddedStore();
  const { store } = opened;
  const { clock, account } = createUseCases(store);
  const owner = (await account()).normal;
  const { accountId } = owner.account;
  return {
    owner,
    storage: createStorage({ results: store.results, clock }),
    /** Stores a page of the given size in bytes, a second after the one before. */
    async put(pushedUrl: string, bytes = 1): Promise<string> {
      clock.advance(1_000);
      const now = clock.now();
      const rid = createRid(now);
      await store.results.put(
        { accountId, tokenType: 'normal' },
        {
          rid,
          pushedUrl,
          url: pushedUrl,
          cbStatus: 200,
          originalStatus: 200,
          contentType: 'text/html',
          body: new Uint8Array(bytes),
          coding: 'gzip',
          details: {},
        },
        now,
        new Date(now.getTime() + 3_600_000),
      );
      return rid;
    },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

test('a URL stands for its newest result', async () => {
  await using app = await startStorage();
  await app.put('https://example.com/');
  const newest = await app.put('https://example.com/');
  await app.put('https://example.com/other');
  expect(await app.storage.get(app.owner, '', 'https://example.com/')).toMatchObject({
    rid: newest,
  });
});

test.each([
  ['', '', 'missing_rid', 'rid'],
  [UNKNOWN, '', 'rid_not_found', 'rid'],
  // No database is asked for what cannot be a rid.
  ['../etc', '', 'rid_not_found', 'rid'],
  ['', 'https://example.com/never', 'rid_not_found', 'url'],
])('rid %j and url %j have no result: %s of %s', async (rid, url, reason, field) => {
  await using app = await startStorage();
  await expect(app.storage.get(app.owner, rid, url)).rejects.toMatchObject({ reason, field });
});

test('a bulk reply holds at most 16 MiB of pages, in the requested order, and names the rest', async () => {
  await using app = await startStorage();
  const large = await app.put('https://example.com/1', 10 * MIB);
  const second = await app.put('https://example.com/2', 7 * MIB);
  const small = await app.put('https://example.com/3', 1);
  const { owner, storage } = app;
  expect(await storage.select(owner, [small, UNKNOWN, large, second, small])).toEqual({
    rids: [small, large],
    bytes: 10 * MIB + 1,
    deferred: [second],
  });
  // What comes after a deferred one is deferred, though it would fit.
  expect(await storage.select(owner, [large, second, small])).toMatchObject({
    rids: [large],
    deferred: [second, small],
  });
});

test('one page that is larger than a bulk reply is a reply of its own', async () => {
  await using app = await startStorage();
  const huge = await app.put('https://example.com/1', 17 * MIB);
  const next = await app.put('https://example.com/2');
  expect(await app.storage.select(app.owner, [huge, next])).toMatchObject({
    rids: [huge],
    deferred: [next],
  });
});

test.each([0, 1_001])('%i rids in one call are refused', async (count) => {
  await using app = await startStorage();
  const rids = Array.from({ length: count }, () => UNKNOWN);
  await expect(app.storage.select(app.owner, rids)).rejects.toMatchObject({ field: 'rids' });
});

test('pages of rids follow each other in either order', async () => {
  await using app = await startStorage();
  const rids: string[] = [];
  for (let n = 0; n < 5; n += 1) rids.push(await app.put(`https://example.com/${n}`));
  for (const order of ['asc', 'desc'] as const) {
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await app.storage.rids(app.owner, { limit: 2, order, cursor });
      expect(page.rids.length).toBeLessThanOrEqual(2);
      found.push(...page.rids);
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(found).toEqual(order === 'asc' ? rids : rids.toReversed());
  }
});

test.each([0, 10_001])('a page of %i rids is refused', async (limit) => {
  await using app = await startStorage();
  const page = { limit, order: 'asc', cursor: undefined } as const;
  await expect(app.storage.rids(app.owner, page)).rejects.toMatchObject({ field: 'limit' });
});
