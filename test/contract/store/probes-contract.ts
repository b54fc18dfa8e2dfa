import { describe, expect, test } from 'vitest';
import type { Store } from '../../../src/store/store.ts';
import { at, type OpenStore, withStore } from './store-harness.ts';

const INTERVAL_MS = 60_000;

/** Who probes which callback URL, and when. */
export function probesContract(open: OpenStore): void {
  const claim = async (store: Store, ms: number, limit: number): Promise<string[]> => {
    const crawlers = await store.crawlers.claimProbes(at(ms), INTERVAL_MS, limit);
    return crawlers.map(({ crawlerId }) => crawlerId);
  };

  describe('probes', () => {
    test(
      'come due once an interval for each webhook crawler, spread over it from the first one on',
      withStore(open, async ({ store, account, crawler }) => {
        const { accountId } = await account();
        await crawler({ accountId });
        const ids: string[] = [];
        for (let n = 0; n < 40; n++) {
          ids.push((await crawler({ accountId, delivery: 'webhook' })).crawlerId);
        }
        const quarters: string[][] = [];
        for (const quarter of [0, 1, 2, 3]) {
          quarters.push(await claim(store, (quarter * INTERVAL_MS) / 4, 100));
        }
        quarters.push(await claim(store, INTERVAL_MS - 1, 100));
        expect(quarters.flat().sort()).toEqual(ids.sort());
        expect(quarters.filter((quarter) => quarter.length > 0).length).toBeGreaterThan(1);
        expect(await claim(store, INTERVAL_MS, 100)).toEqual(quarters[0]);
        expect((await claim(store, 2 * INTERVAL_MS, 100)).sort()).toEqual(ids.sort());
      }),
    );

    test(
      'are given to one of eight callers each, never more than asked for',
      withStore(open, async ({ store, account, crawler }) => {
        const { accountId } = await account();
        for (let n = 0; n < 20; n++) await crawler({ accountId, delivery: 'webhook' });
        // Sets the first probes; some may be due at once.
        const given = await claim(store, 0, 1);
        const shares = await Promise.all(
          Array.from({ length: 8 }, () => claim(store, INTERVAL_MS - 1, 3)),
        );
        expect(Math.max(...shares.map((share) => share.length))).toBeLessThanOrEqual(3);
        given.push(...shares.flat());
        given.push(...(await claim(store, INTERVAL_MS - 1, 100)));
        expect(new Set(given).size).toBe(20);
        expect(given).toHaveLength(20);
      }),
    );

    test(
      'are late when the last one, or the change of a crawler that had none, is too long ago',
      withStore(open, async ({ store, account, crawler }) => {
        const { accountId } = await account();
        const webhook = { accountId, delivery: 'webhook' } as const;
        await crawler({ accountId, delivery: 'storage', updatedAt: at(0) });
        const { crawlerId } = await crawler({ ...webhook, updatedAt: at(0) });
        await crawler({ ...webhook, updatedAt: at(0) });
        await crawler({ ...webhook, updatedAt: at(200) });
        expect(await store.crawlers.lateProbes(at(0))).toBe(0);
        expect(await store.crawlers.lateProbes(at(100))).toBe(2);
        await store.crawlers.noteProbes([crawlerId], at(300));
        expect(await store.crawlers.lateProbes(at(100))).toBe(1);
        expect(await store.crawlers.lateProbes(at(300))).toBe(2);
        expect(await store.crawlers.lateProbes(at(301))).toBe(3);
      }),
    );

    test(
      'that are postponed come due at their moment, in its order',
      withStore(open, async ({ store, account, crawler }) => {
        const { accountId } = await account();
        for (let n = 0; n < 3; n++) await crawler({ accountId, delivery: 'webhook' });
        await claim(store, 0, 0);
        const [first = '', second = '', third = ''] = await claim(store, INTERVAL_MS, 3);
        await store.crawlers.postponeProbes([
          { crawlerId: second, dueAt: at(INTERVAL_MS + 10) },
          { crawlerId: first, dueAt: at(INTERVAL_MS + 20) },
        ]);
        expect(await claim(store, INTERVAL_MS + 9, 3)).toEqual([]);
        expect(await claim(store, INTERVAL_MS + 20, 1)).toEqual([second]);
        expect(await claim(store, INTERVAL_MS + 20, 1)).toEqual([first]);
        expect(await claim(store, 2 * INTERVAL_MS, 3)).toEqual([third]);
      }),
    );

    test(
      'of one callback URL are due for all of its crawlers at once',
      withStore(open, async ({ store, account, crawler }) => {
        const shared = { delivery: 'webhook', callbackUrl: 'https://example.com/shared' } as const;
        const ids: string[] = [];
        for (let n = 0; n < 5; n++) ids.push((await crawler(shared)).crawlerId);
        const { accountId } = await account();
        await crawler({ accountId, delivery: 'webhook' });
        await claim(store, 0, 0);
        let first: string[] = [];
        let firstAt = 0;
        while (!first.includes(ids[0] ?? '')) {
          firstAt += INTERVAL_MS / 8;
          first = await claim(store, firstAt, 1);
        }
        expect(first.toSorted()).toEqual(ids.toSorted());
        // A newcomer waits for the URL's next probe.
        const newcomer = await crawler(shared);
        expect(await claim(store, firstAt + INTERVAL_MS - 1, 100)).not.toContain(ids[0]);
        expect((await claim(store, firstAt + INTERVAL_MS, 1)).toSorted()).toEqual(
          [...ids, newcomer.crawlerId].toSorted(),
        );
      }),
    );
  });
}
