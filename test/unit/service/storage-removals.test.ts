import { expect, test } from 'vitest';
import type { TokenOwner } from '../../../src/domain/account.ts';
import { createStorage } from '../../../src/service/reads/storage.ts';
import type { ResultStore } from '../../../src/store/store.ts';

const RID = '0123456789abcdef01234567';
const ownerNamed = (accountId: string): TokenOwner =>
  ({ account: { accountId }, tokenType: 'normal' }) as unknown as TokenOwner;

test('what is asked while a removal is under way is answered after it, for its own account', async () => {
  const removal = Promise.withResolvers<Set<string>>();
  let left = 1;
  const results = {
    remove: () => removal.promise,
    count: async () => left,
  } as unknown as ResultStore;
  const storage = createStorage({ results });
  const removed = storage.remove(ownerNamed('a'), [RID]);
  let counted: number | undefined;
  const counting = storage.count(ownerNamed('a')).then((count) => (counted = count));
  expect(await storage.count(ownerNamed('b'))).toBe(1);
  expect(counted).toBeUndefined();
  left = 0;
  removal.resolve(new Set([RID]));
  await counting;
  expect([await removed, counted]).toEqual([new Set([RID]), 0]);
});

test('a removal that fails holds nobody up', async () => {
  const results = {
    remove: () => Promise.reject(new Error('no database')),
    count: async () => 1,
  } as unknown as ResultStore;
  const storage = createStorage({ results });
  await expect(storage.remove(ownerNamed('a'), [RID])).rejects.toThrow('no database');
  expect(await storage.count(ownerNamed('a'))).toBe(1);
});
