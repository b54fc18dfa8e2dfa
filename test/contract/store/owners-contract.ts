import { describe, expect, test } from 'vitest';
import type { Account } from '../../../src/domain/account.ts';
import { createRid } from '../../../src/domain/rid.ts';
import { at, countersOf, makeCrawler, type OpenStore, pushMany, START } from './store-fixture.ts';

function accountOf(name: string): Account {
  return {
    accountId: createRid(START),
    name,
    email: `${name}@example.com`,
    tokenHashes: { normal: `${name}-n`, javascript: `${name}-j` },
    createdAt: START,
  };
}

/** What every store does with accounts and crawlers. */
export function ownerContract(open: OpenStore): void {
  describe('accounts', () => {
    test('are found by name and by either token, and no name or token is taken twice', async () => {
      await using opened = await open();
      const { accounts } = opened.store;
      const anna = accountOf('anna');
      await accounts.create(anna);
      expect(await accounts.findByTokenHash('anna-j')).toEqual({
        account: anna,
        tokenType: 'javascript',
      });
      expect(await accounts.findByTokenHash('nobody')).toBeUndefined();
      expect(await accounts.findByName('anna')).toEqual(anna);
      await expect(accounts.create(accountOf('anna'))).rejects.toMatchObject({ kind: 'conflict' });
      const thief = { ...accountOf('bert'), tokenHashes: { normal: 'b', javascript: 'anna-n' } };
      await expect(accounts.create(thief)).rejects.toMatchObject({ kind: 'conflict' });
      await accounts.create(accountOf('carl'));
      expect((await accounts.list({ limit: 5 })).map((each) => each.name)).toEqual([
        'anna',
        'carl',
      ]);
      expect((await accounts.list({ limit: 5, after: 'anna' })).map((each) => each.name)).toEqual([
        'carl',
      ]);
    });

    test('change field by field, and go only without crawlers', async () => {
      await using opened = await open();
      const { store } = opened;
      const anna = accountOf('anna');
      await store.accounts.create(anna);
      const changed = await store.accounts.update(anna.accountId, {
        tokenHashes: { normal: 'new' },
      });
      expect(changed).toEqual({ ...anna, tokenHashes: { ...anna.tokenHashes, normal: 'new' } });
      expect(await store.accounts.findByTokenHash('anna-n')).toBeUndefined();
      expect(await store.accounts.update('f'.repeat(24), { email: '' })).toBeUndefined();
      const crawler = await makeCrawler(store, 'mine', { accountId: anna.accountId });
      await expect(store.accounts.remove(anna.accountId)).rejects.toMatchObject({
        kind: 'failed_precondition',
      });
      await store.crawlers.remove(crawler.crawlerId);
      expect(await store.accounts.remove(anna.accountId)).toBe(true);
      expect(await store.accounts.remove(anna.accountId)).toBe(false);
    });
  });

  describe('crawlers', () => {
    test('are made once for each name, also by many at once', async () => {
      await using opened = await open();
      const { store } = opened;
      const first = await makeCrawler(store, 'once');
      const many = await Promise.all(
        Array.from({ length: 6 }, () =>
          store.crawlers.insert({ ...first, name: 'race', crawlerId: createRid(START) }),
        ),
      );
      expect(many.filter((each) => each.inserted)).toHaveLength(1);
      expect(new Set(many.map((each) => each.crawler.crawlerId)).size).toBe(1);
      expect(await store.crawlers.get(first.crawlerId)).toEqual(first);
      const javascript = await makeCrawler(store, 'js', { tokenType: 'javascript' });
      const { accountId } = first;
      const names = async (...args: Parameters<typeof store.crawlers.list>) =>
        (await store.crawlers.list(...args)).map((each) => each.name);
      expect(await names(accountId, { limit: 9 })).toEqual(['js', 'once', 'race']);
      expect(await names(accountId, { limit: 1, after: 'js' })).toEqual(['once']);
      expect(await names(accountId, { limit: 9 }, 'javascript')).toEqual([javascript.name]);
    });

    test('change field by field; secrets and politeness come back as they were', async () => {
      await using opened = await open();
      const { store } = opened;
      const crawler = await makeCrawler(store, 'change', { delivery: 'webhook' });
      const politeness = { maxPerHost: 2, delayMs: 100, robotsTxt: true };
      const webhookSecrets = [{ secret: 'whsec_b' }, { secret: 'whsec_a', expiresAt: at(60) }];
      const patch = { politeness, webhookSecrets, concurrency: 7 };
      const changed = await store.crawlers.update(crawler.crawlerId, patch, at(5));
      expect(changed).toEqual({ ...crawler, ...patch, updatedAt: at(5) });
      expect(await store.crawlers.findByName(crawler.accountId, 'change')).toEqual(changed);
      const off = await store.crawlers.update(crawler.crawlerId, { politeness: undefined }, at(6));
      expect(off?.politeness).toBeUndefined();
      expect(
        await store.crawlers.update('f'.repeat(24), { concurrency: 1 }, at(7)),
      ).toBeUndefined();
    });

    test('have two pauses that know nothing of each other', async () => {
      await using opened = await open();
      const { store } = opened;
      const { crawlerId } = await makeCrawler(store, 'pauses', { delivery: 'webhook' });
      const set = async (change: Parameters<typeof store.crawlers.setPaused>[1]) => {
        const result = await store.crawlers.setPaused(crawlerId, change, at(1));
        return [result?.changed, result?.crawler.pausedByUser, result?.crawler.pausedByMonitor];
      };
      expect(await set('monitor_pause')).toEqual([true, false, true]);
      expect(await set('monitor_pause')).toEqual([false, false, true]);
      expect(await set('user_pause')).toEqual([true, true, true]);
      expect(await set('monitor_resume')).toEqual([true, true, false]);
      expect(await set('monitor_pause')).toEqual([true, true, true]);
      expect(await set('user_unpause')).toEqual([true, false, false]);
      expect(await set('user_unpause')).toEqual([false, false, false]);
    });

    test('are probed once an interval each, at moments of their own', async () => {
      await using opened = await open();
      const { store } = opened;
      for (let n = 0; n < 40; n++) await makeCrawler(store, `hook-${n}`, { delivery: 'webhook' });
      await makeCrawler(store, 'storage');
      const probed: string[] = [];
      const most: number[] = [];
      for (let second = 0; second <= 60; second += 5) {
        const due = await Promise.all([
          store.crawlers.claimProbes(at(second), 60_000, 50),
          store.crawlers.claimProbes(at(second), 60_000, 50),
        ]);
        most.push(due.flat().length);
        probed.push(...due.flat().map((crawler) => crawler.name));
      }
      expect(new Set(probed).size).toBe(40);
      expect(probed.filter((name) => name === 'hook-0').length).toBeLessThanOrEqual(2);
      expect(Math.max(...most)).toBeLessThan(30);
      expect(probed).not.toContain('storage');
    });

    test('go with all that is theirs', async () => {
      await using opened = await open();
      const { store } = opened;
      const crawler = await makeCrawler(store, 'gone');
      await pushMany(store, crawler, 3);
      expect((await countersOf(store, crawler)).waiting).toBe(3);
      expect(await store.crawlers.remove(crawler.crawlerId)).toEqual({ purged: 3 });
      expect(await store.crawlers.remove(crawler.crawlerId)).toBeUndefined();
      expect(await store.accounts.queued(crawler.accountId)).toBe(0);
      expect((await store.crawlers.counters([crawler.crawlerId])).size).toBe(0);
      expect(
        (await store.stats.history([crawler.crawlerId], {})).get(crawler.crawlerId) ?? [],
      ).toEqual([]);
      expect(await store.queue.wakeable(at(9), 9)).toEqual([]);
      const again = await makeCrawler(store, 'gone');
      expect(again.crawlerId).not.toBe(crawler.crawlerId);
    });
  });
}
