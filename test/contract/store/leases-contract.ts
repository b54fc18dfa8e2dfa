import { describe, expect, test } from 'vitest';
import { toDelivery, toRelease, toRetry, toStored } from './outcomes.ts';
import {
  at,
  claimDeliveries,
  claimJobs,
  finishJobs,
  makeJobs,
  newId,
  type OpenStore,
  only,
  renewLease,
  TTL_MS,
  withStore,
} from './store-harness.ts';

const LAPSED = TTL_MS + 1;

/** Who may dispatch a crawler. */
export function leasesContract(open: OpenStore): void {
  describe('a lease', () => {
    test(
      'is one owner’s until it lapses, and fences what older holders do',
      withStore(open, async ({ store, crawler, push, lease }) => {
        const made = await crawler();
        const { crawlerId } = made;
        await push(makeJobs(made, 2));
        const { acquire, release } = store.queue;
        const old = await lease(made, at(0), 'first');
        expect(await acquire(crawlerId, 'second', TTL_MS, at(1))).toBeUndefined();
        expect(await renewLease(store, old, TTL_MS, at(10_000))).toBe(true);
        expect(await acquire(crawlerId, 'second', TTL_MS, at(LAPSED))).toBeUndefined();
        const next = await lease(made, at(10_000 + LAPSED), 'second');
        expect(next.epoch).toBeGreaterThan(old.epoch);
        const now = at(10_001 + LAPSED);
        expect(await renewLease(store, old, TTL_MS, now)).toBe(false);
        expect(await claimJobs(store, old, 9, now)).toEqual({ jobs: [], leaseLost: true });
        await release(old, now);
        expect(await acquire(crawlerId, 'third', TTL_MS, now)).toBeUndefined();
        expect((await claimJobs(store, next, 9, now)).jobs).toHaveLength(2);
      }),
    );

    test(
      'that an older holder lets go stays its new holder’s, crash included',
      withStore(open, async ({ store, crawler, push, lease }) => {
        const made = await crawler();
        await push(makeJobs(made, 1));
        const old = await lease(made, at(0), 'first');
        const next = await lease(made, at(LAPSED), 'second');
        expect((await claimJobs(store, next, 1, at(LAPSED))).jobs).toHaveLength(1);
        await store.queue.release(old, at(LAPSED));
        // The second holder crashes with the only job in hand.
        expect(await store.queue.crawlersWithWorkDue(at(3 * LAPSED), 9)).toEqual([made.crawlerId]);
      }),
    );

    test(
      'tells when the crawler was changed last',
      withStore(open, async ({ store, crawler }) => {
        const { crawlerId, updatedAt } = await crawler();
        const first = await store.queue.acquire(crawlerId, 'first', TTL_MS, at(0));
        expect(first?.settings).toBe(updatedAt.getTime());
        await store.crawlers.setPaused(crawlerId, 'user_pause', at(5));
        const again = await store.queue.acquire(crawlerId, 'first', TTL_MS, at(6));
        expect(again?.settings).toBe(at(5).getTime());
      }),
    );

    test(
      'goes to one of eight',
      withStore(open, async ({ store, crawler }) => {
        const { crawlerId } = await crawler();
        const leases = await Promise.all(
          Array.from({ length: 8 }, (_, n) =>
            store.queue.acquire(crawlerId, `owner-${n}`, TTL_MS, at(0)),
          ),
        );
        expect(leases.filter((lease) => lease !== undefined)).toHaveLength(1);
        expect(await store.queue.acquire(newId(), 'owner', TTL_MS, at(0))).toBeUndefined();
      }),
    );

    test(
      'that lapsed leaves its jobs and deliveries due at once, their counts untouched',
      withStore(open, async ({ store, crawler, push, lease, counters }) => {
        const made = await crawler({ delivery: 'webhook' });
        await push(makeJobs(made, 3));
        const old = await lease(made, at(0), 'first');
        const [tried, untried, crawled] = (await claimJobs(store, old, 3, at(0))).jobs;
        if (tried === undefined || untried === undefined || crawled === undefined) {
          throw new Error('three jobs were pushed');
        }
        const outcomes = [toRetry(tried, at(1)), toDelivery(crawled, {}, { held: true })];
        expect(await finishJobs(store, outcomes, at(0), old)).toMatchObject({
          verdicts: ['won', 'won'],
        });
        expect((await claimJobs(store, old, 1, at(1))).jobs).toHaveLength(1);
        expect(await counters(made)).toMatchObject({ running: 2, deliveriesPending: 1 });

        const next = await lease(made, at(LAPSED), 'second');
        expect(await counters(made)).toMatchObject({ running: 0, waiting: 1, retrying: 1 });
        const { jobs } = await claimJobs(store, next, 9, at(LAPSED));
        const byRid = new Map(jobs.map((job) => [job.rid, job]));
        const both = { crashes: 1, firstTriedAt: at(0) };
        expect(byRid.get(tried.rid)).toMatchObject({ retry: 1, attempt: 3, ...both });
        expect(byRid.get(untried.rid)).toMatchObject({ retry: 0, attempt: 2, ...both });
        const again = only(await claimDeliveries(store, next, 9, 1e9, at(LAPSED)));
        expect(again).toMatchObject({ rid: crawled.rid, attempt: 2 });
        const late = [toStored(untried), toRelease({ ...tried, attempt: 2 })];
        expect(await finishJobs(store, late, at(LAPSED), old)).toMatchObject({
          verdicts: ['lost', 'lost'],
        });
      }),
    );

    test(
      'that is let go leaves what was running due, and names the next work',
      withStore(open, async ({ store, crawler, running, lease, counters }) => {
        const made = await crawler();
        const held = await running(made, 2);
        const [job, other] = held.jobs;
        if (job === undefined || other === undefined) throw new Error('two jobs were pushed');
        await finishJobs(store, [toRetry(job, at(90_000))], at(0), held.lease);
        const { wakeAt } = await store.queue.release(held.lease, at(5));
        expect(wakeAt?.getTime()).toBeLessThanOrEqual(at(5).getTime());
        expect(await counters(made)).toMatchObject({ running: 0, waiting: 1, retrying: 1 });

        const next = await lease(made, at(6), 'second');
        const { jobs } = await claimJobs(store, next, 9, at(6));
        expect(jobs.map(({ rid }) => rid)).toEqual([other.rid]);
        expect(only(jobs).crashes).toBe(0);
        await finishJobs(store, [toStored(only(jobs))], at(7), next);
        expect(await store.queue.release(next, at(8))).toEqual({ wakeAt: at(90_000) });
        const last = await lease(made, at(9), 'third');
        expect(await store.queue.deleteJob(made.crawlerId, job.rid, at(9))).toBe(true);
        expect(await store.queue.release(last, at(9))).toEqual({ wakeAt: undefined });
      }),
    );

    test(
      'is never let go between a push and its dispatch',
      withStore(open, async ({ store, crawler, push, lease }) => {
        const made = await crawler();
        for (let round = 0; round < 25; round++) {
          const held = await lease(made, at(round));
          const pushing = () => push(makeJobs(made, 1), at(round));
          const letting = () => store.queue.release(held, at(round));
          const [receipt, { wakeAt }] =
            round % 2 === 0
              ? await Promise.all([pushing(), letting()])
              : await Promise.all([letting(), pushing()]).then(
                  ([end, sent]) => [sent, end] as const,
                );
          // Either the pusher sees that nobody dispatches, or the one who let go sees the job.
          expect(!receipt.leased || wakeAt !== undefined).toBe(true);
          await store.queue.purge(made.crawlerId, at(round));
        }
      }),
    );
  });
}
