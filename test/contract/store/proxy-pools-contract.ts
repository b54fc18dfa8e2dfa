import { describe, expect, test } from 'vitest';
import { at, type OpenStore, withStore } from './store-harness.ts';

/** The pools of proxies that accounts have made. */
export function proxyPoolsContract(open: OpenStore): void {
  describe('pools of proxies', () => {
    test(
      'are replaced by one of those that have read them, and are read when they have changed',
      withStore(open, async (bench) => {
        const { proxyPools } = bench.store;
        const { accountId: one } = await bench.account();
        expect(await proxyPools.read(one, 0)).toBeUndefined();
        expect(await proxyPools.replace(one, 3, 'x')).toBe(false);
        const first = ['a', 'b', 'c'].map((text) => proxyPools.replace(one, 0, text));
        expect((await Promise.all(first)).filter(Boolean)).toHaveLength(1);
        expect(await proxyPools.read(one, 0)).toMatchObject({ version: 1 });
        expect(await proxyPools.read(one, 1)).toBeUndefined();
        const second = ['d', 'e'].map((text) => proxyPools.replace(one, 1, text));
        expect((await Promise.all(second)).filter(Boolean)).toHaveLength(1);
        expect(await proxyPools.replace(one, 1, 'f')).toBe(false);
        expect(await proxyPools.replace(one, 2, 'last')).toBe(true);
        await bench.crash();
        expect(await bench.store.proxyPools.read(one, 2)).toEqual({ version: 3, sealed: 'last' });
        expect(await bench.store.proxyPools.read('two', 0)).toBeUndefined();
        expect(await bench.store.proxyPools.owners(9)).toEqual([one]);
        const { accountId: other } = await bench.account();
        await bench.store.proxyPools.replace(other, 0, 'x');
        expect((await bench.store.proxyPools.owners(9)).toSorted()).toEqual(
          [one, other].toSorted(),
        );
        expect(await bench.store.proxyPools.owners(1)).toHaveLength(1);
      }),
    );

    test(
      'are removed with their account',
      withStore(open, async ({ store, account }) => {
        const { accountId } = await account();
        await store.proxyPools.replace(accountId, 0, 'sealed');
        await store.accounts.remove(accountId, at(1));
        expect(await store.proxyPools.read(accountId, 0)).toBeUndefined();
        // A call that was under way comes too late.
        expect(await store.proxyPools.replace(accountId, 0, 'sealed')).toBe(false);
        expect(await store.proxyPools.read(accountId, 0)).toBeUndefined();
      }),
    );
  });
}
