import { describe, expect, test } from 'vitest';
import type { HistoryDay } from '../../../src/domain/stats.ts';
import { toDelivery, toRetry, toSettlement, toStored } from './outcomes.ts';
import {
  at,
  finishJobs,
  makeJobs,
  makeScreenshot,
  newId,
  type OpenStore,
  only,
  settleDeliveries,
  withStore,
} from './store-harness.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;

const NOTHING: Omit<HistoryDay, 'date'> = {
  pushed: 0,
  success: 0,
  failed: 0,
  byCbStatus: {},
  deliveries: 0,
  deliveryFailures: 0,
  billed: 0,
  retries: 0,
  climbs: 0,
  proxyBytes: 0,
  timeouts: 0,
  deleted: 0,
  purged: 0,
};

/** History by day, push rates and pictures. */
export function statsContract(open: OpenStore): void {
  describe('queues', () => {
    test(
      'depths add up, and the longest come first with the time their oldest job fell due',
      withStore(open, async ({ store, crawler, push, running }) => {
        const short = await crawler();
        const long = await crawler();
        const before = await store.stats.queueDepths(1_000);
        await push(makeJobs(short, 2));
        await push(makeJobs(long, 3));
        await running(await crawler(), 1);
        const { total, longest } = await store.stats.queueDepths(1_000);
        expect(total.waiting - before.total.waiting).toBe(5);
        expect(total.running - before.total.running).toBe(1);
        const own = longest.filter(({ crawler: name }) => [short.name, long.name].includes(name));
        expect(own).toMatchObject([
          { crawler: long.name, waiting: 3, retrying: 0, running: 0, oldestDueAt: at(0) },
          { crawler: short.name, waiting: 2, oldestDueAt: at(0) },
        ]);
        expect((await store.stats.queueDepths(1)).longest).toHaveLength(1);
        await store.queue.purge(long.crawlerId, at(1));
        const after = await store.stats.queueDepths(1_000);
        expect(after.longest.some(({ crawler: name }) => name === long.name)).toBe(false);
      }),
    );

    test(
      'no job is due while its crawler is paused, by its owner or by the monitor',
      withStore(open, async ({ store, crawler, push }) => {
        const own = await crawler();
        await push(makeJobs(own, 2));
        const depth = async () =>
          only(
            (await store.stats.queueDepths(1_000)).longest.filter(
              (each) => each.crawler === own.name,
            ),
          );
        for (const [change, oldestDueAt] of [
          ['user_pause', undefined],
          ['user_unpause', at(0)],
          ['monitor_pause', undefined],
          ['monitor_resume', at(0)],
        ] as const) {
          await store.crawlers.setPaused(own.crawlerId, change, at(1));
          expect(await depth()).toMatchObject({ waiting: 2, oldestDueAt });
        }
      }),
    );
  });

  describe('history', () => {
    test(
      'counts everything on the UTC day it happened',
      withStore(open, async ({ store, crawler, push, running }) => {
        const made = await crawler({ delivery: 'webhook' });
        const { crawlerId } = made;
        const { lease, jobs } = await running(made, 5);
        const [good, bad, again, unpaid, deleted] = jobs;
        if (!good || !bad || !again || !unpaid || !deleted) throw new Error('five were pushed');
        const outcomes = [
          toDelivery(good, {}, { held: true }),
          toDelivery(bad, { cbStatus: 521, originalStatus: 0 }, { billed: false }),
          toRetry(again, at(5 * DAY_MS)),
          toDelivery(unpaid, { originalStatus: 403 }, { billed: false }),
        ];
        await finishJobs(store, outcomes, at(1), lease);
        await store.queue.deleteJob(crawlerId, deleted.rid, at(2));
        const next = at(DAY_MS);
        await settleDeliveries(store, [toSettlement({ ...good, attempt: 1 }, 'delivered')], next);
        await push(makeJobs(made, 2), next);
        await store.queue.purge(crawlerId, next);
        const days = await store.stats.history([crawlerId], {});
        expect(days.get(crawlerId)).toEqual([
          {
            ...NOTHING,
            date: '2040-05-17',
            pushed: 5,
            success: 2,
            failed: 1,
            byCbStatus: { 200: 2, 521: 1 },
            billed: 1,
            retries: 1,
            deleted: 1,
          },
          { ...NOTHING, date: '2040-05-18', pushed: 2, deliveries: 1, purged: 3 },
        ]);
      }),
    );

    test(
      'gives the days of each crawler between two days inclusive',
      withStore(open, async ({ store, account, crawler, push }) => {
        const { accountId } = await account();
        const [made, other] = [await crawler({ accountId }), await crawler({ accountId })];
        for (let n = 0; n < 6; n++) await push(makeJobs(made, n + 1), at(n * DAY_MS));
        await push(makeJobs(other, 1), at(2 * DAY_MS));
        const ids = [made.crawlerId, other.crawlerId];
        const pushed = async (range: { from?: string; to?: string }) => {
          const days = await store.stats.history(ids, range);
          return ids.map((id) => (days.get(id) ?? []).map((day) => day.pushed));
        };
        expect(await pushed({})).toEqual([[1, 2, 3, 4, 5, 6], [1]]);
        expect(await pushed({ from: '2040-05-18', to: '2040-05-20' })).toEqual([[2, 3, 4], [1]]);
        expect(await pushed({ from: '2040-05-21' })).toEqual([[5, 6], []]);
        expect(await pushed({ to: '2040-05-17' })).toEqual([[1], []]);
        expect(await pushed({ from: '2040-05-19', to: '2040-05-18' })).toEqual([[], []]);
      }),
    );

    test(
      'adds up the days of crawlers by date, and counts them',
      withStore(open, async ({ store, account, crawler, push }) => {
        const { accountId } = await account();
        const [made, other] = [await crawler({ accountId }), await crawler({ accountId })];
        for (let n = 0; n < 3; n++) await push(makeJobs(made, n + 1), at(n * DAY_MS));
        await push(makeJobs(other, 5), at(2 * DAY_MS));
        const sums = async (ids: readonly string[], range: { from?: string; to?: string }) => {
          const { days, count } = await store.stats.historySums(ids, range);
          return [days.map(({ date, pushed }) => [date, pushed]), count];
        };
        const ids = [made.crawlerId, other.crawlerId];
        expect(await sums(ids, {})).toEqual([
          [
            ['2040-05-17', 1],
            ['2040-05-18', 2],
            ['2040-05-19', 8],
          ],
          4,
        ]);
        expect(await sums(ids, { from: '2040-05-19' })).toEqual([[['2040-05-19', 8]], 2]);
        expect(await sums([other.crawlerId], { to: '2040-05-18' })).toEqual([[], 0]);
      }),
    );

    test(
      'counts how long tries of crawls took',
      withStore(open, async ({ store, crawler, running }) => {
        const made = await crawler();
        const { lease, jobs } = await running(made, 3);
        const [one, other, again] = jobs;
        if (!one || !other || !again) throw new Error('three were pushed');
        const outcomes = [
          { ...toStored(one), tookMs: 40 },
          { ...toStored(other), tookMs: 45 },
          { ...toRetry(again, at(DAY_MS)), tookMs: 1e9 },
        ];
        await finishJobs(store, outcomes, at(1), lease);
        const days = await store.stats.history([made.crawlerId], {});
        expect(days.get(made.crawlerId)?.[0]?.times).toEqual({ 50: 2, 600000: 1 });
      }),
    );

    test(
      'is read every half minute where something has changed, and thinned with its age',
      withStore(open, async ({ store, crawler, push }) => {
        const made = await crawler();
        const idle = await crawler();
        const minute = 60_000;
        const { crawlerId } = made;
        const numbers = async (id: string) => {
          const found = await store.stats.samples([id], at(0));
          return (found.get(id) ?? []).map(({ at: when, day, counts, queued }) => ({
            minute: (when.getTime() - at(0).getTime()) / minute,
            day,
            pushed: counts.pushed,
            queued,
          }));
        };
        const day = '2040-05-17';
        await push(makeJobs(made, 2), at(0));
        for (const seconds of [0, 5, 30, 60, 120]) await store.maintain(at(seconds * 1_000));
        expect(await numbers(crawlerId)).toEqual([{ minute: 0, day, pushed: 2, queued: 2 }]);
        for (let n = 3; n < 30; n += 1) {
          await push(makeJobs(made, 1), at(n * minute));
          await store.maintain(at(n * minute));
        }
        expect(await numbers(crawlerId)).toHaveLength(28);
        expect((await numbers(crawlerId)).at(-1)).toEqual({
          minute: 29,
          day,
          pushed: 29,
          queued: 29,
        });
        expect(await numbers(idle.crawlerId)).toEqual([]);
        const taken = await store.stats.samples([''], at(0));
        expect(taken.get('')?.map(({ at: when }) => when)).toContainEqual(at(29 * minute));
        // The last of each ten minutes, then of each hour.
        await store.maintain(at(3 * 60 * minute));
        const minutes = async () => (await numbers(crawlerId)).map((each) => each.minute);
        expect(await minutes()).toEqual([9, 19, 29]);
        for (let n = 181; n < 190; n += 1) {
          await push(makeJobs(made, 1), at(n * minute));
          await store.maintain(at(n * minute));
        }
        await store.maintain(at(5 * 60 * minute));
        expect(await minutes()).toEqual([9, 19, 29, 189]);
        await store.maintain(at(30 * 60 * minute));
        expect(await minutes()).toEqual([29, 189, 30 * 60]);
        // The last sample before the range is read, too, but no earlier one.
        const late = await store.stats.samples([crawlerId], at(25 * 60 * minute));
        expect(late.get(crawlerId)).toHaveLength(2);
        await store.crawlers.remove(crawlerId);
        await store.maintain(at(30 * 60 * minute + 1));
        expect(await numbers(crawlerId)).toEqual([]);
      }),
    );

    test(
      'loses no count when many happen at once',
      withStore(open, async ({ store, crawler, push, running }) => {
        const made = await crawler();
        const { lease, jobs } = await running(made, 40);
        await Promise.all([
          ...jobs.map((job, n) =>
            finishJobs(store, [toStored(job, { cbStatus: n % 2 === 0 ? 200 : 520 })], at(1), lease),
          ),
          ...Array.from({ length: 20 }, () => push(makeJobs(made, 2), at(1))),
        ]);
        const days = await store.stats.history([made.crawlerId], {});
        expect(only(days.get(made.crawlerId) ?? [])).toMatchObject({
          pushed: 80,
          success: 20,
          failed: 20,
          billed: 40,
          byCbStatus: { 200: 20, 520: 20 },
        });
      }),
    );
  });

  describe('push rates', () => {
    test(
      'hold a second’s worth and fill up again',
      withStore(open, async ({ store }) => {
        const key = newId();
        const take = (count: number, ms: number) => store.rates.take(key, count, 30, at(ms));
        expect(await take(20, 0)).toMatchObject({ granted: 20 });
        const short = await take(20, 0);
        expect(short.granted).toBe(10);
        expect(short.retryAfterMs).toBeGreaterThan(0);
        expect(short.retryAfterMs).toBeLessThanOrEqual(34);
        expect(await take(1, 0)).toMatchObject({ granted: 0 });
        expect(await take(1, short.retryAfterMs)).toMatchObject({ granted: 1 });
        expect(await take(1_000, 60_000)).toMatchObject({ granted: 30 });
        expect(await store.rates.take(newId(), 5, 30, at(60_000))).toMatchObject({ granted: 5 });
      }),
    );

    test(
      'are not exceeded by eight at once',
      withStore(open, async ({ store }) => {
        const key = newId();
        const takes = await Promise.all(
          Array.from({ length: 8 }, () => store.rates.take(key, 7, 30, at(0))),
        );
        expect(takes.reduce((sum, { granted }) => sum + granted, 0)).toBe(30);
      }),
    );
  });

  describe('pictures', () => {
    test(
      'live until they expire',
      withStore(open, async ({ store }) => {
        const screenshot = makeScreenshot(newId(), 70_000);
        const { id, bytes } = screenshot;
        await store.screenshots.put(screenshot);
        const found = await store.screenshots.get(id, at(99));
        expect(found?.contentType).toBe('image/jpeg');
        expect(Buffer.compare(found?.bytes ?? new Uint8Array(0), bytes)).toBe(0);
        expect(await store.screenshots.get(id, at(100))).toBeUndefined();
        expect(await store.screenshots.get(newId(), at(0))).toBeUndefined();
      }),
    );
  });
}
