import { describe, expect, test } from 'vitest';
import { toRetry } from './outcomes.ts';
import {
  at,
  claimJobs,
  finishJobs,
  makeAccount,
  makeCrawler,
  makeJobs,
  newId,
  type OpenStore,
  withStore,
} from './store-harness.ts';

/** Accounts and their tokens. */
export function accountsContract(open: OpenStore): void {
  describe('accounts', () => {
    test(
      'are found by identifier, name and either token',
      withStore(open, async ({ store }) => {
        const account = makeAccount();
        await store.accounts.create(account);
        expect(await store.accounts.get(account.accountId)).toEqual(account);
        expect(await store.accounts.findByName(account.name)).toEqual(account);
        for (const tokenType of ['normal', 'javascript'] as const) {
          const owner = await store.accounts.findByTokenHash(account.tokenHashes[tokenType]);
          expect(owner).toMatchObject({ account, tokenType });
        }
        expect(await store.accounts.get(newId())).toBeUndefined();
        expect(await store.accounts.findByName('nobody')).toBeUndefined();
        expect(await store.accounts.findByTokenHash('none')).toBeUndefined();
      }),
    );

    test(
      'refuse a name or token that is taken, and keep nothing of the refused',
      withStore(open, async ({ store }) => {
        const first = makeAccount({ name: 'Some.Name' });
        await store.accounts.create(first);
        const { normal, javascript } = first.tokenHashes;
        const refused = [
          makeAccount({ name: first.name }),
          makeAccount({ name: 'sOME.nAME' }),
          makeAccount({ tokenHashes: { normal, javascript: newId() } }),
          makeAccount({ tokenHashes: { normal: newId(), javascript } }),
          // The other type's token: whose it is would depend on where one looks first.
          makeAccount({ tokenHashes: { normal: javascript, javascript: newId() } }),
        ];
        for (const account of refused) {
          await expect(store.accounts.create(account)).rejects.toMatchObject({ kind: 'conflict' });
        }
        expect(await store.accounts.list({ limit: 10 })).toEqual([first]);
        await store.accounts.create(makeAccount({ name: 'Some-Name' }));
      }),
    );

    test(
      'give a contested name, however it is capitalized, to one of eight',
      withStore(open, async ({ store }) => {
        const contenders = Array.from({ length: 8 }, (_, n) =>
          makeAccount({ name: n % 2 === 0 ? 'contested' : 'CONTESTED' }),
        );
        const ends = await Promise.allSettled(
          contenders.map((each) => store.accounts.create(each)),
        );
        expect(ends.filter((end) => end.status === 'fulfilled')).toHaveLength(1);
        expect(await store.accounts.list({ limit: 10 })).toHaveLength(1);
      }),
    );

    test(
      'are listed by name, page by page',
      withStore(open, async ({ store }) => {
        for (const name of ['b', 'd', 'a', 'c', 'E']) {
          await store.accounts.create(makeAccount({ name }));
        }
        const names = async (limit: number, after?: string) => {
          const paging = after === undefined ? { limit } : { limit, after };
          return (await store.accounts.list(paging)).map(({ name }) => name);
        };
        expect(await names(3)).toEqual(['E', 'a', 'b']);
        expect(await names(3, 'b')).toEqual(['c', 'd']);
        expect(await names(3, 'd')).toEqual([]);
      }),
    );

    test(
      'change their e-mail address and one token at a time',
      withStore(open, async ({ store }) => {
        const account = makeAccount();
        await store.accounts.create(account);
        const { accountId } = account;
        const mailed = await store.accounts.update(accountId, { email: 'new@example.com' });
        expect(mailed).toEqual({ ...account, email: 'new@example.com' });
        const changed = await store.accounts.update(accountId, {
          tokenHashes: { normal: 'fresh' },
        });
        expect(changed?.tokenHashes).toEqual({ ...account.tokenHashes, normal: 'fresh' });
        expect(await store.accounts.findByTokenHash(account.tokenHashes.normal)).toBeUndefined();
        expect((await store.accounts.findByTokenHash('fresh'))?.tokenType).toBe('normal');
        expect(await store.accounts.get(accountId)).toEqual(changed);
        expect(await store.accounts.update(newId(), { email: 'x' })).toBeUndefined();
      }),
    );

    test(
      'refuse another account’s token as the new one',
      withStore(open, async ({ store }) => {
        const [first, second] = [makeAccount(), makeAccount()];
        await store.accounts.create(first);
        await store.accounts.create(second);
        const tokenHashes = { javascript: first.tokenHashes.normal };
        const taking = store.accounts.update(second.accountId, { tokenHashes });
        await expect(taking).rejects.toMatchObject({ kind: 'conflict' });
        expect(await store.accounts.get(second.accountId)).toEqual(second);
      }),
    );

    test(
      'are removed while they are changed',
      withStore(open, async ({ store }) => {
        for (let n = 0; n < 20; n += 1) {
          const account = makeAccount();
          const { accountId } = account;
          await store.accounts.create(account);
          const changes = ['a', 'b', 'c'].map(async (name) => {
            const email = `${name}@example.com`;
            while ((await store.accounts.update(accountId, { email })) !== undefined);
          });
          expect(await store.accounts.remove(accountId, at(0))).toBe(true);
          await Promise.all(changes);
          expect(await store.accounts.get(accountId)).toBeUndefined();
        }
      }),
    );

    test(
      'are removed once their crawlers are, and free their name',
      withStore(open, async ({ store }) => {
        const account = makeAccount();
        await store.accounts.create(account);
        const { crawler } = await store.crawlers.insert(makeCrawler(account.accountId));
        const early = store.accounts.remove(account.accountId, at(0));
        await expect(early).rejects.toMatchObject({ kind: 'failed_precondition' });
        await store.crawlers.remove(crawler.crawlerId);
        expect(await store.accounts.remove(account.accountId, at(0))).toBe(true);
        expect(await store.accounts.remove(account.accountId, at(0))).toBe(false);
        expect(await store.accounts.findByTokenHash(account.tokenHashes.normal)).toBeUndefined();
        await store.accounts.create(makeAccount({ name: account.name }));
      }),
    );

    test(
      'know how many of their URLs wait, whatever is being crawled aside',
      withStore(open, async ({ store, account, crawler, push, lease }) => {
        const { accountId } = await account();
        const [first, second] = [await crawler({ accountId }), await crawler({ accountId })];
        expect((await store.accounts.usage(accountId))?.queued).toBe(0);
        await push(makeJobs(first, 3));
        await push(makeJobs(second, 2));
        expect((await store.accounts.usage(accountId))?.queued).toBe(5);
        const held = await lease(first);
        const { jobs } = await claimJobs(store, held, 2, at(0));
        expect((await store.accounts.usage(accountId))?.queued).toBe(3);
        await finishJobs(
          store,
          jobs.map((job) => toRetry(job, at(1_000))),
          at(0),
          held,
        );
        expect((await store.accounts.usage(accountId))?.queued).toBe(5);
        expect(await store.accounts.usage(newId())).toBeUndefined();
      }),
    );
  });
}
