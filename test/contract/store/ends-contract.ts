import { describe, expect, test } from 'vitest';
import type { QueuedJob } from '../../../src/domain/job.ts';
import { EXPIRES, makeRecord, toDelivery, toRelease, toRetry, toStored } from './outcomes.ts';
import {
  at,
  claimDeliveries,
  claimJobs,
  finishJobs,
  makeJobs,
  newId,
  type OpenStore,
  only,
  withStore,
} from './store-harness.ts';

/** How jobs end. */
export function endsContract(open: OpenStore): void {
  describe('a finished job', () => {
    test(
      'is gone from the queue, its page in storage, its end counted',
      withStore(open, async ({ store, crawler, running, counters }) => {
        const made = await crawler();
        const { lease, jobs } = await running(made, 3);
        const [good, bad, waits] = jobs;
        if (good === undefined || bad === undefined || waits === undefined)
          throw new Error('three');
        const failure = { cbStatus: 521, originalStatus: 0, body: new Uint8Array(0) };
        const outcomes = [toStored(good), toStored(bad, failure), toRetry(waits, at(9))];
        expect(await finishJobs(store, outcomes, at(1), lease)).toMatchObject({
          verdicts: ['won', 'won', 'won'],
        });
        expect(await store.queue.find(made.crawlerId, good.rid)).toBeUndefined();
        const scope = { accountId: made.accountId, tokenType: 'normal' } as const;
        const stored = await store.results.get(scope, good.rid);
        expect({ ...stored, body: [...(stored?.body ?? [])] }).toEqual({
          ...makeRecord(good),
          body: [...makeRecord(good).body],
          storedAt: at(1),
        });
        const failed = await store.results.get(scope, bad.rid);
        expect(failed).toMatchObject({ cbStatus: 521, originalStatus: 0 });
        expect(failed?.body.byteLength).toBe(0);
        const counted = { pushed: 3, running: 0, retrying: 1, completed: 1, failed: 1 };
        expect(await counters(made)).toMatchObject({ ...counted, deliveriesPending: 0 });
      }),
    );

    test(
      'is on its way to the callback URL, due for anybody or held by who crawled it',
      withStore(open, async ({ store, crawler, running, counters }) => {
        const made = await crawler({ delivery: 'webhook' });
        const { lease, jobs } = await running(made, 2);
        const [free, held] = jobs;
        if (free === undefined || held === undefined) throw new Error('two jobs were pushed');
        const outcomes = [toDelivery(free), toDelivery(held, {}, { held: true })];
        const lost = toDelivery({ ...held, attempt: 0 }, {}, { held: true });
        const finished = await finishJobs(store, [...outcomes, lost], at(1), lease);
        expect(finished.verdicts).toEqual(['won', 'won', 'lost']);
        const begun = { crawlerId: made.crawlerId, attempt: 1, createdAt: at(1) };
        const { callbackHeaders } = lost;
        expect(finished.held).toEqual([{ ...makeRecord(held), ...begun, callbackHeaders }]);
        expect(await counters(made)).toMatchObject({ completed: 2, deliveriesPending: 2 });
        const claimed = only(await claimDeliveries(store, lease, 9, 1e9, at(1)));
        expect({ ...claimed, body: [...claimed.body] }).toEqual({
          ...makeRecord(free),
          body: [...makeRecord(free).body],
          crawlerId: made.crawlerId,
          callbackHeaders: [['X-Token', 'abc']],
          attempt: 1,
          wasAttempted: false,
          createdAt: at(1),
        });
        const scope = { accountId: made.accountId, tokenType: 'normal' } as const;
        expect(await store.results.get(scope, free.rid)).toBeUndefined();
      }),
    );

    test(
      'is won once, and only with the claim that is current',
      withStore(open, async ({ store, crawler, running, counters }) => {
        const made = await crawler();
        const { lease, jobs } = await running(made, 2);
        const [job, other] = jobs;
        if (job === undefined || other === undefined) throw new Error('two jobs were pushed');
        const { verdicts } = await finishJobs(
          store,
          [
            toStored({ ...job, attempt: 2 }),
            toStored({ ...job, rid: newId() }),
            toStored({ ...job, crawlerId: newId() }),
            toRetry({ ...job, attempt: 0 }, at(5)),
            toStored(job),
            toStored(job),
            toRelease(job),
          ],
          at(1),
          lease,
        );
        expect(verdicts).toEqual(['lost', 'lost', 'lost', 'lost', 'won', 'lost', 'lost']);
        const contest = await Promise.all(
          Array.from({ length: 8 }, () => finishJobs(store, [toStored(other)], at(1), lease)),
        );
        const all = contest.flatMap((each) => each.verdicts);
        expect(all.filter((verdict) => verdict === 'won')).toHaveLength(1);
        expect(await counters(made)).toMatchObject({ completed: 2, running: 0, retrying: 0 });
        const scope = { accountId: made.accountId, tokenType: 'normal' } as const;
        expect(await store.results.count(scope)).toBe(2);
      }),
    );

    test(
      'may come before its start was written, and may be written twice',
      withStore(open, async ({ store, crawler, push, lease, counters }) => {
        const made = await crawler();
        await push(makeJobs(made, 4));
        const held = await lease(made);
        const { jobs } = await store.queue.turn(held, { look: { limit: 9 } }, at(0));
        const [stored, retried, released, deleted] = jobs
          .map((job) => ({ ...job, attempt: job.attempt + 1 }))
          .map((job, n) => {
            const end = [
              toStored(job),
              toRetry(job, at(50)),
              toRelease(job, at(60)),
              toStored(job),
            ][n];
            if (end === undefined) throw new Error('four jobs were pushed');
            return { ...end, startedAt: at(1) };
          });
        const ended = [stored, retried, released, deleted].filter((end) => end !== undefined);
        await store.queue.deleteJob(made.crawlerId, deleted?.rid ?? '', at(2));
        const won = ['won', 'won', 'won', 'lost'];
        expect((await finishJobs(store, ended, at(5), held)).verdicts).toEqual(won);
        expect(await counters(made)).toMatchObject({
          waiting: 1,
          running: 0,
          retrying: 1,
          completed: 1,
          deleted: 1,
        });
        const lost = ['lost', 'lost', 'lost', 'lost'];
        expect((await finishJobs(store, ended, at(6), held)).verdicts).toEqual(lost);
        const again = await claimJobs(store, held, 9, at(60));
        expect(again.jobs).toMatchObject([
          { rid: retried?.rid, retry: 1, attempt: 2, firstTriedAt: at(1) },
          { rid: released?.rid, retry: 0, attempt: 2, firstTriedAt: at(60) },
        ]);
      }),
    );

    test(
      'whose start may have been written is won either way',
      withStore(open, async ({ store, crawler, running, counters }) => {
        const made = await crawler();
        const { lease, jobs } = await running(made, 1);
        const job = only(jobs);
        const started = [{ rid: job.rid, attempt: job.attempt, startedAt: at(0) }];
        const again = await store.queue.turn(lease, { started }, at(1));
        expect(again.lost).toEqual([]);
        const end = { ...toStored(job), startedAt: at(0) };
        expect((await finishJobs(store, [end], at(2), lease)).verdicts).toEqual(['won']);
        expect(await counters(made)).toMatchObject({ running: 0, waiting: 0, completed: 1 });
      }),
    );

    test(
      'goes with others that are deleted in one write, and only what exists is counted',
      withStore(open, async ({ store, account, crawler, push, running, counters }) => {
        const { accountId } = await account();
        const [made, other] = [await crawler({ accountId }), await crawler({ accountId })];
        const { jobs } = await running(made, 1);
        const waiting = makeJobs(made, 3);
        const [elsewhere] = makeJobs(other, 1);
        await push([...waiting]);
        await push([elsewhere as (typeof waiting)[number]]);
        const rids = [only(jobs), ...waiting.slice(1), elsewhere].map((each) => each?.rid ?? '');
        const deleted = await store.queue.deleteJobs(made.crawlerId, [...rids, newId()], at(1));
        expect(deleted.toSorted()).toEqual(rids.slice(0, 3).toSorted());
        expect(await counters(made)).toMatchObject({ waiting: 1, running: 0, deleted: 3 });
        expect(await counters(other)).toMatchObject({ waiting: 1, deleted: 0 });
        expect((await store.accounts.usage(accountId))?.queued).toBe(2);
        expect(await store.queue.deleteJobs(made.crawlerId, rids, at(2))).toEqual([]);
      }),
    );

    test(
      'that was deleted during its crawl leaves nothing behind',
      withStore(open, async ({ store, account, crawler, running }) => {
        const { accountId } = await account();
        const made = await crawler({ accountId });
        const { lease, jobs } = await running(made, 1);
        expect(await store.queue.deleteJob(made.crawlerId, only(jobs).rid, at(1))).toBe(true);
        expect(await finishJobs(store, [toStored(only(jobs))], at(2), lease)).toMatchObject({
          verdicts: ['lost'],
        });
        const doomed = await crawler({ accountId, delivery: 'webhook' });
        const last = await running(doomed, 1);
        await store.crawlers.remove(doomed.crawlerId);
        const end = toDelivery(only(last.jobs));
        expect(await finishJobs(store, [end], at(2), last.lease)).toMatchObject({
          verdicts: ['lost'],
        });
        expect(await store.results.count({ accountId, tokenType: 'normal' })).toBe(0);
        expect(await store.deliveries.get(doomed.crawlerId, end.rid)).toBeUndefined();
        expect((await store.accounts.usage(accountId))?.queued).toBe(0);
      }),
    );
  });

  describe('a job past its queue deadline', () => {
    const expired = (job: QueuedJob) =>
      toStored(job, { cbStatus: 699, originalStatus: 504 }, { billed: false, timedOut: true });

    test(
      'is no longer claimed, but found overdue, oldest deadline first',
      withStore(open, async ({ store, account, crawler, push, lease }) => {
        const { accountId } = await account();
        const [made, other] = [await crawler({ accountId }), await crawler({ accountId })];
        const [late, later] = [
          only(makeJobs(made, 1, { queueDeadline: at(200) })),
          only(makeJobs(other, 1, { queueDeadline: at(100) })),
        ];
        const [future, without] = [
          only(makeJobs(made, 1, { queueDeadline: at(900) })),
          makeJobs(made, 1),
        ];
        await push([late, future, ...without]);
        await push([later]);
        expect(await store.queue.overdue(at(99), 9)).toEqual([]);
        const found = await store.queue.overdue(at(300), 9);
        expect(found.map(({ rid }) => rid)).toEqual([later.rid, late.rid]);
        expect(only(await store.queue.overdue(at(300), 1)).rid).toBe(later.rid);
        const { jobs } = await claimJobs(store, await lease(made, at(300)), 9, at(300));
        expect(jobs.map(({ rid }) => rid).sort()).toEqual([future.rid, only(without).rid].sort());
      }),
    );

    test(
      'ends as failed and timed out, unless somebody was faster',
      withStore(open, async ({ store, crawler, push, lease, counters }) => {
        const made = await crawler();
        await push(makeJobs(made, 3, { queueDeadline: at(100) }));
        const held = await lease(made);
        const claimed = only((await claimJobs(store, held, 1, at(0))).jobs);
        const returned = only((await claimJobs(store, held, 1, at(0))).jobs);
        await finishJobs(store, [toRelease(returned)], at(1), held);
        const overdue = await store.queue.overdue(at(100), 9);
        // What was claimed is being crawled; what was given back untried still waits.
        expect(overdue.map(({ rid }) => rid)).not.toContain(claimed.rid);
        expect(overdue.map(({ rid }) => rid)).toContain(returned.rid);
        expect(overdue).toHaveLength(2);
        const stale = expired({ ...returned, attempt: 0 });
        const lost = await store.queue.finish([stale, expired(claimed)], at(100));
        expect(lost).toEqual(['lost', 'lost']);
        expect(await store.queue.finish(overdue.map(expired), at(100))).toEqual(['won', 'won']);
        expect(await store.queue.finish(overdue.map(expired), at(100))).toEqual(['lost', 'lost']);
        expect(await counters(made)).toMatchObject({ waiting: 0, running: 1, failed: 2 });
        expect((await store.accounts.usage(made.accountId))?.queued).toBe(0);
        const days = await store.stats.history([made.crawlerId], {});
        const day = only(days.get(made.crawlerId) ?? []);
        expect(day).toMatchObject({ timeouts: 2, failed: 2, billed: 0, byCbStatus: { 699: 2 } });
      }),
    );

    test(
      'is delivered like any end of a webhook crawler’s job',
      withStore(open, async ({ store, crawler, push, lease }) => {
        const made = await crawler({ delivery: 'webhook' });
        await push(makeJobs(made, 1, { queueDeadline: at(100) }));
        const job = only(await store.queue.overdue(at(100), 9));
        const record = { cbStatus: 699, originalStatus: 504 };
        const end = toDelivery(job, record, { timedOut: true, billed: false, expiresAt: EXPIRES });
        expect(await store.queue.finish([end], at(100))).toEqual(['won']);
        expect(await store.queue.crawlersWithWorkDue(at(100), 9)).toEqual([made.crawlerId]);
        const held = await lease(made, at(100));
        const delivery = only(await claimDeliveries(store, held, 9, 1e9, at(100)));
        expect(delivery).toMatchObject({ rid: job.rid, cbStatus: 699, attempt: 1 });
      }),
    );

    test(
      'stays claimable once it was tried',
      withStore(open, async ({ store, crawler, push, lease }) => {
        const made = await crawler();
        await push(makeJobs(made, 1, { queueDeadline: at(100) }));
        const held = await lease(made);
        const job = only((await claimJobs(store, held, 1, at(0))).jobs);
        await finishJobs(store, [toRetry(job, at(150))], at(1), held);
        expect(await store.queue.overdue(at(200), 9)).toEqual([]);
        expect((await claimJobs(store, held, 9, at(200))).jobs).toHaveLength(1);
      }),
    );
  });
}
