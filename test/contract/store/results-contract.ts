import { describe, expect, test } from 'vitest';
import type { ResultScope, Store } from '../../../src/store/store.ts';
import { EXPIRES, makeRecord } from './outcomes.ts';
import { at, newId, type OpenStore, withStore } from './store-harness.ts';

const url = 'https://example.com/a?b=c';

async function put(store: Store, scope: ResultScope, ms: number, pushedUrl = url): Promise<string> {
  const rid = newId();
  await store.results.put(scope, makeRecord({ rid, url: pushedUrl }), at(ms), EXPIRES);
  return rid;
}

/** Stored results. */
export function resultsContract(open: OpenStore): void {
  const newScope = (): ResultScope => ({ accountId: newId(), tokenType: 'normal' });

  describe('stored results', () => {
    test(
      'come back whole, for their own account and token type only',
      withStore(open, async ({ store }) => {
        const scope = newScope();
        const rid = newId();
        const put = store.results.put(scope, makeRecord({ rid, url }), at(1), EXPIRES);
        expect(await put).toEqual(at(1));
        const found = await store.results.get(scope, rid);
        const record = makeRecord({ rid, url });
        expect({ ...found, body: [...(found?.body ?? [])] }).toEqual({
          ...record,
          body: [...record.body],
          storedAt: at(1),
        });
        const strangers: ResultScope[] = [newScope(), { ...scope, tokenType: 'javascript' }];
        for (const other of strangers) {
          expect(await store.results.get(other, rid)).toBeUndefined();
          expect(await store.results.newest(other, url)).toBeUndefined();
          expect(await store.results.getMany(other, [rid])).toEqual([]);
          expect(await store.results.sizes(other, [rid])).toEqual(new Map());
          expect(await store.results.remove(other, [rid])).toEqual(new Set());
          expect((await store.results.rids(other, { limit: 9, order: 'asc' })).rids).toEqual([]);
          expect(await store.results.count(other)).toBe(0);
        }
        expect(await store.results.count(scope)).toBe(1);
      }),
    );

    test(
      'are found as pages that are young enough, by URL and key, but for those that serve no other',
      withStore(open, async ({ store }) => {
        const scope = newScope();
        const putPage = async (ms: number, pageKey?: string) => {
          const rid = newId();
          const record = makeRecord({ rid, url }, pageKey === undefined ? {} : { pageKey });
          await store.results.put(scope, record, at(ms), EXPIRES);
          return rid;
        };
        const plain = await putPage(10, '');
        const keyed = await putPage(20, 'key');
        await putPage(30);
        const newest = async (key: string, ms: number, pushed = url) =>
          (await store.results.newest(scope, pushed, { key, since: at(ms) }))?.rid;
        expect(await newest('', 10)).toBe(plain);
        expect(await newest('', 11)).toBeUndefined();
        expect(await newest('key', 0)).toBe(keyed);
        expect(await newest('other', 0)).toBeUndefined();
        expect(await newest('', 0, `${url}&other`)).toBeUndefined();
        const later = await putPage(40, '');
        expect(await newest('', 0)).toBe(later);
        await store.results.hold(scope, [later], at(100));
        expect(await newest('', 0)).toBe(plain);
        const other = { ...scope, tokenType: 'javascript' } as const;
        expect(await store.results.newest(other, url, { key: '', since: at(0) })).toBeUndefined();
      }),
    );

    test(
      'are found by the URL that was pushed, the newest first',
      withStore(open, async ({ store }) => {
        const scope = newScope();
        await put(store, scope, 1);
        const newest = await put(store, scope, 3);
        await put(store, scope, 2);
        await put(store, scope, 9, `${url}&other`);
        expect((await store.results.newest(scope, url))?.rid).toBe(newest);
        expect(await store.results.newest(scope, `${url}#after-redirects`)).toBeUndefined();
        await store.results.remove(scope, [newest]);
        expect((await store.results.newest(scope, url))?.storedAt).toEqual(at(2));
      }),
    );

    test(
      'are fetched in the order asked for, stay, and say how long they are',
      withStore(open, async ({ store }) => {
        const scope = newScope();
        const a = await put(store, scope, 1);
        await put(store, scope, 2);
        const c = await put(store, scope, 3);
        for (let n = 0; n < 2; n += 1) {
          const found = await store.results.getMany(scope, [c, newId(), a]);
          expect(found.map(({ rid }) => rid)).toEqual([c, a]);
        }
        const bytes = makeRecord({ rid: a, url }).body.byteLength;
        expect(await store.results.sizes(scope, [newId(), a, c])).toEqual(
          new Map([
            [a, bytes],
            [c, bytes],
          ]),
        );
        expect(await store.results.count(scope)).toBe(3);
      }),
    );

    test(
      'are removed by one of eight who do so at once',
      withStore(open, async ({ store }) => {
        const scope = newScope();
        const rids = [await put(store, scope, 1), await put(store, scope, 2)];
        const shares = await Promise.all(
          Array.from({ length: 8 }, () => store.results.remove(scope, rids)),
        );
        expect(shares.flatMap((share) => [...share]).sort()).toEqual([...rids].sort());
        expect(await store.results.count(scope)).toBe(0);
      }),
    );

    test(
      'are held by one of eight who do so at once, and seen by nobody until they are released',
      withStore(open, async ({ store }) => {
        const scope = newScope();
        const other: ResultScope = { ...scope, tokenType: 'javascript' };
        const rids = [await put(store, scope, 1), await put(store, scope, 2)];
        const kept = await put(store, scope, 3, `${url}&kept`);
        expect(await store.results.hold(other, rids, at(9))).toEqual(new Set());
        const shares = await Promise.all(
          Array.from({ length: 8 }, () => store.results.hold(scope, rids, at(9))),
        );
        expect(shares.flatMap((share) => [...share]).sort()).toEqual([...rids].sort());

        const shown = async () => ({
          got: await Promise.all(rids.map((rid) => store.results.get(scope, rid))),
          newest: await store.results.newest(scope, url),
          sizes: [...(await store.results.sizes(scope, [...rids, kept])).keys()],
          rids: (await store.results.rids(scope, { limit: 9, order: 'asc' })).rids,
          count: await store.results.count(scope),
        });
        expect(await shown()).toEqual({
          got: [undefined, undefined],
          newest: undefined,
          sizes: [kept],
          rids: [kept],
          count: 1,
        });
        // Who holds them reads them.
        expect(await store.results.getMany(scope, rids)).toHaveLength(2);

        await store.results.release(other, rids);
        expect(await store.results.count(scope)).toBe(1);
        await store.results.release(scope, rids.slice(1));
        expect((await shown()).rids).toEqual([rids[1], kept]);
        await store.maintain(at(8));
        expect(await store.results.count(scope)).toBe(2);
        await store.maintain(at(9));
        expect((await shown()).rids).toEqual([...rids, kept]);
        expect(await store.results.hold(scope, rids, at(20))).toEqual(new Set(rids));
        expect(await store.results.remove(scope, rids)).toEqual(new Set(rids));
        expect(await store.results.count(scope)).toBe(1);
      }),
    );

    test(
      'are removed once each, and those that were are returned',
      withStore(open, async ({ store }) => {
        const scope = newScope();
        const [a, b] = [await put(store, scope, 1), await put(store, scope, 2)];
        expect(await store.results.remove(scope, [a, newId()])).toEqual(new Set([a]));
        expect(await store.results.remove(scope, [a, b])).toEqual(new Set([b]));
      }),
    );

    test(
      'are listed page by page in either order, each once though more are stored between the pages',
      withStore(open, async ({ store }) => {
        const scope = newScope();
        const stored: string[] = [];
        for (const ms of [1, 2, 2, 2, 3, 4, 5]) stored.push(await put(store, scope, ms));
        for (const order of ['asc', 'desc'] as const) {
          const seen: string[] = [];
          let cursor: string | undefined;
          do {
            const at_ = cursor === undefined ? {} : { cursor };
            const page = await store.results.rids(scope, { limit: 2, order, ...at_ });
            expect(page.rids.length).toBeLessThanOrEqual(2);
            seen.push(...page.rids);
            cursor = page.cursor;
            // Behind the place reached when newest come first; ahead of it otherwise.
            if (seen.length <= 4) stored.push(await put(store, scope, 10 + stored.length));
          } while (cursor !== undefined);
          const expected = order === 'asc' ? stored : stored.slice(0, 9).reverse();
          expect(new Set(seen).size).toBe(seen.length);
          expect(toPlaces(seen, stored)).toEqual(toPlaces(expected, stored));
        }
      }),
    );

    test(
      'are listed without those that are held, on pages that have some',
      withStore(open, async ({ store }) => {
        const scope = newScope();
        const rids: string[] = [];
        for (const ms of [1, 2, 3, 4, 5]) rids.push(await put(store, scope, ms));
        await store.results.hold(scope, rids.slice(0, 4), at(100));
        const page = await store.results.rids(scope, { limit: 2, order: 'asc' });
        expect(page.rids).toEqual([rids[4]]);
        const cursor = page.cursor ?? '';
        const next = await store.results.rids(scope, { limit: 2, order: 'asc', cursor });
        expect(next).toEqual({ rids: [], cursor: undefined });
      }),
    );

    test(
      'are listed from an empty storage as none',
      withStore(open, async ({ store }) => {
        const page = await store.results.rids(newScope(), { limit: 2, order: 'desc' });
        expect(page).toEqual({ rids: [], cursor: undefined });
      }),
    );

    test(
      'are not listed from a cursor that no page has returned',
      withStore(open, async ({ store }) => {
        for (const cursor of ['', 'asc.1', `up.1.${newId()}`, `asc.${'9'.repeat(30)}.${newId()}`]) {
          const page = { limit: 2, order: 'asc', cursor } as const;
          await expect(store.results.rids(newScope(), page), cursor).rejects.toMatchObject({
            kind: 'invalid',
            field: 'scroll_id',
          });
        }
      }),
    );
  });

  /** Places of the rids in the order of storing; equal moments may come in any order. */
  function toPlaces(rids: readonly string[], stored: readonly string[]): number[] {
    return rids.map((rid) => {
      const place = stored.indexOf(rid);
      return place >= 1 && place <= 3 ? 1 : place;
    });
  }
}
