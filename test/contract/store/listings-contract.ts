import { describe, expect, test } from 'vitest';
import type { Crawler } from '../../../src/domain/crawler.ts';
import { addTry } from '../../../src/domain/job-try.ts';
import type {
  DeliveryFilter,
  JobOutcome,
  Lease,
  Listing,
  ListingPart,
} from '../../../src/store/store.ts';
import { makeAttempt, toDelivery, toRetry, toSettlement, toStored } from './outcomes.ts';
import {
  at,
  claimDeliveries,
  claimJobs,
  finishJobs,
  makeJobs,
  newId,
  type OpenStore,
  type StoreBench,
  settleDeliveries,
  withStore,
} from './store-harness.ts';

/** Reads a listing part by part to its end. */
async function readAll<Row>(
  limit: number,
  read: (part: ListingPart) => Promise<Listing<Row>>,
): Promise<Row[]> {
  const rows: Row[] = [];
  let part: ListingPart = { limit };
  for (;;) {
    const { rows: found, cursor } = await read(part);
    expect(found.length).toBeLessThanOrEqual(limit);
    rows.push(...found);
    if (cursor === undefined) return rows;
    part = { limit, cursor };
  }
}

const toRids = (rows: readonly { readonly rid: string }[]): string[] => rows.map(({ rid }) => rid);

/** Deliveries whose crawls ended at `at(0)`, `at(1)`, ...: every third of a failed crawl. */
async function delivering(
  { store, crawler, running }: StoreBench,
  count: number,
): Promise<{ made: Crawler; lease: Lease; rids: string[] }> {
  const made = await crawler({ delivery: 'webhook' });
  const { lease, jobs } = await running(made, count);
  for (const [n, job] of jobs.entries()) {
    const failed = { cbStatus: 522, originalStatus: 0, details: { failure: 'timeout' } };
    await finishJobs(store, [toDelivery(job, n % 3 === 0 ? failed : {})], at(n), lease);
  }
  return { made, lease, rids: toRids(jobs) };
}

/** What people look at. */
export function listingsContract(open: OpenStore): void {
  describe('listings', () => {
    test(
      'a part ends early where sites have sent long headers, and all rows come nevertheless',
      withStore(open, async ({ store, crawler, running }) => {
        const originalHeaders = { long: 'x'.repeat(50_000) };
        const failed = { cbStatus: 522, details: { failure: 'timeout', originalHeaders } };
        for (const delivery of ['storage', 'webhook'] as const) {
          const made = await crawler({ delivery });
          const { lease, jobs } = await running(made, 100);
          const end = delivery === 'storage' ? toStored : toDelivery;
          await finishJobs(
            store,
            jobs.map((job) => end(job, failed)),
            at(1),
            lease,
          );
          const { accountId, tokenType, crawlerId } = made;
          const selection = { accountId, tokenType, crawlerId };
          const read = (part: ListingPart) =>
            delivery === 'storage'
              ? store.listings.results(selection, 'failed', part)
              : store.listings.deliveries(crawlerId, { outcome: 'failed' }, part);
          const first = await read({ limit: 2_000 });
          expect(first.rows.length).toBeGreaterThan(50);
          expect(first.rows.length).toBeLessThan(100);
          const rids = toRids(await readAll<{ readonly rid: string }>(2_000, read));
          expect(rids.toSorted()).toEqual(toRids(jobs).toSorted());
        }
      }),
    );

    test(
      'crawlers come with their counters, of the accounts asked for, by name',
      withStore(open, async ({ store, account, crawler, push }) => {
        const [one, two] = [await account(), await account()];
        const b = await crawler({ accountId: one.accountId, name: 'b' });
        const a = await crawler({ accountId: one.accountId, name: 'a', tokenType: 'javascript' });
        const c = await crawler({ accountId: two.accountId, name: 'c' });
        await crawler();
        await push(makeJobs(b, 3));
        await store.crawlers.setPaused(a.crawlerId, 'user_pause', at(5));
        const both = await store.listings.crawlers([one.accountId, two.accountId], 10);
        const ids = both.map((each) => each.crawler.crawlerId);
        expect(new Set(ids)).toEqual(new Set([a.crawlerId, b.crawlerId, c.crawlerId]));
        const own = await store.listings.crawlers([one.accountId], 10);
        expect(own.map((each) => each.crawler.name)).toEqual(['a', 'b']);
        expect(own[0]?.crawler).toEqual(await store.crawlers.get(a.crawlerId));
        const counters = await store.crawlers.counters([b.crawlerId]);
        expect(own[1]?.counters).toEqual(counters.get(b.crawlerId));
        expect(own[1]?.counters.waiting).toBe(3);
        expect(await store.listings.crawlers([one.accountId], 1)).toHaveLength(1);
        expect(await store.listings.crawlers([], 10)).toEqual([]);
      }),
    );

    test(
      'crawlers are found by a part of their name, upper and lower case alike',
      withStore(open, async ({ store, account, crawler }) => {
        const { accountId } = await account();
        for (const name of ['b-Shop.eu', 'a-shop', 'shopper', 'sh_p', 'other']) {
          await crawler({ accountId, name });
        }
        await crawler({ accountId: (await account()).accountId, name: 'shop' });
        const named = async (text: string, limit = 10) => {
          const found = await store.listings.crawlers([accountId], limit, text);
          return found.map((each) => each.crawler.name);
        };
        expect(await named('shop')).toEqual(['a-shop', 'b-Shop.eu', 'shopper']);
        expect(await named('shop', 2)).toEqual(['a-shop', 'b-Shop.eu']);
        // No character stands for others.
        expect(await named('h_p')).toEqual(['sh_p']);
        expect(await named('p.e')).toEqual(['b-Shop.eu']);
        for (const none of [
          's%p',
          '.*',
          'shop$',
          '(',
          '\\',
          '\0',
          'shop\0',
          '\ud800',
          '\u{1f577}',
        ]) {
          expect(await named(none), JSON.stringify(none)).toEqual([]);
        }
      }),
    );

    test(
      'of each account come at most as many crawlers as asked for, however many others have',
      withStore(open, async ({ store, account, crawler }) => {
        const [one, two] = [await account(), await account()];
        const accountIds = [one.accountId, two.accountId];
        for (const accountId of accountIds) {
          for (const name of ['c', 'a', 'd', 'b']) await crawler({ accountId, name });
        }
        await crawler({ accountId: one.accountId, name: 'e' });
        const others = [(await account()).accountId, (await account()).accountId];
        for (const asked of [accountIds, [...accountIds, ...others]]) {
          const found = await store.listings.crawlers(asked, 3);
          const names = Map.groupBy(found, (each) => each.crawler.accountId);
          expect(names.size).toBe(2);
          for (const accountId of accountIds) {
            expect(names.get(accountId)?.map((each) => each.crawler.name)).toEqual(['a', 'b', 'c']);
          }
        }
      }),
    );

    test(
      'jobs come by when they are due, all or those of a state, with their last failure',
      withStore(open, async ({ store, crawler, running, push }) => {
        const made = await crawler();
        const { lease, jobs } = await running(made, 4);
        for (const [n, job] of jobs.entries()) {
          await finishJobs(store, [toRetry(job, at(1_000 - n), `reason_${n}`)], at(1), lease);
        }
        const waiting = makeJobs(made, 5, { createdAt: at(5), queueDeadline: at(99_000) });
        await push(waiting, at(5));
        const list = (state?: 'waiting' | 'retrying', limit = 2) =>
          readAll(limit, (part) => store.listings.jobs(made.crawlerId, state, part));
        const retried = toRids(jobs).toReversed();
        expect(toRids(await list('waiting'))).toEqual(toRids(waiting));
        expect(toRids(await list('retrying'))).toEqual(retried);
        expect(toRids(await list())).toEqual([...toRids(waiting), ...retried]);
        const [first] = await list('retrying');
        expect(first).toMatchObject({
          crawlerId: made.crawlerId,
          url: jobs[3]?.url,
          method: 'GET',
          state: 'retrying',
          retry: 1,
          createdAt: at(0),
          dueAt: at(997),
          firstTriedAt: at(0),
          lastFailure: 'reason_3',
        });
        expect(first?.climbed).toBeUndefined();
        const [untried] = await list('waiting');
        expect(untried).toMatchObject({ retry: 0, queueDeadline: at(99_000) });
        expect(untried?.lastFailure).toBeUndefined();
        await store.queue.purge(made.crawlerId, at(6));
        expect(await list()).toEqual([]);
        expect(await store.listings.jobs(newId(), undefined, { limit: 5 })).toEqual({
          rows: [],
          cursor: undefined,
        });
      }),
    );

    test(
      'deliveries come newest first, pending ones by their next attempt, each with its attempts',
      withStore(open, async (bench) => {
        const { store } = bench;
        const { made, lease, rids } = await delivering(bench, 7);
        const claimed = await claimDeliveries(store, lease, 3, 1e9, at(10));
        await settleDeliveries(
          store,
          [
            toSettlement(nth(claimed, 0), 'delivered'),
            toSettlement(nth(claimed, 1), 'failed'),
            toSettlement(nth(claimed, 2), 'retry', { dueAt: at(500) }),
          ],
          at(11),
        );
        const list = (filter: DeliveryFilter, limit = 2) =>
          readAll(limit, (part) => store.listings.deliveries(made.crawlerId, filter, part));
        const byAge = rids.toReversed();
        expect(toRids(await list({}))).toEqual(byAge);
        expect(toRids(await list({ state: 'delivered' }))).toEqual([rids[0]]);
        expect(toRids(await list({ state: 'failed' }))).toEqual([rids[1]]);
        const pending = await list({ state: 'pending' });
        expect(toRids(pending)).toEqual([...rids.slice(3), rids[2]]);
        expect(pending.at(-1)).toMatchObject({
          state: 'pending',
          nextAttemptAt: at(500),
          attempts: [makeAttempt(1, 500)],
        });
        const failed = await list({ outcome: 'failed' });
        expect(toRids(failed)).toEqual([rids[6], rids[3], rids[0]]);
        expect(failed[0]).toMatchObject({ cbStatus: 522, failure: 'timeout', createdAt: at(6) });
        expect(await list({ outcome: 'completed' })).toHaveLength(4);
        expect(toRids(await list({ state: 'delivered', outcome: 'failed' }))).toEqual([rids[0]]);
        const range = { from: at(2), to: at(5) };
        expect(toRids(await list({ range }))).toEqual(rids.slice(2, 5));
        expect(toRids(await list({ range, state: 'pending' }, 1))).toEqual(rids.slice(2, 5));
        expect(await list({ range: { from: at(50), to: at(60) } })).toEqual([]);
      }),
    );

    test(
      'a list of deliveries has the last twenty attempts of each',
      withStore(open, async (bench) => {
        const { store } = bench;
        const { made, lease, rids } = await delivering(bench, 1);
        for (let attempt = 1; attempt <= 22; attempt += 1) {
          const [claimed] = await claimDeliveries(store, lease, 1, 1e9, at(attempt));
          if (claimed === undefined) throw new Error('nothing was due');
          await settleDeliveries(store, [toSettlement(claimed, 'retry')], at(attempt));
        }
        const { rows } = await store.listings.deliveries(made.crawlerId, {}, { limit: 1 });
        expect(rows[0]?.attempts.map(({ attempt }) => attempt)).toEqual(
          Array.from({ length: 20 }, (_, n) => n + 3),
        );
        expect((await store.deliveries.get(made.crawlerId, rids[0] ?? ''))?.attempts).toHaveLength(
          22,
        );
      }),
    );

    test(
      'results come newest first, of a crawler or of a token, all or by their outcome',
      withStore(open, async ({ store, account, crawler, running }) => {
        const { accountId } = await account();
        const [one, two] = [await crawler({ accountId }), await crawler({ accountId })];
        const rids: string[] = [];
        for (const [n, made] of [one, two, one, one].entries()) {
          const { lease, jobs } = await running(made, 1);
          const [job] = jobs;
          if (job === undefined) throw new Error('nothing was claimed');
          const failed = { cbStatus: 521, details: { failure: 'name_not_found' } };
          await finishJobs(store, [toStored(job, n === 2 ? failed : {})], at(n), lease);
          await store.queue.release(lease, at(n));
          rids.push(job.rid);
        }
        const scope = { accountId, tokenType: 'normal' } as const;
        const list = (crawlerId?: string, outcome?: 'completed' | 'failed', limit = 2) =>
          readAll(limit, (part) =>
            store.listings.results(
              { ...scope, ...(crawlerId === undefined ? {} : { crawlerId }) },
              outcome,
              part,
            ),
          );
        expect(toRids(await list())).toEqual(rids.toReversed());
        expect(toRids(await list(one.crawlerId))).toEqual([rids[3], rids[2], rids[0]]);
        expect(toRids(await list(two.crawlerId, undefined, 1))).toEqual([rids[1]]);
        expect(toRids(await list(one.crawlerId, 'failed'))).toEqual([rids[2]]);
        expect(toRids(await list(undefined, 'failed', 1))).toEqual([rids[2]]);
        expect(toRids(await list(one.crawlerId, 'completed', 1))).toEqual([rids[3], rids[0]]);
        const [newest] = await list(one.crawlerId);
        expect(newest).toMatchObject({
          pushedUrl: 'https://example.com/page?and=query',
          cbStatus: 200,
          contentType: 'text/html',
          storedAt: at(3),
          size: 10,
        });
        expect(newest).not.toHaveProperty('body');
        const other = { ...scope, tokenType: 'javascript' } as const;
        expect((await store.listings.results(other, undefined, { limit: 5 })).rows).toEqual([]);
      }),
    );

    test(
      'a rid is found wherever it is, but not what was purged or is still being written',
      withStore(open, async ({ store, crawler, push, running, lease }) => {
        const [made, hook] = [await crawler(), await crawler({ delivery: 'webhook' })];
        const { lease: held, jobs } = await running(made, 2);
        const [stored, retried] = jobs;
        if (stored === undefined || retried === undefined) throw new Error('nothing was claimed');
        expect((await store.listings.locate(stored.rid)).job).toMatchObject({ state: 'running' });
        await finishJobs(store, [toStored(stored), toRetry(retried, at(9))], at(1), held);
        expect(await store.listings.locate(stored.rid)).toMatchObject({
          result: {
            rid: stored.rid,
            accountId: made.accountId,
            tokenType: 'normal',
            crawlerId: made.crawlerId,
          },
        });
        const found = await store.listings.locate(retried.rid);
        expect(found).toMatchObject({ job: { crawlerId: made.crawlerId, state: 'retrying' } });
        await store.queue.purge(made.crawlerId, at(2));
        expect(await store.listings.locate(retried.rid)).toEqual({});
        expect(await store.listings.locate(newId())).toEqual({});
        await push(makeJobs(hook, 1));
        const webhookLease = await lease(hook);
        const [job] = (await claimJobs(store, webhookLease, 1, at(3))).jobs;
        if (job === undefined) throw new Error('nothing was claimed');
        await finishJobs(store, [toDelivery(job)], at(4), webhookLease);
        expect(await store.listings.locate(job.rid)).toMatchObject({
          delivery: { rid: job.rid, crawlerId: hook.crawlerId, state: 'pending' },
        });
      }),
    );

    test(
      'a job keeps its tries, and a delivery what the latest five posts were answered',
      withStore(open, async ({ store, crawler, running }) => {
        const made = await crawler({ delivery: 'webhook' });
        const { lease: held, jobs } = await running(made, 2);
        const [retried, delivered] = jobs;
        if (retried === undefined || delivered === undefined) throw new Error('nothing claimed');
        const tries = JSON.stringify(
          addTry([], {
            startedAt: at(0),
            durationMs: 5,
            originalStatus: 0,
            failure: 'timeout',
            steps: [['connect', 5]],
          }),
        );
        const request = '{"priority":7}';
        const end = toDelivery(delivered, { request });
        await finishJobs(
          store,
          [{ ...toRetry(retried, at(9), 'timeout'), tries } as JobOutcome, end],
          at(1),
          held,
        );
        const { job } = await store.listings.locate(retried.rid);
        expect(job).toMatchObject({ tries, lastFailure: 'timeout', parameters: {} });
        expect((await claimJobs(store, held, 1, at(10))).jobs[0]?.tries).toBe(tries);

        for (let n = 1; n <= 7; n += 1) {
          const [delivery] = await claimDeliveries(store, held, 1, 1e9, at(20 + n));
          if (delivery === undefined) throw new Error('nothing is due');
          const log = { ...makeAttempt(n, 500, at(n)), ...(n === 6 ? {} : { answer: `no ${n}` }) };
          await settleDeliveries(store, [toSettlement(delivery, 'retry', { log })], at(20 + n));
        }
        const answers = [undefined, 'no 2', 'no 3', 'no 4', 'no 5', undefined, 'no 7'];
        const { delivery } = await store.listings.locate(delivered.rid);
        expect(delivery).toMatchObject({
          request,
          callbackHeaders: [['X-Token', 'abc']],
          contentType: 'text/html',
          crawlerId: made.crawlerId,
        });
        expect(delivery?.attempts.map(({ answer }) => answer)).toEqual(answers);
        const got = await store.deliveries.get(made.crawlerId, delivered.rid);
        expect(got?.attempts.map(({ answer }) => answer)).toEqual(answers);
        const { rows } = await store.listings.deliveries(made.crawlerId, {}, { limit: 5 });
        expect(rows[0]?.attempts.map(({ answer }) => answer)).toEqual(answers.map(() => undefined));
      }),
    );

    test(
      'a filter selects rows of every list, however far behind; a host those of one list by its index',
      withStore(open, async ({ store, crawler, push, running }) => {
        const [made, hook] = [await crawler(), await crawler({ delivery: 'webhook' })];
        const at5 = (n: number) => ({
          url: `https://${n % 5 === 0 ? 'five' : 'other'}.example/${n}`,
        });
        const waiting = makeJobs(made, 20).map((job, n) => {
          const { url } = at5(n);
          return { ...job, url, host: new URL(url).host };
        });
        await push(waiting);
        const fives = waiting.filter((_job, n) => n % 5 === 0).map(({ rid }) => rid);
        const matches = { urlContains: 'FIVE.example' };
        const listed = await readAll(3, (part) =>
          store.listings.jobs(made.crawlerId, undefined, part, matches),
        );
        expect(toRids(listed).toSorted()).toEqual(fives.toSorted());
        const ofHost = await store.listings.jobsOfHost(made.crawlerId, 'five.example', {
          limit: 9,
        });
        expect(toRids(ofHost.rows).toSorted()).toEqual(fives.toSorted());
        const one = { urlContains: '/10' };
        const found = await store.listings.jobsOfHost(
          made.crawlerId,
          'five.example',
          { limit: 9 },
          one,
        );
        expect(found).toMatchObject({ rows: [{ rid: waiting[10]?.rid }], cursor: undefined });

        const failed = { cbStatus: 522, originalStatus: 0, details: { failure: 'timeout' } };
        const { lease: held, jobs } = await running(hook, 6);
        const ends = jobs.map((job, n) => toDelivery(job, n === 0 ? failed : {}));
        await finishJobs(store, ends, at(1), held);
        const delivering = await readAll(2, (part) =>
          store.listings.deliveries(hook.crawlerId, { matches: { reason: 'timeout' } }, part),
        );
        expect(toRids(delivering)).toEqual([jobs[0]?.rid]);
        const stored = await crawler();
        const taken = await running(stored, 6);
        const results = taken.jobs.map((job, n) => toStored(job, n === 0 ? failed : {}));
        await finishJobs(store, results, at(2), taken.lease);
        const { accountId, crawlerId } = stored;
        const scope = { accountId, tokenType: 'normal', crawlerId } as const;
        const kept = await readAll(2, (part) =>
          store.listings.results(scope, undefined, part, { cbStatus: 522 }),
        );
        expect(toRids(kept)).toEqual([taken.jobs[0]?.rid]);
      }),
    );

    test(
      'a cursor that no part returned is refused',
      withStore(open, async ({ store, crawler }) => {
        const { crawlerId, accountId } = await crawler();
        const part = { limit: 5, cursor: 'x; DROP TABLE jobs' };
        const refused = { kind: 'invalid', reason: 'invalid_page_token' };
        const scope = { accountId, tokenType: 'normal' } as const;
        const { listings } = store;
        await expect(listings.jobs(crawlerId, undefined, part)).rejects.toMatchObject(refused);
        await expect(listings.deliveries(crawlerId, {}, part)).rejects.toMatchObject(refused);
        await expect(listings.results(scope, undefined, part)).rejects.toMatchObject(refused);
      }),
    );
  });
}

function nth<Row>(rows: readonly Row[], n: number): Row {
  const row = rows[n];
  if (row === undefined) throw new Error(`there is no row ${n}`);
  return row;
}
