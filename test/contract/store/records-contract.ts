import { describe, expect, test } from 'vitest';
import type { Crawler } from '../../../src/domain/crawler.ts';
import type { CrawlRecord } from '../../../src/domain/job.ts';
import { createRid } from '../../../src/domain/rid.ts';
import type { DeliveryOutcome, Store } from '../../../src/store/store.ts';
import {
  at,
  countersOf,
  delivered,
  leaseOf,
  makeCrawler,
  type OpenStore,
  pushMany,
  START,
} from './store-fixture.ts';

async function deliveriesDue(store: Store, crawler: Crawler, count: number) {
  await pushMany(store, crawler, count);
  const lease = await leaseOf(store, crawler);
  const { jobs } = await store.queue.claim(lease, count, at(1));
  const ends = jobs.map((job) => delivered(job, false));
  await store.queue.finish(ends, at(2), lease);
  return { lease, rids: jobs.map((job) => job.rid) };
}

function outcomeOf(
  delivery: { rid: string; crawlerId: string; attempt: number },
  kind: DeliveryOutcome['kind'],
  dueAt?: Date,
): DeliveryOutcome {
  const { rid, crawlerId, attempt } = delivery;
  const error = kind === 'delivered' ? '' : 'status 500';
  const log = { attempt, startedAt: at(3), status: error === '' ? 200 : 500, durationMs: 5, error };
  const due = dueAt === undefined ? {} : { dueAt };
  return { rid, crawlerId, attempt, kind, billed: attempt > 1, log, ...due };
}

/** What every store does with deliveries. */
export function deliveryContract(open: OpenStore): void {
  describe('deliveries', () => {
    test('are claimed oldest first within a number and a size, with their page', async () => {
      await using opened = await open();
      const { store } = opened;
      const crawler = await makeCrawler(store, 'claim', { delivery: 'webhook' });
      const { lease, rids } = await deliveriesDue(store, crawler, 4);
      // Each page has three bytes.
      const first = await store.deliveries.claim(lease, 10, 7, at(3));
      expect(first.map((each) => each.rid)).toEqual(rids.slice(0, 2));
      expect(first[0]).toMatchObject({
        attempt: 1,
        crawlerId: crawler.crawlerId,
        url: 'https://example.com/final',
        cbStatus: 200,
        callbackHeaders: [['x-a', 'b']],
        extras: { original_server: 'test' },
      });
      expect([...(first[0]?.body ?? [])]).toEqual([1, 2, 3]);
      expect(await store.deliveries.claim(lease, 1, 1, at(3))).toHaveLength(1);
      expect((await countersOf(store, crawler)).deliveriesPending).toBe(4);
    });

    test('end, come back, or are given back, each once', async () => {
      await using opened = await open();
      const { store } = opened;
      const crawler = await makeCrawler(store, 'settle', { delivery: 'webhook' });
      const { lease, rids } = await deliveriesDue(store, crawler, 4);
      const claimed = await store.deliveries.claim(lease, 4, 1_000, at(3));
      const [a, b, c, d] = claimed;
      if (!a || !b || !c || !d) throw new Error('not all were claimed');
      const { log: _log, ...back } = outcomeOf(d, 'release');
      const outcomes = [
        outcomeOf(a, 'delivered'),
        outcomeOf(b, 'retry', at(50)),
        outcomeOf(c, 'failed'),
        back,
      ];
      expect(await store.deliveries.settle(outcomes, at(4))).toEqual(['won', 'won', 'won', 'won']);
      expect(await store.deliveries.settle(outcomes, at(5))).toEqual([
        'lost',
        'lost',
        'lost',
        'lost',
      ]);
      expect((await countersOf(store, crawler)).deliveriesPending).toBe(2);
      const states = await Promise.all(
        rids.map((rid) => store.deliveries.get(crawler.crawlerId, rid)),
      );
      expect(states.map((each) => each?.state)).toEqual([
        'delivered',
        'pending',
        'failed',
        'pending',
      ]);
      expect(states[1]?.nextAttemptAt).toEqual(at(50));
      expect(states[1]?.attempts).toEqual([
        { attempt: 1, startedAt: at(3), status: 500, durationMs: 5, error: 'status 500' },
      ]);
      expect(
        (await store.deliveries.claim(lease, 5, 1_000, at(6))).map((each) => each.attempt),
      ).toEqual([1]);
      const later = await store.deliveries.claim(lease, 5, 1_000, at(51));
      expect(later).toMatchObject([{ rid: b.rid, attempt: 2 }]);
      const day = (await store.stats.history([crawler.crawlerId], {})).get(crawler.crawlerId)?.[0];
      expect(day).toMatchObject({ deliveries: 1, deliveryFailures: 2 });
    });

    test('wait while the monitor has paused the crawler, not while its user has', async () => {
      await using opened = await open();
      const { store } = opened;
      const crawler = await makeCrawler(store, 'paused', { delivery: 'webhook' });
      const { lease } = await deliveriesDue(store, crawler, 2);
      const { crawlerId } = crawler;
      await store.crawlers.setPaused(crawlerId, 'monitor_pause', at(3));
      expect(await store.deliveries.claim(lease, 5, 1_000, at(4))).toEqual([]);
      expect(await store.queue.nextWake(crawlerId)).toBeUndefined();
      await store.crawlers.setPaused(crawlerId, 'user_pause', at(5));
      await store.crawlers.setPaused(crawlerId, 'monitor_resume', at(6));
      expect(await store.queue.nextWake(crawlerId)).toEqual(at(2));
      expect(await store.deliveries.claim(lease, 5, 1_000, at(7))).toHaveLength(2);
    });

    test('are replayed by rid and by time as long as they are kept', async () => {
      await using opened = await open();
      const { store } = opened;
      const crawler = await makeCrawler(store, 'replay', { delivery: 'webhook' });
      const { crawlerId } = crawler;
      const { lease, rids } = await deliveriesDue(store, crawler, 3);
      const claimed = await store.deliveries.claim(lease, 3, 1_000, at(3));
      const ends = claimed.map((each) => ({ ...outcomeOf(each, 'delivered'), expiresAt: at(100) }));
      await store.deliveries.settle(ends, at(4));
      const [first = ''] = rids;
      expect(await store.deliveries.replay(crawlerId, { rid: first }, at(5))).toBe(1);
      expect(await store.deliveries.claim(lease, 5, 1_000, at(6))).toMatchObject([
        { rid: first, attempt: 2 },
      ]);
      expect(await store.deliveries.replay(crawlerId, { rid: createRid(START) }, at(5))).toBe(0);
      expect(await store.deliveries.replay(crawlerId, { from: at(3), to: at(9) }, at(7))).toBe(0);
      expect(await store.deliveries.replay(crawlerId, { from: at(2), to: at(3) }, at(7))).toBe(2);
      expect((await countersOf(store, crawler)).deliveriesPending).toBe(3);
    });
  });
}

/** What every store does with results, media, rates and retention. */
export function resultContract(open: OpenStore): void {
  const scope = { accountId: 'a'.repeat(24), tokenType: 'normal' } as const;
  const recordOf = (url: string): CrawlRecord => ({
    rid: createRid(START),
    pushedUrl: url,
    url: `${url}/final`,
    cbStatus: 200,
    originalStatus: 404,
    contentType: 'text/html',
    body: new Uint8Array([9, 8]),
    extras: {},
  });

  describe('results', () => {
    test('are read by rid and by url, each token its own', async () => {
      await using opened = await open();
      const { results } = opened.store;
      const older = recordOf('https://example.com/a');
      const newer = recordOf('https://example.com/a');
      await results.put(scope, older, at(1), at(1_000));
      await results.put(scope, newer, at(2), at(1_000));
      const found = await results.get(scope, older.rid);
      expect({ ...found, body: [...(found?.body ?? [])] }).toEqual({
        ...older,
        body: [9, 8],
        storedAt: at(1),
      });
      expect((await results.newestByUrl(scope, older.pushedUrl))?.rid).toBe(newer.rid);
      expect(await results.newestByUrl(scope, older.url)).toBeUndefined();
      const other = { ...scope, tokenType: 'javascript' } as const;
      expect(await results.get(other, older.rid)).toBeUndefined();
      expect(await results.count(other)).toBe(0);
      expect(await results.count(scope)).toBe(2);
    });

    test('are read and removed in bulk, in the order asked for', async () => {
      await using opened = await open();
      const { results } = opened.store;
      const records = ['a', 'b', 'c'].map((path) => recordOf(`https://example.com/${path}`));
      for (const record of records) await results.put(scope, record, at(1), at(1_000));
      const [a = '', b = '', c = ''] = records.map((record) => record.rid);
      const unknown = createRid(START);
      const read = await results.getMany(scope, [c, unknown, a], false);
      expect(read.map((each) => each.rid)).toEqual([c, a]);
      expect(await results.getMany(scope, [a, b], true)).toHaveLength(2);
      expect(await results.remove(scope, [a, c, unknown])).toEqual(new Set([c]));
      expect(await results.count(scope)).toBe(0);
    });

    test('are listed in both orders, and no page moves when more are stored', async () => {
      await using opened = await open();
      const { results } = opened.store;
      const rids: string[] = [];
      for (let n = 0; n < 5; n++) {
        const record = recordOf('https://example.com/');
        rids.push(record.rid);
        await results.put(scope, record, at(Math.floor(n / 2)), at(1_000));
      }
      const all = async (order: 'asc' | 'desc') => {
        const found: string[] = [];
        let cursor: string | undefined;
        do {
          const from = cursor === undefined ? {} : { cursor };
          const page = await results.rids(scope, { limit: 2, order, ...from });
          found.push(...page.rids);
          cursor = page.cursor;
        } while (cursor !== undefined);
        return found;
      };
      expect(await all('asc')).toEqual(rids);
      expect(await all('desc')).toEqual(rids.toReversed());
      const first = await results.rids(scope, { limit: 2, order: 'desc' });
      await results.put(scope, recordOf('https://example.com/'), at(50), at(1_000));
      const { cursor } = first;
      if (cursor === undefined) throw new Error('there is a second page');
      const second = await results.rids(scope, { limit: 2, order: 'desc', cursor });
      expect(second.rids).toEqual(rids.toReversed().slice(2, 4));
    });

    test('and deliveries and pictures go when their time has come', async () => {
      await using opened = await open();
      const { store } = opened;
      const record = recordOf('https://example.com/');
      await store.results.put(scope, record, at(1), at(10));
      await store.media.put('picture', 'image/jpeg', new Uint8Array([1]), at(10));
      expect(await store.media.get('picture', at(5))).toMatchObject({ contentType: 'image/jpeg' });
      expect(await store.media.get('picture', at(11))).toBeUndefined();
      await store.maintain(at(5));
      expect(await store.results.count(scope)).toBe(1);
      const report = await store.maintain(at(11));
      expect(report.expired).toBeGreaterThanOrEqual(1);
      expect(await store.results.count(scope)).toBe(0);
    });
  });

  test('a rate is a bucket of one second, filled as time passes', async () => {
    await using opened = await open();
    const { rates } = opened.store;
    expect((await rates.take('t', 7, 10, at(0))).granted).toBe(7);
    const rest = await rates.take('t', 7, 10, at(0));
    expect(rest.granted).toBe(3);
    expect(rest.retryAfterMs).toBeGreaterThan(0);
    expect(rest.retryAfterMs).toBeLessThanOrEqual(100);
    expect((await rates.take('other', 10, 10, at(0))).granted).toBe(10);
    expect((await rates.take('t', 9, 10, at(0.5))).granted).toBe(5);
    expect((await rates.take('t', 99, 10, at(60))).granted).toBe(10);
  });
}
