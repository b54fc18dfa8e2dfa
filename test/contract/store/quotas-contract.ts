import { describe, expect, test } from 'vitest';
import type { Job } from '../../../src/domain/job.ts';
import { chargedBytes, chargedJobBytes } from '../../../src/domain/quotas.ts';
import type { ResultScope } from '../../../src/store/store.ts';
import { EXPIRES, makeRecord, toDelivery, toRetry, toSettlement, toStored } from './outcomes.ts';
import {
  at,
  claimDeliveries,
  claimJobs,
  finishJobs,
  makeCrawler,
  makeJob,
  makeJobs,
  makeScreenshot,
  newId,
  type OpenStore,
  only,
  settleDeliveries,
  withStore,
} from './store-harness.ts';

const HOUR = 3_600_000;
/** What the page of an outcome counts for. */
const PAGE = chargedBytes(10);

const totalSize = (jobs: readonly Job[]): number =>
  jobs.reduce((sum, job) => sum + chargedJobBytes(job), 0);

/** What accounts use of their quotas, and what is refused. */
export function quotasContract(open: OpenStore): void {
  describe('quotas', () => {
    test(
      'of an account are its own where it has them, and can be replaced',
      withStore(open, async ({ store, account }) => {
        const { accountId, name } = await account({ limits: { crawlers: 3 } });
        expect((await store.accounts.get(accountId))?.limits).toEqual({ crawlers: 3 });
        const limits = { storageBytes: 5_000_000_000, replaysPerHour: 0 };
        expect((await store.accounts.update(accountId, { limits }))?.limits).toEqual(limits);
        expect((await store.accounts.update(accountId, { email: '' }))?.limits).toEqual(limits);
        expect((await store.accounts.findByName(name))?.limits).toEqual(limits);
      }),
    );

    test(
      'count crawlers and their concurrency as they come, change and go; the service’s own are exempt',
      withStore(open, async ({ store, account }) => {
        const { accountId } = await account();
        const usage = () => store.accounts.usage(accountId);
        const none = { crawlers: 0, concurrency: 0, storedBytes: 0, queuedBytes: 0, queued: 0 };
        expect(await usage()).toEqual(none);
        const quota = { crawlers: 2, concurrency: 50 };
        const first = makeCrawler(accountId, { concurrency: 20 });
        await store.crawlers.insert(first, quota);
        await store.crawlers.insert(first, quota);
        await store.crawlers.insert(makeCrawler(accountId, { name: '.async-normal' }), quota);
        expect(await usage()).toEqual({ ...none, crawlers: 1, concurrency: 20 });

        const wide = store.crawlers.insert(makeCrawler(accountId, { concurrency: 31 }), quota);
        await expect(wide).rejects.toMatchObject({
          kind: 'invalid',
          reason: 'concurrency_quota_exceeded',
          metadata: { limit: 50, used: 20 },
        });
        const second = makeCrawler(accountId, { concurrency: 30 });
        expect((await store.crawlers.insert(second, quota)).inserted).toBe(true);
        const third = store.crawlers.insert(makeCrawler(accountId, { concurrency: 1 }), quota);
        await expect(third).rejects.toMatchObject({ reason: 'crawlers_quota_exceeded' });
        // One that is there is answered, however full the account is.
        expect((await store.crawlers.insert(second, quota)).inserted).toBe(false);

        const set = (concurrency: number) =>
          store.crawlers.update(second.crawlerId, { concurrency }, at(1), quota);
        await expect(set(31)).rejects.toMatchObject({ reason: 'concurrency_quota_exceeded' });
        expect((await set(5))?.concurrency).toBe(5);
        expect(await usage()).toEqual({ ...none, crawlers: 2, concurrency: 25 });
        expect((await set(30))?.concurrency).toBe(30);
        await store.crawlers.remove(second.crawlerId);
        expect(await usage()).toEqual({ ...none, crawlers: 1, concurrency: 20 });
        expect(await store.accounts.usage('0'.repeat(24))).toBeUndefined();
      }),
    );

    test(
      'are not passed by eight at the same time',
      withStore(open, async ({ store, account }) => {
        const { accountId } = await account();
        const ends = await Promise.allSettled(
          Array.from({ length: 8 }, () =>
            store.crawlers.insert(makeCrawler(accountId), { crawlers: 3, concurrency: 0 }),
          ),
        );
        expect(ends.filter((end) => end.status === 'fulfilled')).toHaveLength(3);
        expect(await store.accounts.usage(accountId)).toMatchObject({ crawlers: 3 });
      }),
    );

    test(
      'refuse a crawler to an account that is gone',
      withStore(open, async ({ store }) => {
        const orphan = store.crawlers.insert(makeCrawler('0'.repeat(24)));
        await expect(orphan).rejects.toMatchObject({ kind: 'unauthenticated' });
      }),
    );

    test(
      'name the accounts whose storage is full, by their own limit or that of all',
      withStore(open, async ({ store, account }) => {
        const put = async (accountId: string) =>
          store.results.put(
            { accountId, tokenType: 'normal' },
            makeRecord({ rid: newId(), url: 'https://example.com/' }),
            at(0),
            EXPIRES,
          );
        const [common, wide, unlimited, small] = [
          await account(),
          await account({ limits: { storageBytes: 2 * PAGE + 1_000 } }),
          await account({ limits: { storageBytes: 0, crawlers: 1 } }),
          await account({ limits: { storageBytes: 1 } }),
        ];
        const full = async (defaultLimit: number) =>
          new Map(
            (await store.accounts.full(defaultLimit)).map(({ accountId, ...use }) => [
              accountId,
              use,
            ]),
          );
        expect(await full(1)).toEqual(new Map());
        for (const each of [common, wide, unlimited]) await put(each.accountId);
        const used = (await store.accounts.usage(common.accountId))?.storedBytes ?? 0;
        expect(await full(used)).toEqual(
          new Map([[common.accountId, { usedBytes: used, limitBytes: used }]]),
        );
        expect(await full(used + 1)).toEqual(new Map());
        expect(await full(0)).toEqual(new Map());
        await put(small.accountId);
        expect(await full(0)).toEqual(
          new Map([[small.accountId, { usedBytes: used, limitBytes: 1 }]]),
        );
      }),
    );

    test(
      'count queued bytes until the job has ended, whatever its end',
      withStore(open, async ({ store, account, crawler, push, lease }) => {
        const { accountId } = await account();
        const made = await crawler({ accountId });
        const other = await crawler({ accountId });
        const queued = async () => (await store.accounts.usage(accountId))?.queuedBytes;
        const body = new Uint8Array(1_000);
        const jobs = [makeJob(made, { method: 'POST', body }), ...makeJobs(made, 5)];
        await push(jobs);
        expect(totalSize(jobs)).toBeGreaterThan(1_000);
        expect(await queued()).toBe(totalSize(jobs));
        const held = await lease(made);
        const claimed = (await claimJobs(store, held, 3, at(0))).jobs;
        expect(await queued()).toBe(totalSize(jobs));
        const [first, second, third] = claimed;
        if (!first || !second || !third) throw new Error('three jobs were claimed');
        await finishJobs(store, [toRetry(first, at(9)), toStored(second)], at(1), held);
        expect(await queued()).toBe(totalSize(jobs) - totalSize([second]));
        await store.queue.deleteJob(made.crawlerId, third.rid, at(2));
        expect(await queued()).toBe(totalSize(jobs) - totalSize([second, third]));
        const late = makeJobs(other, 2);
        await push(late);
        await store.queue.purge(made.crawlerId, at(3));
        expect(await queued()).toBe(totalSize(late));
        await store.crawlers.remove(other.crawlerId);
        expect(await queued()).toBe(0);
      }),
    );

    test(
      'count only the bytes of what was admitted',
      withStore(open, async ({ store, account, crawler, push }) => {
        const { accountId } = await account();
        const made = await crawler({ accountId });
        const jobs = [
          makeJob(made, { url: 'https://example.com/a-long-one' }),
          ...makeJobs(made, 4),
        ];
        await push(jobs, at(0), { crawlerQueue: 2, accountQueue: 100 });
        const usage = await store.accounts.usage(accountId);
        expect(usage?.queuedBytes).toBe(totalSize(jobs.slice(0, 2)));
      }),
    );

    test(
      'count stored results until they are removed or expire',
      withStore(open, async ({ store, account, crawler, running }) => {
        const { accountId } = await account();
        const made = await crawler({ accountId });
        const stored = async () => (await store.accounts.usage(accountId))?.storedBytes;
        const { lease, jobs } = await running(made, 3);
        const soon = { expiresAt: at(HOUR) };
        await finishJobs(
          store,
          jobs.map((job, index) => toStored(job, {}, index === 2 ? soon : {})),
          at(1),
          lease,
        );
        expect(await stored()).toBe(3 * PAGE);
        const scope = { accountId, tokenType: 'normal' } as const;
        const own = makeRecord({ rid: 'a'.repeat(24), url: 'https://example.com/' });
        await store.results.put(scope, own, at(2), EXPIRES);
        expect(await stored()).toBe(4 * PAGE);
        const [first, second] = jobs;
        await store.results.remove(scope, [first?.rid ?? '']);
        await store.results.remove(scope, [first?.rid ?? '']);
        expect(await stored()).toBe(3 * PAGE);
        await store.results.remove(scope, [second?.rid ?? '', own.rid]);
        expect(await stored()).toBe(PAGE);
        await store.maintain(at(2 * HOUR));
        expect(await stored()).toBe(0);
      }),
    );

    test(
      'count long addresses and headers of results as long as they are stored',
      withStore(open, async ({ store, account }) => {
        const { accountId } = await account();
        const stored = async () => (await store.accounts.usage(accountId))?.storedBytes ?? 0;
        const scope = { accountId, tokenType: 'normal' } as const;
        const { rid } = makeJob(makeCrawler(accountId));
        const record = makeRecord(
          { rid, url: `https://example.com/${'a'.repeat(5_000)}` },
          { details: { originalHeaders: { 'x-long': 'b'.repeat(20_000) } } },
        );
        await store.results.put(scope, record, at(0), EXPIRES);
        expect(await stored()).toBeGreaterThan(30_000);
        expect(await store.results.totals(scope)).toEqual({ results: 1, bytes: await stored() });
        await store.results.remove(scope, [rid]);
        expect(await stored()).toBe(0);
      }),
    );

    test(
      'are told apart by token where results are stored',
      withStore(open, async ({ store, account }) => {
        const { accountId } = await account();
        const scopes = (['normal', 'javascript'] as const).map((tokenType) => {
          return { accountId, tokenType };
        });
        const totals = () => Promise.all(scopes.map((scope) => store.results.totals(scope)));
        const none = { results: 0, bytes: 0 };
        expect(await totals()).toEqual([none, none]);
        const [normal, javascript] = scopes as [ResultScope, ResultScope];
        const put = async (scope: ResultScope): Promise<string> => {
          const { rid, url } = makeJob(makeCrawler(accountId));
          await store.results.put(scope, makeRecord({ rid, url }), at(0), EXPIRES);
          return rid;
        };
        const first = await put(normal);
        await put(normal);
        await put(javascript);
        const two = { results: 2, bytes: 2 * PAGE };
        const one = { results: 1, bytes: PAGE };
        expect(await totals()).toEqual([two, one]);
        await store.results.remove(normal, [first]);
        expect(await totals()).toEqual([one, one]);
        expect((await store.accounts.usage(accountId))?.storedBytes).toBe(2 * PAGE);
      }),
    );

    test(
      'count the pages of deliveries as long as they are kept',
      withStore(open, async ({ store, account, crawler, running }) => {
        const { accountId } = await account();
        const made = await crawler({ accountId, delivery: 'webhook' });
        const stored = async () => (await store.accounts.usage(accountId))?.storedBytes;
        const { lease, jobs } = await running(made, 2);
        const outcomes = jobs.map((job) => toDelivery(job, {}, { expiresAt: at(HOUR) }));
        await finishJobs(store, outcomes, at(1), lease);
        expect(await stored()).toBe(2 * PAGE);
        const claimed = await claimDeliveries(store, lease, 1, 1_000_000, at(2));
        await settleDeliveries(store, [toSettlement(only(claimed), 'delivered')], at(3));
        expect(await stored()).toBe(2 * PAGE);
        await store.maintain(at(2 * HOUR));
        expect(await stored()).toBe(0);
        const again = await running(made, 1);
        await finishJobs(store, [toDelivery(only(again.jobs))], at(4), again.lease);
        await store.crawlers.remove(made.crawlerId);
        expect(await stored()).toBe(0);
      }),
    );

    test(
      'count screenshots until they expire',
      withStore(open, async ({ store, account }) => {
        const { accountId } = await account();
        const stored = async () => (await store.accounts.usage(accountId))?.storedBytes;
        await store.screenshots.put(makeScreenshot(accountId, 5_000));
        await store.screenshots.put({ ...makeScreenshot(accountId, 10), expiresAt: at(HOUR) });
        expect(await stored()).toBe(chargedBytes(5_000) + PAGE);
        await store.maintain(at(100));
        expect(await stored()).toBe(PAGE);
        await store.maintain(at(HOUR));
        expect(await stored()).toBe(0);
      }),
    );

    test(
      'take whole what an allowance holds, or nothing of it',
      withStore(open, async ({ store, account }) => {
        const key = (await account()).accountId;
        const allowance = { capacity: 100, refillMs: HOUR };
        const take = (count: number, ms: number) =>
          store.rates.takeWhole(key, count, allowance, at(ms));
        expect(await take(0, 0)).toEqual({ granted: true, left: 100, retryAfterMs: 0 });
        expect(await take(70, 0)).toMatchObject({ granted: true, left: 30 });
        const missing = HOUR / 100;
        expect(await take(31, 0)).toEqual({ granted: false, left: 30, retryAfterMs: missing });
        expect(await take(31, HOUR / 20)).toMatchObject({ granted: true, left: 4 });
        expect(await take(4, HOUR / 20)).toMatchObject({ granted: true, left: 0 });
        expect(await take(0, HOUR / 20)).toMatchObject({ left: 0, retryAfterMs: missing });
        expect(await take(0, 3 * HOUR)).toMatchObject({ granted: true, left: 100 });
        expect(await store.rates.takeWhole(`${key}/other`, 100, allowance, at(0))).toMatchObject({
          granted: true,
        });
      }),
    );

    test(
      'know how many deliveries a replay would make due',
      withStore(open, async ({ store, crawler, running }) => {
        const made = await crawler({ delivery: 'webhook' });
        const { crawlerId } = made;
        const { lease, jobs } = await running(made, 3);
        await finishJobs(
          store,
          jobs.map((job) => toDelivery(job)),
          at(1),
          lease,
        );
        const all = { from: at(0), to: at(10) };
        expect(await store.deliveries.countReplayable(crawlerId, all, 10)).toBe(3);
        expect(await store.deliveries.countReplayable(crawlerId, all, 2)).toBe(2);
        const later = { from: at(2), to: at(10) };
        expect(await store.deliveries.countReplayable(crawlerId, later, 10)).toBe(0);
        const [first] = await claimDeliveries(store, lease, 1, 1_000_000, at(2));
        const rid = first?.rid ?? '';
        expect(await store.deliveries.countReplayable(crawlerId, { rids: [rid] }, 10)).toBe(0);
        expect(await store.deliveries.countReplayable(crawlerId, all, 10)).toBe(2);
        expect(await store.deliveries.replay(crawlerId, all, at(3))).toBe(2);
      }),
    );

    test(
      'of an account that was removed leave no result behind',
      withStore(open, async ({ store, account }) => {
        const { accountId } = await account();
        const kept = await account();
        const scope = { accountId, tokenType: 'javascript' } as const;
        const put = (who: typeof scope, count: number) =>
          Promise.all(
            Array.from({ length: count }, () => {
              const { rid, url } = makeJob(makeCrawler(who.accountId));
              return store.results.put(who, makeRecord({ rid, url }), at(0), EXPIRES);
            }),
          );
        await put(scope, 700);
        await put({ ...scope, accountId: kept.accountId }, 3);
        await store.accounts.remove(accountId, at(1));
        // In as many steps as it takes.
        await store.maintain(at(2));
        expect(await store.results.count(scope)).toBe(0);
        // One that was under way when the account went.
        await put(scope, 1);
        await store.maintain(at(4));
        expect(await store.results.count(scope)).toBe(0);
        await store.maintain(at(5 * HOUR));
        expect(await store.results.count({ ...scope, accountId: kept.accountId })).toBe(3);
      }),
    );
  });
}
