import { describe, expect, test } from 'vitest';
import type { Crawler } from '../../../src/domain/crawler.ts';
import type { ResultPlace, ResultSelection, Store } from '../../../src/store/store.ts';
import { EXPIRES, makeRecord, toStored } from './outcomes.ts';
import {
  at,
  finishJobs,
  newId,
  type OpenStore,
  type StoreBench,
  withStore,
} from './store-harness.ts';

const url = 'https://example.com/';

async function readAll(
  store: Store,
  selection: ResultSelection,
  from?: ResultPlace,
  limit = 3,
): Promise<{ rids: string[]; place: ResultPlace }> {
  const rids: string[] = [];
  for (let place = from; ; ) {
    const read = await store.results.following(selection, place, limit);
    rids.push(...read.results.map(({ rid }) => rid));
    place = read.place;
    if (read.isEnd && read.results.length === 0) return { rids, place };
  }
}

/** Crawls `count` URLs of the crawler, and gives their rids in the order in which they ended. */
async function crawl(bench: StoreBench, crawler: Crawler, count: number): Promise<string[]> {
  const { jobs, lease } = await bench.running(crawler, count);
  const rids = jobs.map(({ rid }) => rid).reverse();
  for (const rid of rids) {
    const job = jobs.find((each) => each.rid === rid);
    if (job !== undefined) await finishJobs(bench.store, [toStored(job)], at(1), lease);
  }
  await bench.store.queue.release(lease, at(1));
  return rids;
}

/** The order of stored results. */
export function resultOrderContract(open: OpenStore): void {
  const newScope = () => ({ accountId: newId(), tokenType: 'normal' }) as const;

  async function put(store: Store, scope: ResultSelection, ms = 1): Promise<string> {
    const rid = newId();
    await store.results.put(scope, makeRecord({ rid, url }), at(ms), EXPIRES);
    return rid;
  }

  describe('the order of results', () => {
    test(
      'has each once, with the size of its page, and continues behind any place',
      withStore(open, async ({ store }) => {
        const scope = newScope();
        const other = newScope();
        const nothing = await store.results.following(scope, undefined, 3);
        expect(nothing.results).toEqual([]);
        const rids: string[] = [];
        for (let n = 0; n < 5; n++) {
          rids.push(await put(store, scope));
          await put(store, other);
        }
        const first = await store.results.following(scope, nothing.place, 2);
        const size = makeRecord({ rid: '', url }).body.byteLength;
        expect(first.results.map(({ rid }) => rid)).toEqual(rids.slice(0, 2));
        expect(first.results.map((each) => each.size)).toEqual([size, size]);
        const all = await readAll(store, scope);
        expect(all.rids).toEqual(rids);
        const [second] = first.results;
        const place = { series: first.place.series, seq: second?.seq ?? 0 };
        expect((await readAll(store, scope, place)).rids).toEqual(rids.slice(1));
        expect((await readAll(store, scope, all.place)).rids).toEqual([]);
      }),
    );

    test(
      'is that of the ends: what ends or is stored later comes later, whatever its clock says',
      withStore(open, async (bench) => {
        const { store } = bench;
        const crawler = await bench.crawler();
        const scope = { accountId: crawler.accountId, tokenType: 'normal' } as const;
        const rids = await crawl(bench, crawler, 4);
        const first = await readAll(store, scope);
        expect(new Set(first.rids)).toEqual(new Set(rids));
        // As from a process whose clock is slow, or an older job that ends last.
        const late = await put(store, scope, -3_600_000);
        const more = await readAll(store, scope, first.place);
        expect(more.rids).toEqual([late]);
        expect((await readAll(store, scope)).rids).toEqual([...first.rids, late]);
      }),
    );

    test(
      'can be read for one crawler',
      withStore(open, async (bench) => {
        const { store } = bench;
        const shop = await bench.crawler();
        const news = await bench.crawler({ accountId: shop.accountId });
        const scope = { accountId: shop.accountId, tokenType: 'normal' } as const;
        const ofNews = [...(await crawl(bench, news, 3))];
        const ofShop = await crawl(bench, shop, 2);
        await put(store, scope);
        ofNews.push(...(await crawl(bench, news, 3)));
        const read = async (crawlerId: string) =>
          (await readAll(store, { ...scope, crawlerId })).rids.sort();
        expect(await read(news.crawlerId)).toEqual([...ofNews].sort());
        expect(await read(shop.crawlerId)).toEqual([...ofShop].sort());
        expect((await readAll(store, scope)).rids).toHaveLength(9);
        const stranger = { ...newScope(), crawlerId: shop.crawlerId };
        expect((await readAll(store, stranger)).rids).toEqual([]);
      }),
    );

    test(
      'does not use the number of a removed result again',
      withStore(open, async ({ store }) => {
        const scope = newScope();
        const [a, b] = [await put(store, scope), await put(store, scope)];
        const { place } = await readAll(store, scope);
        await store.results.remove(scope, [a, b]);
        const c = await put(store, scope);
        expect((await readAll(store, scope, place)).rids).toEqual([c]);
      }),
    );

    test(
      'loses what is acknowledged, in portions, and what it counts for as stored',
      withStore(open, async (bench) => {
        const { store } = bench;
        const shop = await bench.crawler();
        const scope = { accountId: shop.accountId, tokenType: 'normal' } as const;
        const inline = await put(store, scope);
        await crawl(bench, shop, 5);
        const { results, place } = await store.results.following(scope, undefined, 4);
        const ofShop = { ...scope, crawlerId: shop.crawlerId };
        expect(await store.results.removeUpTo(ofShop, place, 2)).toBe(2);
        expect(await store.results.removeUpTo(ofShop, place, 2)).toBe(1);
        expect(await store.results.removeUpTo(ofShop, place, 2)).toBe(0);
        const left = (await readAll(store, scope)).rids;
        expect(left).toHaveLength(3);
        expect(left[0]).toBe(inline);
        expect(results[0]?.rid).toBe(inline);
        expect(await store.results.removeUpTo(scope, (await readAll(store, scope)).place, 9)).toBe(
          3,
        );
        expect((await store.accounts.usage(shop.accountId))?.storedBytes).toBe(0);
      }),
    );

    test(
      'is read from the beginning by a place of another database, which removes nothing',
      withStore(open, async ({ store }) => {
        const scope = newScope();
        const rids = [await put(store, scope), await put(store, scope)];
        const { place } = await readAll(store, scope);
        const foreign = { series: 'ffffffffffffffff', seq: 1 };
        expect((await readAll(store, scope, foreign)).rids).toEqual(rids);
        expect((await readAll(store, scope, { ...place, seq: place.seq + 1 })).rids).toEqual(rids);
        expect(await store.results.removeUpTo(scope, foreign, 9)).toBe(0);
      }),
    );

    test(
      'continues after a crash',
      withStore(open, async (bench) => {
        const scope = newScope();
        const rids = [await put(bench.store, scope)];
        const { place } = await readAll(bench.store, scope);
        await bench.crash();
        rids.push(await put(bench.store, scope));
        expect((await readAll(bench.store, scope, place)).rids).toEqual(rids.slice(1));
        expect((await readAll(bench.store, scope)).rids).toEqual(rids);
      }),
    );

    test(
      'is one for all readers, who never miss what is stored during a read',
      withStore(open, async ({ store }) => {
        const scope = newScope();
        const stored: string[] = [];
        let done = false;
        const write = async (): Promise<void> => {
          for (let n = 0; n < 40; n++) stored.push(await put(store, scope, 40 - n));
        };
        const writing = Promise.all([write(), write(), write()]).then(() => (done = true));
        const readers = Array.from({ length: 4 }, async () => {
          const seen: string[] = [];
          let place: ResultPlace | undefined;
          for (;;) {
            const wasDone = done;
            const read = await store.results.following(scope, place, 7);
            place = read.place;
            seen.push(...read.results.map(({ rid }) => rid));
            if (wasDone && read.isEnd && read.results.length === 0) return seen;
          }
        });
        await writing;
        const [first, ...others] = await Promise.all(readers);
        expect([...(first ?? [])].sort()).toEqual([...stored].sort());
        for (const each of others) expect(each).toEqual(first);
      }),
    );
  });
}
