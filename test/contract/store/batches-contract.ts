import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { BATCH_KEPT_DAYS, type Batch, removedOf } from '../../../src/domain/batch.ts';
import type { Crawler } from '../../../src/domain/crawler.ts';
import { DAY_MS } from '../../../src/domain/durations.ts';
import { makeRecord, toDelivery, toRelease, toRetry, toSettlement, toStored } from './outcomes.ts';
import {
  at,
  claimDeliveries,
  claimJobs,
  finishJobs,
  LIMITS,
  makeJob,
  newId,
  type OpenStore,
  only,
  type StoreBench,
  withStore,
} from './store-harness.ts';

const KEPT_MS = BATCH_KEPT_DAYS * DAY_MS;

/** Batches of a crawler: what they count, their end, and their event. */
export function batchesContract(open: OpenStore): void {
  const read = async (
    { store }: StoreBench,
    { crawlerId }: Crawler,
    name = 'list',
    now = at(0),
  ) => {
    const batch = await store.batches.get(crawlerId, name, now);
    if (batch === undefined) throw new Error('there is no such batch');
    return batch;
  };

  describe('a batch', () => {
    test(
      'counts what waits, runs and has ended, by reason, also after a crash',
      withStore(open, async (bench) => {
        const made = await bench.crawler();
        const mine = (n: number) =>
          Array.from({ length: n }, () => makeJob(made, { batch: 'list' }));
        await bench.push([...mine(7), makeJob(made)]);
        await bench.push([makeJob(made, { batch: 'list', notBefore: at(60_000) })], at(5));
        await bench.push([makeJob(made, { batch: 'other' })]);
        expect(await read(bench, made)).toMatchObject({
          accepted: 8,
          waiting: 8,
          scheduled: 1,
          createdAt: at(0),
          lastPushedAt: at(5),
          closedAt: undefined,
        });
        const lease = await bench.lease(made);
        const { jobs } = await claimJobs(bench.store, lease, 9, at(10));
        const [a, b, c, d, e, f] = jobs.filter(({ batch }) => batch === 'list');
        if (!a || !b || !c || !d || !e || !f) throw new Error('too few jobs');
        const lost = { cbStatus: 522, details: { failure: 'timeout' } };
        await finishJobs(
          bench.store,
          [
            toStored(a),
            toStored(b, lost),
            toStored(c, lost),
            toStored(d, { cbStatus: 500, details: { failure: 'target_error' } }),
            toRetry(e, at(90_000)),
            toRelease(f),
          ],
          at(20),
          lease,
        );
        const after = {
          accepted: 8,
          waiting: 2,
          scheduled: 1,
          retrying: 1,
          running: 1,
          completed: 1,
          failures: { timeout: 2, target_error: 1 },
          lastEndedAt: at(20),
        };
        expect(await read(bench, made)).toMatchObject(after);
        await bench.crash();
        const again = await read(bench, made);
        expect(again.waiting + again.retrying + again.running).toBe(4);
        expect(removedOf(again)).toBe(0);
        const listed = await bench.store.batches.list(made.crawlerId, { limit: 1 }, at(0));
        expect(listed.rows.map(({ name }) => name)).toEqual(['other']);
        const rest = { limit: 5, cursor: listed.cursor ?? '' };
        const { rows, cursor } = await bench.store.batches.list(made.crawlerId, rest, at(0));
        expect([rows.map(({ name }) => name), cursor]).toEqual([['list'], undefined]);
      }),
    );

    test(
      'loses deleted, purged and cancelled URLs, and no other',
      withStore(open, async (bench) => {
        const made = await bench.crawler();
        const { crawlerId } = made;
        const jobs = Array.from({ length: 5 }, () => makeJob(made, { batch: 'list' }));
        const unique = { key: 'k' };
        await bench.push([...jobs, makeJob(made), makeJob(made, { batch: 'list', unique })]);
        const lease = await bench.lease(made);
        const first = only((await claimJobs(bench.store, lease, 1, at(1))).jobs);
        const waiting = jobs.find(({ rid }) => rid !== first.rid);
        expect(await bench.store.queue.deleteJob(crawlerId, waiting?.rid ?? '', at(2))).toBe(true);
        const batch = await read(bench, made);
        expect(removedOf(batch)).toBe(1);
        expect(await bench.store.batches.cancel(batch, 2, at(3))).toBe(2);
        expect(await bench.store.batches.cancel(batch, 9, at(3))).toBe(2);
        const left = await read(bench, made);
        expect(left).toMatchObject({ accepted: 6, waiting: 0, running: 1 });
        expect(removedOf(left)).toBe(5);
        expect(await bench.counters(made)).toMatchObject({ waiting: 1, running: 1, purged: 4 });
        const again = await bench.push([makeJob(made, { batch: 'list', unique })], at(4));
        expect(again.outcomes[0]).not.toHaveProperty('duplicate');
        await bench.store.queue.purge(crawlerId, at(5));
        expect(await read(bench, made)).toMatchObject({ accepted: 7, waiting: 0, running: 1 });
      }),
    );

    test(
      'that is closed takes no more, and an item that it refuses costs no other',
      withStore(open, async (bench) => {
        const made = await bench.crawler();
        const inList = () => makeJob(made, { batch: 'list' });
        await bench.push([inList()]);
        expect(await bench.store.batches.close(made.crawlerId, 'no', at(1))).toBeUndefined();
        const closed = await bench.store.batches.close(made.crawlerId, 'list', at(1));
        expect(closed).toMatchObject({ closedAt: at(1), completedAt: undefined });
        const plain = makeJob(made);
        const other = makeJob(made, { batch: 'next' });
        const { outcomes } = await bench.push([inList(), plain, inList(), other], at(2));
        const refused = { refused: 'batch_closed' };
        expect(outcomes).toEqual([refused, { rid: plain.rid }, refused, { rid: other.rid }]);
        expect(await bench.store.batches.close(made.crawlerId, 'list', at(3))).toMatchObject({
          closedAt: at(1),
          accepted: 1,
        });
      }),
    );

    test(
      'is completed once when nothing is left of it, with one event that is delivered',
      withStore(open, async (bench) => {
        const made = await bench.crawler({ delivery: 'webhook' });
        const { crawlerId } = made;
        await bench.push([makeJob(made, { batch: 'list' }), makeJob(made, { batch: 'list' })]);
        await bench.store.batches.close(crawlerId, 'list', at(1));
        const lease = await bench.lease(made);
        const { jobs } = await claimJobs(bench.store, lease, 2, at(2));
        const [one, two] = jobs;
        if (!one || !two) throw new Error('too few jobs');
        await finishJobs(bench.store, [toDelivery(one)], at(3), lease);
        expect(await bench.store.batches.done(9, at(3))).toEqual([]);
        await finishJobs(bench.store, [toDelivery(two)], at(4), lease);
        const batch = only(await bench.store.batches.done(9, at(4)));
        expect(batch).toMatchObject({ name: 'list', accepted: 2, completed: 2 });
        const record = eventRecord(batch);
        const event = { record, expiresAt: at(DAY_MS) };
        const before = await bench.counters(made);
        const wins = await Promise.all(
          [1, 2, 3].map(() => bench.store.batches.complete(batch, event, at(5))),
        );
        expect(wins.filter(Boolean)).toHaveLength(1);
        await bench.crash();
        expect(await bench.store.batches.done(9, at(6))).toEqual([]);
        expect(await read(bench, made)).toMatchObject({ completedAt: at(5) });
        expect((await bench.counters(made)).deliveriesPending).toBe(before.deliveriesPending + 1);
        const next = await bench.lease(made, at(7), 'owner');
        const posts = await claimDeliveries(bench.store, next, 9, 1_000_000, at(7));
        const sent = only(posts.filter(({ rid }) => rid === batch.batchId));
        expect(sent).toMatchObject({ details: { event: 'batch.completed' }, attempt: 1 });
        const settled = [toSettlement(sent, 'delivered', { isEvent: true })];
        const { settled: verdicts } = await bench.store.queue.turn(next, { settled }, at(8));
        expect(verdicts).toEqual(['won']);
        expect(await bench.counters(made)).toMatchObject({
          delivered: before.delivered,
          deliveriesPending: before.deliveriesPending,
        });
      }),
    );

    test(
      'that nobody closes is closed thirty days after its last push, and kept as long after its end',
      withStore(open, async (bench) => {
        const made = await bench.crawler();
        await bench.push([makeJob(made, { batch: 'list' })]);
        await bench.push([makeJob(made, { batch: 'list' })], at(DAY_MS));
        await bench.store.maintain(at(KEPT_MS));
        expect(await read(bench, made)).toMatchObject({ closedAt: undefined });
        await bench.store.maintain(at(KEPT_MS + 2 * DAY_MS));
        const closed = await read(bench, made);
        expect(closed).toMatchObject({ accepted: 2, waiting: 2, closedAt: expect.any(Date) });
        await bench.store.batches.cancel(closed, 9, at(KEPT_MS));
        const [batch] = await bench.store.batches.done(9, at(KEPT_MS));
        if (batch === undefined) throw new Error('it is not done');
        const end = 2 * KEPT_MS;
        expect(await bench.store.batches.complete(batch, undefined, at(end))).toBe(true);
        await bench.store.maintain(at(end + KEPT_MS - 1));
        expect(await read(bench, made)).toMatchObject({ completedAt: at(end) });
        await bench.store.maintain(at(end + KEPT_MS));
        expect(await bench.store.batches.get(made.crawlerId, 'list', at(0))).toBeUndefined();
        // The name is free again.
        const { outcomes } = await bench.push([makeJob(made, { batch: 'list' })], at(end));
        expect(outcomes[0]).toHaveProperty('rid');
      }),
    );

    test(
      'goes with its crawler, and an event that comes late is not made',
      withStore(open, async (bench) => {
        const made = await bench.crawler({ delivery: 'webhook' });
        await bench.push([makeJob(made, { batch: 'list' })]);
        const batch = await bench.store.batches.close(made.crawlerId, 'list', at(1));
        if (batch === undefined) throw new Error('there is no batch');
        await bench.store.crawlers.remove(made.crawlerId);
        const event = { record: eventRecord(batch), expiresAt: at(DAY_MS) };
        expect(await bench.store.batches.complete(batch, event, at(2))).toBe(false);
        await bench.store.maintain(at(3));
        expect(await bench.store.batches.get(made.crawlerId, 'list', at(4))).toBeUndefined();
        expect((await bench.store.listings.locate(batch.batchId)).delivery).toBeUndefined();
      }),
    );

    test(
      'has its results in an order of their own, and removes them alone',
      withStore(open, async (bench) => {
        const made = await bench.crawler();
        const { accountId, crawlerId } = made;
        await bench.push([
          makeJob(made, { batch: 'list' }),
          makeJob(made),
          makeJob(made, { batch: 'list' }),
        ]);
        const lease = await bench.lease(made);
        const { jobs } = await claimJobs(bench.store, lease, 3, at(1));
        await finishJobs(
          bench.store,
          jobs.map((job) => toStored(job)),
          at(2),
          lease,
        );
        const { batchId } = await read(bench, made);
        const selection = { accountId, tokenType: 'normal', crawlerId, batchId } as const;
        const own = jobs.filter(({ batch }) => batch === 'list').map(({ rid }) => rid);
        const found = await bench.store.results.following(selection, undefined, 10);
        expect(found.results.map(({ rid }) => rid).toSorted()).toEqual(own.toSorted());
        expect(await bench.store.results.removeUpTo(selection, found.place, 10)).toBe(2);
        const left = await bench.store.results.following(
          { accountId, tokenType: 'normal', crawlerId },
          undefined,
          10,
        );
        expect(left.results).toHaveLength(1);
      }),
    );

    test(
      'has its failed crawls, the first that ended first, with what is kept to repeat them',
      withStore(open, async (bench) => {
        for (const delivery of ['storage', 'webhook'] as const) {
          const made = await bench.crawler({ delivery });
          const { accountId, crawlerId } = made;
          const own = Array.from({ length: 4 }, () => makeJob(made, { batch: 'list' }));
          await bench.push([...own, makeJob(made)]);
          const lease = await bench.lease(made);
          const { jobs } = await claimJobs(bench.store, lease, 5, at(1));
          const before = await bench.store.accounts.usage(accountId);
          const request = '{"priority":9}';
          const lost = { cbStatus: 522, details: { failure: 'timeout' }, request };
          const end = delivery === 'storage' ? toStored : toDelivery;
          for (const [n, job] of jobs.entries()) {
            const ended = [end(job, job.rid === own[0]?.rid ? {} : lost)];
            await finishJobs(bench.store, ended, at(10 + n), lease);
          }
          const rids = jobs.map(({ rid }) => rid).filter((rid) => rid !== own[0]?.rid);
          const selection = {
            accountId,
            tokenType: 'normal' as const,
            crawlerId,
            delivers: delivery === 'webhook',
          };
          const failed = async (more: object, limit = 10, cursor?: string) => {
            const part = cursor === undefined ? { limit } : { limit, cursor };
            return bench.store.listings.failedCrawls({ ...selection, ...more }, part);
          };
          const all = await failed({});
          expect(all.rows.map(({ rid }) => rid)).toEqual(rids);
          expect(all.rows[0]).toMatchObject({ failure: 'timeout', cbStatus: 522, request });
          const { batchId } = await read(bench, made);
          const ofBatch = await failed({ batchId });
          expect(ofBatch.rows).toHaveLength(3);
          const first = await failed({ batchId }, 2);
          const rest = await failed({ batchId }, 2, first.cursor);
          expect([...first.rows, ...rest.rows]).toEqual(ofBatch.rows);
          expect((await failed({ rids: [rids[1] ?? '', newId()] })).rows).toHaveLength(1);
          const range = { from: at(10), to: at(12) };
          const early = jobs.slice(0, 2).filter(({ rid }) => rids.includes(rid));
          expect((await failed({ range })).rows).toHaveLength(early.length);
          // The request counts as stored.
          const after = await bench.store.accounts.usage(accountId);
          const stored = (after?.storedBytes ?? 0) - (before?.storedBytes ?? 0);
          expect(stored).toBe(5 * (1_024 + 10) + 4 * request.length);
        }
      }),
    );

    test(
      'is made once by pushes at the same time',
      withStore(open, async (bench) => {
        const made = await bench.crawler();
        const { crawlerId, accountId } = made;
        const requests = Array.from({ length: 6 }, () => ({
          crawlerId,
          accountId,
          jobs: [makeJob(made, { batch: 'list' }), makeJob(made, { batch: 'list' })],
        }));
        await Promise.all(requests.map((each) => bench.store.queue.push(each, LIMITS, at(0))));
        expect(await read(bench, made)).toMatchObject({ accepted: 12, waiting: 12 });
        const { rows } = await bench.store.batches.list(crawlerId, { limit: 9 }, at(0));
        expect(rows).toHaveLength(1);
      }),
    );
  });
}

function eventRecord({ batchId, name }: Batch) {
  return makeRecord(
    { rid: batchId, url: `batch:${name}` },
    { body: gzipSync('{}'), details: { event: 'batch.completed' } },
  );
}
