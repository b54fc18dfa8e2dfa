import { expect, test } from 'vitest';
import { DomainError } from '../../../src/domain/errors.ts';
import type { Store } from '../../../src/store/store.ts';
import { type StoreCall, withMetrics } from '../../../src/store/with-metrics.ts';
import { createFaultyStore } from '../../support/faulty-store.ts';

/** Only what these tests call; the decorators must pass all else by untouched. */
function countingStore() {
  const done: string[] = [];
  const accounts = {
    prefix: 'usage of',
    async usage(accountId: string): Promise<number> {
      if (accountId === 'gone') throw new DomainError('not_found', 'account_not_found', 'gone');
      done.push(`${this.prefix} ${accountId}`);
      return 7;
    },
  };
  const nothing = {};
  const store = {
    accounts,
    crawlers: nothing,
    queue: nothing,
    batches: nothing,
    hosts: nothing,
    deliveries: nothing,
    results: nothing,
    stats: nothing,
    rates: nothing,
    screenshots: nothing,
    notices: nothing,
    listings: nothing,
    processes: nothing,
    cookieSessions: nothing,
    audit: nothing,
    proxyPools: nothing,
    async ping() {
      done.push('ping');
    },
    async maintain() {
      throw new TypeError('broken');
    },
    async close() {
      done.push('close');
    },
  } as unknown as Store;
  return { store, done };
}

test('tells of every call by name, with its time and how it ended, and changes none', async () => {
  const calls: StoreCall[] = [];
  const store = withMetrics(countingStore().store, (call) => calls.push(call));
  expect(await store.accounts.usage('a')).toBe(7);
  await store.ping();
  await expect(store.accounts.usage('gone')).rejects.toMatchObject({ kind: 'not_found' });
  await expect(store.maintain(new Date())).rejects.toThrow('broken');
  expect(calls.map(({ operation, outcome }) => [operation, outcome])).toEqual([
    ['accounts.usage', 'ok'],
    ['ping', 'ok'],
    ['accounts.usage', 'not_found'],
    ['maintain', 'internal'],
  ]);
  expect(calls.every(({ seconds }) => seconds >= 0 && seconds < 1)).toBe(true);
});

test('fails as planned: before it is done, after it, once it is let go, or while the database is unavailable', async () => {
  const { store: inner, done } = countingStore();
  const { store, faults } = createFaultyStore(inner);
  faults.refuse('accounts.usage');
  faults.loseAnswer('accounts.usage');
  await expect(store.accounts.usage('refused')).rejects.toMatchObject({ kind: 'unavailable' });
  await expect(store.accounts.usage('lost')).rejects.toMatchObject({ kind: 'unavailable' });
  expect(await store.accounts.usage('well')).toBe(7);
  const held = faults.hold('ping');
  const ping = store.ping();
  await held.reached;
  expect(done).toEqual(['usage of lost', 'usage of well']);
  held.release();
  await ping;
  faults.away = true;
  await expect(store.ping()).rejects.toMatchObject({ kind: 'unavailable' });
  await store.close();
  expect(done).toEqual(['usage of lost', 'usage of well', 'ping', 'close']);
});
