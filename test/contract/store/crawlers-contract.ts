import { describe, expect, test } from 'vitest';
import type { Crawler } from '../../../src/domain/crawler.ts';
import { crawlerEtag } from '../../../src/domain/crawler-etag.ts';
import type { CrawlerPatch } from '../../../src/store/store.ts';
import { makeRecord, toDelivery, toRelease, toRetry, toSettlement } from './outcomes.ts';
import {
  at,
  claimDeliveries,
  claimJobs,
  finishJobs,
  makeCrawler,
  makeJobs,
  newId,
  type OpenStore,
  settleDeliveries,
  withStore,
} from './store-harness.ts';

/** Crawlers, their settings and their two pauses. */
export function crawlersContract(open: OpenStore): void {
  describe('crawlers', () => {
    test(
      'come back as they were inserted, and only once under a name',
      withStore(open, async ({ store, account }) => {
        const { accountId } = await account();
        const crawler = makeCrawler(accountId, {
          delivery: 'webhook',
          tokenType: 'javascript',
          politeness: { maxPerHost: 2, delayMs: 500, robotsTxt: true },
          webhookSecrets: [{ secret: 'whsec_new' }, { secret: 'whsec_old', expiresAt: at(60_000) }],
        });
        expect(await store.crawlers.insert(crawler)).toEqual({ crawler, inserted: true });
        expect(await store.crawlers.get(crawler.crawlerId)).toEqual(crawler);
        expect(await store.crawlers.findByName(accountId, crawler.name)).toEqual(crawler);
        const again = makeCrawler(accountId, { name: crawler.name, concurrency: 7 });
        expect(await store.crawlers.insert(again)).toEqual({ crawler, inserted: false });
        expect(await store.crawlers.get(again.crawlerId)).toBeUndefined();
        expect(await store.crawlers.findByName(newId(), crawler.name)).toBeUndefined();
        const elsewhere = makeCrawler((await account()).accountId, { name: crawler.name });
        expect((await store.crawlers.insert(elsewhere)).inserted).toBe(true);
      }),
    );

    test(
      'give a contested name to one of eight, and all learn whose it is',
      withStore(open, async ({ store, account }) => {
        const { accountId } = await account();
        const contenders = Array.from({ length: 8 }, () =>
          makeCrawler(accountId, { name: 'same' }),
        );
        const ends = await Promise.all(contenders.map((each) => store.crawlers.insert(each)));
        expect(ends.filter(({ inserted }) => inserted)).toHaveLength(1);
        expect(new Set(ends.map(({ crawler }) => crawler.crawlerId)).size).toBe(1);
      }),
    );

    test(
      'are listed by name, of one token type or both',
      withStore(open, async ({ store, account, crawler }) => {
        const { accountId } = await account();
        for (const name of ['c', 'a', 'b']) await crawler({ accountId, name });
        await crawler({ accountId, name: 'aa', tokenType: 'javascript' });
        await crawler({ name: 'of-another-account' });
        const names = (crawlers: Crawler[]) => crawlers.map(({ name }) => name);
        const { list } = store.crawlers;
        expect(names(await list(accountId, { limit: 3 }))).toEqual(['a', 'aa', 'b']);
        expect(names(await list(accountId, { limit: 3, after: 'aa' }))).toEqual(['b', 'c']);
        expect(names(await list(accountId, { limit: 2 }, 'normal'))).toEqual(['a', 'b']);
        expect(names(await list(accountId, { limit: 2 }, 'javascript'))).toEqual(['aa']);
      }),
    );

    test(
      'change what the patch names and keep the rest',
      withStore(open, async ({ store, crawler }) => {
        const made = await crawler({ delivery: 'webhook' });
        const { crawlerId } = made;
        const politeness = { maxPerHost: 1, delayMs: 0, robotsTxt: false };
        const patch = {
          concurrency: 5,
          deliveryConcurrency: 3,
          politeness,
          callbackUrl: 'https://example.com/new',
        };
        const changed = await store.crawlers.update(crawlerId, patch, at(5));
        expect(changed).toEqual({ ...made, ...patch, updatedAt: at(5) });
        const then = { politeness: undefined, maxRetries: 3 };
        expect(await store.crawlers.update(crawlerId, then, at(6))).toEqual({
          ...made,
          ...patch,
          ...then,
          updatedAt: at(6),
        });
        expect(await store.crawlers.update(newId(), { concurrency: 1 }, at(5))).toBeUndefined();
      }),
    );

    test(
      'change only while they are as they were read, where an etag says how',
      withStore(open, async ({ store, crawler }) => {
        const made = await crawler({ delivery: 'webhook' });
        const { crawlerId } = made;
        const update = (patch: CrawlerPatch, etag: string) =>
          store.crawlers.update(crawlerId, patch, at(5), undefined, etag);
        const read = crawlerEtag(made);
        // A pause is no change of a setting.
        await store.crawlers.setPaused(crawlerId, 'user_pause', at(4));
        const rivals = await Promise.allSettled(
          [2, 3, 4].map((concurrency) => update({ concurrency, maxRetries: 1 }, read)),
        );
        expect(rivals.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
        const changed = await store.crawlers.get(crawlerId);
        const stale = { reason: 'crawler_changed' };
        await expect(update({ maxRetries: 5 }, read)).rejects.toMatchObject(stale);
        expect(await store.crawlers.get(crawlerId)).toEqual(changed);
        const politeness = { maxPerHost: 1, delayMs: 0, robotsTxt: false };
        const polite = await update({ politeness }, crawlerEtag(changed ?? made));
        expect(polite).toEqual({ ...changed, politeness, updatedAt: at(6) });
        const url = { callbackUrl: 'https://example.com/newer' };
        const moved = await update(url, crawlerEtag(polite ?? made));
        expect(moved).toMatchObject({ ...url, politeness });
        await expect(update({ maxRetries: 6 }, crawlerEtag(polite ?? made))).rejects.toMatchObject(
          stale,
        );
      }),
    );

    test(
      'replace their signing secrets only as long as the newest is the one that is named',
      withStore(open, async ({ store, crawler }) => {
        const made = await crawler({ delivery: 'webhook' });
        const { crawlerId } = made;
        const replace = (newest: string | undefined, secret: string) =>
          store.crawlers.replaceSecrets(
            crawlerId,
            newest,
            [{ secret }, { secret: 'old', expiresAt: at(9) }],
            at(5),
          );
        const first = await replace(undefined, 'a');
        const webhookSecrets = [{ secret: 'a' }, { secret: 'old', expiresAt: at(9) }];
        const changed = { ...made, webhookSecrets, updatedAt: at(5) };
        expect(first).toEqual({ crawler: changed, changed: true });
        for (const newest of [undefined, 'old', 'b']) {
          expect(await replace(newest, 'x')).toEqual({ crawler: changed, changed: false });
        }
        expect(await store.crawlers.get(crawlerId)).toEqual(changed);
        const rivals = await Promise.all(['b', 'c', 'd'].map((secret) => replace('a', secret)));
        expect(rivals.filter((each) => each?.changed === true)).toHaveLength(1);
        expect(
          await store.crawlers.replaceSecrets(newId(), undefined, webhookSecrets, at(5)),
        ).toBeUndefined();
      }),
    );

    test(
      'keep the two pauses apart; only the user’s unpause lifts both',
      withStore(open, async ({ store, crawler }) => {
        const { crawlerId } = await crawler({ delivery: 'webhook' });
        const steps = [
          // change, changed, paused by user, paused by monitor
          ['monitor_resume', false, false, false],
          ['user_unpause', false, false, false],
          ['monitor_pause', true, false, true],
          ['monitor_pause', false, false, true],
          ['user_pause', true, true, true],
          ['user_pause', false, true, true],
          ['monitor_resume', true, true, false],
          ['monitor_pause', true, true, true],
          ['user_unpause', true, false, false],
          ['monitor_pause', true, false, true],
          ['user_unpause', true, false, false],
        ] as const;
        for (const [change, changed, pausedByUser, pausedByMonitor] of steps) {
          const done = await store.crawlers.setPaused(crawlerId, change, at(1));
          expect(done).toMatchObject({ changed, crawler: { pausedByUser, pausedByMonitor } });
        }
        expect(await store.crawlers.setPaused(newId(), 'user_pause', at(1))).toBeUndefined();
      }),
    );

    test(
      'have another moment of their change after each one, however fast they follow',
      withStore(open, async ({ store: { crawlers }, crawler }) => {
        const { crawlerId } = await crawler();
        const moments = [(await crawlers.get(crawlerId))?.updatedAt];
        await crawlers.update(crawlerId, { concurrency: 3 }, at(5));
        moments.push((await crawlers.get(crawlerId))?.updatedAt);
        await crawlers.setPaused(crawlerId, 'user_pause', at(5));
        moments.push((await crawlers.get(crawlerId))?.updatedAt);
        await crawlers.setHostPaused(crawlerId, 'a.example', true, at(5));
        moments.push((await crawlers.get(crawlerId))?.updatedAt);
        await crawlers.replaceSecrets(crawlerId, undefined, [{ secret: 'whsec_a' }], at(5));
        moments.push((await crawlers.get(crawlerId))?.updatedAt);
        expect(new Set(moments.map((each) => each?.getTime())).size).toBe(5);
        // One that is not made has none.
        await crawlers.setPaused(crawlerId, 'user_pause', at(5));
        expect((await crawlers.get(crawlerId))?.updatedAt).toEqual(moments.at(-1));
        // The clock was set back.
        await crawlers.update(crawlerId, { concurrency: 4 }, at(-3_600_000));
        expect((await crawlers.get(crawlerId))?.updatedAt).toEqual(at(-3_600_000));
      }),
    );

    test(
      'tell since when the pause that is shown holds, and why the monitor paused',
      withStore(open, async ({ store, crawler }) => {
        const { crawlerId } = await crawler({ delivery: 'webhook' });
        const steps = [
          // change, paused since, reason
          ['monitor_pause', 1, 'refused: status 500'],
          ['monitor_pause', 1, 'refused: status 500'],
          ['user_pause', 3, 'refused: status 500'],
          ['monitor_resume', 3, undefined],
          ['monitor_pause', 3, '$refused: again'],
          ['user_unpause', undefined, undefined],
          ['user_pause', 7, undefined],
          ['user_unpause', undefined, undefined],
          ['monitor_pause', 9, '$refused: again'],
          ['monitor_resume', undefined, undefined],
        ] as const;
        let step = 0;
        for (const [change, since, reason] of steps) {
          step += 1;
          const why = step > 1 ? '$refused: again' : 'refused: status 500';
          await store.crawlers.setPaused(crawlerId, change, at(step), why);
          const found = await store.crawlers.get(crawlerId);
          expect([step, found?.pausedAt, found?.pauseReason]).toEqual([
            step,
            since === undefined ? undefined : at(since),
            reason,
          ]);
        }
      }),
    );

    test(
      'tell when URLs were last accepted, a crawl ended, a delivery was acknowledged and a probe made',
      withStore(open, async ({ store, crawler, push, lease, counters }) => {
        const made = await crawler({ delivery: 'webhook' });
        const last = async () => (await counters(made)).last;
        expect(await last()).toEqual({});
        await push(makeJobs(made, 3), at(1));
        expect(await last()).toEqual({ push: at(1) });
        const held = await lease(made, at(2));
        const { jobs } = await claimJobs(store, held, 3, at(2));
        const [first, second, third] = jobs;
        if (first === undefined || second === undefined || third === undefined) throw new Error();
        await store.queue.finish([toRelease(first), toRetry(second, at(9))], at(3));
        expect(await last()).toEqual({ push: at(1) });
        await store.queue.finish([toDelivery(third)], at(4));
        expect(await last()).toEqual({ push: at(1), crawl: at(4), success: at(4) });
        const [delivery] = await claimDeliveries(store, held, 1, 1_000, at(5));
        if (delivery === undefined) throw new Error('no delivery is due');
        await settleDeliveries(store, [toSettlement(delivery, 'delivered')], at(6));
        expect(await last()).toEqual({
          push: at(1),
          crawl: at(4),
          success: at(4),
          delivery: at(6),
        });
        await store.crawlers.claimProbes(at(9), 1, 1);
        expect((await last()).probe).toBeUndefined();
        await store.crawlers.noteProbes([made.crawlerId], at(9));
        expect((await last()).probe).toEqual(at(9));
      }),
    );

    test(
      'let one of eight be the one that paused',
      withStore(open, async ({ store, crawler }) => {
        const { crawlerId } = await crawler({ delivery: 'webhook' });
        const ends = await Promise.all(
          Array.from({ length: 8 }, () =>
            store.crawlers.setPaused(crawlerId, 'monitor_pause', at(1)),
          ),
        );
        expect(ends.filter((end) => end?.changed === true)).toHaveLength(1);
      }),
    );

    test(
      'go with their jobs, deliveries and statistics; stored results stay',
      withStore(open, async ({ store, account, crawler, push, running, counters }) => {
        const { accountId } = await account();
        const doomed = await crawler({ accountId, delivery: 'webhook' });
        const other = await crawler({ accountId });
        await push(makeJobs(other, 2));
        const { lease, jobs } = await running(doomed, 3);
        await finishJobs(
          store,
          jobs.slice(0, 1).map((job) => toDelivery(job)),
          at(0),
          lease,
        );
        const waiting = makeJobs(doomed, 4);
        await push(waiting);
        const scope = { accountId, tokenType: 'normal' } as const;
        const kept = { rid: newId(), url: 'https://example.com/' };
        await store.results.put(scope, makeRecord(kept), at(0), at(9_999_999));

        expect(await store.crawlers.remove(doomed.crawlerId)).toEqual({ purged: 4 });
        expect(await store.crawlers.remove(doomed.crawlerId)).toBeUndefined();
        expect(await store.crawlers.get(doomed.crawlerId)).toBeUndefined();
        expect(await store.crawlers.counters([doomed.crawlerId])).toEqual(new Map());
        for (const { rid } of [...jobs, ...waiting]) {
          expect(await store.queue.find(doomed.crawlerId, rid)).toBeUndefined();
          expect(await store.deliveries.get(doomed.crawlerId, rid)).toBeUndefined();
        }
        expect((await claimJobs(store, lease, 9, at(0))).jobs).toEqual([]);
        expect(await store.queue.crawlersWithWorkDue(at(60_000), 9)).toEqual([other.crawlerId]);
        expect((await store.accounts.usage(accountId))?.queued).toBe(2);
        expect((await counters(other)).waiting).toBe(2);
        expect(await store.results.count(scope)).toBe(1);

        const next = await crawler({ accountId, name: doomed.name });
        expect(await counters(next)).toMatchObject({ pushed: 0, waiting: 0, running: 0 });
        const days = await store.stats.history([next.crawlerId, doomed.crawlerId], {});
        expect([...days.values()].flat()).toEqual([]);
      }),
    );
  });
}
