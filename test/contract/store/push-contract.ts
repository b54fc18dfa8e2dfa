import { describe, expect, test } from 'vitest';
import type { PushReceipt } from '../../../src/store/store.ts';
import {
  at,
  claimJobs,
  LIMITS,
  makeJob,
  makeJobs,
  newId,
  type OpenStore,
  only,
  withStore,
} from './store-harness.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;

/** The `rid`s a push admitted. */
export function admitted(receipt: PushReceipt): string[] {
  return receipt.outcomes.flatMap((outcome) => ('rid' in outcome ? outcome.rid : []));
}

function refusals(receipt: PushReceipt): string[] {
  return receipt.outcomes.flatMap((outcome) => ('refused' in outcome ? outcome.refused : []));
}

/** What a push admits, and how often. */
export function pushContract(open: OpenStore): void {
  describe('a push', () => {
    test(
      'is refused, and keeps nothing, when its jobs were made for settings that have changed since',
      withStore(open, async ({ store, crawler, counters }) => {
        const made = await crawler();
        const { crawlerId, accountId } = made;
        const settings = made.updatedAt.getTime();
        const request = { crawlerId, accountId, jobs: makeJobs(made, 1), settings };
        const before = await store.queue.push(request, LIMITS, at(1));
        expect(only(before?.outcomes ?? [])).toHaveProperty('rid');
        await store.crawlers.setPaused(crawlerId, 'user_pause', at(2));
        const later = { ...request, jobs: makeJobs(made, 1) };
        const after = await store.queue.push(later, LIMITS, at(3));
        expect(only(after?.outcomes ?? [])).toEqual({ refused: 'crawler_not_found' });
        const paused = { ...later, settings: at(2).getTime() };
        const fitting = await store.queue.push(paused, LIMITS, at(4));
        expect(only(fitting?.outcomes ?? [])).toHaveProperty('rid');
        expect(await counters(made)).toMatchObject({ waiting: 2 });
      }),
    );

    test(
      'keeps every field of a job',
      withStore(open, async ({ store, crawler, push, counters }) => {
        const made = await crawler({ delivery: 'webhook' });
        const full = makeJob(made, {
          method: 'POST',
          body: new Uint8Array([0, 255, 128, 13, 10]),
          contentType: 'application/octet-stream',
          metadata: '{"order": 1e400}',
          priority: 9,
          notBefore: at(5),
          parameters: { format: 'json', page_wait: 500, scroll: true, country: 'DE' },
          callbackHeaders: [
            ['X-Token', 'ü|:'],
            ['X-Token', 'twice'],
          ],
          queueDeadline: at(60_000),
          createdAt: at(3),
        });
        const plain = makeJob(made);
        const receipt = await push([full, plain], at(3));
        expect(receipt).toEqual({
          outcomes: [{ rid: full.rid }, { rid: plain.rid }],
          crossedAccountLimit: false,
          leased: false,
        });
        const fresh = {
          state: 'waiting',
          retry: 0,
          attempt: 0,
          crashes: 0,
          firstTriedAt: undefined,
        };
        const found = await store.queue.find(made.crawlerId, full.rid);
        expect(found).toMatchObject({ ...full, ...fresh, body: expect.anything() });
        expect(new Uint8Array(found?.body ?? [])).toEqual(full.body);
        expect(await store.queue.find(made.crawlerId, plain.rid)).toEqual({ ...plain, ...fresh });
        expect(await counters(made)).toMatchObject({ pushed: 2, waiting: 2 });
      }),
    );

    test(
      'is refused from the crawler’s limit on, in the middle of a batch too',
      withStore(open, async ({ store, crawler, push, lease, counters }) => {
        const made = await crawler();
        const limits = { ...LIMITS, crawlerQueue: 5 };
        await push(makeJobs(made, 3), at(0), limits);
        const jobs = makeJobs(made, 4);
        const receipt = await push(jobs, at(0), limits);
        expect(admitted(receipt)).toEqual(jobs.slice(0, 2).map(({ rid }) => rid));
        expect(refusals(receipt)).toEqual(['crawler_queue_full', 'crawler_queue_full']);
        expect(await store.queue.find(made.crawlerId, jobs[2]?.rid ?? '')).toBeUndefined();
        expect(await counters(made)).toMatchObject({ pushed: 5, waiting: 5 });
        // What is being crawled does not wait.
        await claimJobs(store, await lease(made), 2, at(0));
        expect(admitted(await push(makeJobs(made, 4), at(0), limits))).toHaveLength(2);
      }),
    );

    test(
      'meets the limit exactly when ten come at once',
      withStore(open, async ({ crawler, push, counters }) => {
        const made = await crawler();
        const limits = { ...LIMITS, crawlerQueue: 50 };
        const receipts = await Promise.all(
          Array.from({ length: 10 }, () => push(makeJobs(made, 7), at(0), limits)),
        );
        expect(receipts.flatMap(admitted)).toHaveLength(50);
        expect(await counters(made)).toMatchObject({ pushed: 50, waiting: 50 });
      }),
    );

    test(
      'at once to several crawlers has a receipt for each of them',
      withStore(open, async ({ store, account, crawler, counters }) => {
        const { accountId } = await account();
        const [first, second] = [await crawler({ accountId }), await crawler({ accountId })];
        const gone = await crawler({ accountId });
        await store.crawlers.remove(gone.crawlerId);
        const limits = { ...LIMITS, crawlerQueue: 3 };
        const requests = [first, second, gone, first].map((each, n) => {
          return { crawlerId: each.crawlerId, accountId, jobs: makeJobs(each, n === 1 ? 1 : 2) };
        });
        const receipts = await Promise.all(
          requests.map((request) => store.queue.push(request, limits, at(0))),
        );
        expect(receipts.map((receipt) => admitted(receipt).length)).toEqual([2, 1, 0, 1]);
        expect(receipts.flatMap(refusals)).toEqual([
          'crawler_not_found',
          'crawler_not_found',
          'crawler_queue_full',
        ]);
        expect((await counters(first)).waiting).toBe(3);
        expect((await store.accounts.usage(accountId))?.queued).toBe(4);
      }),
    );

    test(
      'says whether a live lease dispatches the crawler',
      withStore(open, async ({ store, crawler, push, lease }) => {
        const made = await crawler();
        const leased = async (ms: number) => (await push(makeJobs(made, 1), at(ms))).leased;
        expect(await leased(0)).toBe(false);
        const held = await lease(made);
        expect(await leased(1)).toBe(true);
        expect(await leased(60_000)).toBe(false);
        await store.queue.release(held, at(2));
        expect(await leased(3)).toBe(false);
      }),
    );
  });

  describe('an account over its limit', () => {
    test(
      'takes pushes until it holds more than its limit, and again from the limit down',
      withStore(open, async ({ store, account, crawler, push, lease }) => {
        const { accountId } = await account();
        const [first, second] = [await crawler({ accountId }), await crawler({ accountId })];
        const limits = { ...LIMITS, accountQueue: 10 };
        const filled = await push(makeJobs(first, 10), at(0), limits);
        expect(filled).toMatchObject({ crossedAccountLimit: false });
        const over = await push(makeJobs(second, 3), at(0), limits);
        expect(over.crossedAccountLimit).toBe(true);
        expect(admitted(over)).toHaveLength(1);
        expect(refusals(over)).toEqual(['account_queue_full', 'account_queue_full']);
        const refused = await push(makeJobs(first, 1), at(0), limits);
        expect(refused).toMatchObject({ crossedAccountLimit: false });
        expect(refusals(refused)).toEqual(['account_queue_full']);
        await claimJobs(store, await lease(second), 1, at(0));
        expect(admitted(await push(makeJobs(first, 1), at(0), limits))).toHaveLength(1);
        expect((await store.accounts.usage(accountId))?.queued).toBe(11);
      }),
    );

    test(
      'is reported once until the account has fallen to 90 %',
      withStore(open, async ({ store, crawler, push, lease }) => {
        const made = await crawler();
        const limits = { ...LIMITS, accountQueue: 20 };
        const held = await lease(made);
        const goesOver = async (count: number) =>
          (await push(makeJobs(made, count), at(0), limits)).crossedAccountLimit;
        const drain = (count: number) => claimJobs(store, held, count, at(0));
        expect(await goesOver(21)).toBe(true);
        await drain(2);
        expect(await goesOver(2)).toBe(false);
        await drain(3);
        expect(await goesOver(3)).toBe(true);
        await store.queue.purge(made.crawlerId, at(0));
        expect(await goesOver(20)).toBe(false);
        expect(await goesOver(1)).toBe(true);
      }),
    );

    test(
      'is reported to one of eight concurrent pushes',
      withStore(open, async ({ store, crawler, push }) => {
        const made = await crawler();
        const limits = { ...LIMITS, accountQueue: 20 };
        const receipts = await Promise.all(
          Array.from({ length: 8 }, () => push(makeJobs(made, 5), at(0), limits)),
        );
        expect(receipts.filter(({ crossedAccountLimit }) => crossedAccountLimit)).toHaveLength(1);
        expect(receipts.flatMap(admitted)).toHaveLength(21);
        expect((await store.accounts.usage(made.accountId))?.queued).toBe(21);
      }),
    );
  });

  describe('a push with a request_id', () => {
    test(
      'is answered as the first time for a day, and queues nothing again',
      withStore(open, async ({ store, account, crawler, counters }) => {
        const { accountId } = await account();
        const [made, other] = [await crawler({ accountId }), await crawler({ accountId })];
        const limits = { ...LIMITS, crawlerQueue: 2 };
        const send = async (to: typeof made, requestId: string, ms: number) => {
          const jobs = makeJobs(to, 3);
          const request = { crawlerId: to.crawlerId, accountId, jobs, requestId };
          return await store.queue.push(request, limits, at(ms));
        };
        const first = await send(made, 'one', 0);
        expect(first.outcomes).toHaveLength(3);
        expect(refusals(first)).toEqual(['crawler_queue_full']);
        await store.queue.purge(made.crawlerId, at(1));
        expect((await send(made, 'one', 2)).outcomes).toEqual(first.outcomes);
        expect((await send(made, 'one', DAY_MS - 1)).outcomes).toEqual(first.outcomes);
        expect(await counters(made)).toMatchObject({ pushed: 2, waiting: 0 });
        expect((await send(other, 'one', 3)).outcomes).not.toEqual(first.outcomes);
        expect((await send(made, 'two', 3)).outcomes).not.toEqual(first.outcomes);
        await store.maintain(at(DAY_MS + 1));
        await store.queue.purge(made.crawlerId, at(DAY_MS + 1));
        const late = await send(made, 'one', DAY_MS + 2);
        expect(admitted(late)).toHaveLength(2);
        expect(late.outcomes).not.toEqual(first.outcomes);
      }),
    );

    test(
      'is answered with the places of the first call',
      withStore(open, async ({ store, crawler }) => {
        const made = await crawler();
        const { crawlerId, accountId } = made;
        const send = async (...places: number[]) => {
          const jobs = makeJobs(made, places.length);
          const request = { crawlerId, accountId, jobs, requestId: 'same', places };
          return await store.queue.push(request, LIMITS, at(0));
        };
        const { outcomes } = await send(1, 3);
        expect(await send(0, 1, 2)).toMatchObject({ outcomes, places: [1, 3] });
      }),
    );

    test(
      'is not answered for good by a call whose rate left nothing to queue',
      withStore(open, async ({ store, crawler, counters }) => {
        const made = await crawler();
        const { crawlerId, accountId } = made;
        const send = async (count: number) => {
          const request = { crawlerId, accountId, jobs: makeJobs(made, count), requestId: 'same' };
          return (await store.queue.push(request, LIMITS, at(0))).outcomes;
        };
        expect(await send(0)).toEqual([]);
        const outcomes = await send(3);
        expect(outcomes.filter((each) => 'rid' in each)).toHaveLength(3);
        expect(await send(0)).toEqual(outcomes);
        expect(await counters(made)).toMatchObject({ pushed: 3, waiting: 3 });
      }),
    );

    test(
      'is not answered for good by a call for which there was no room',
      withStore(open, async ({ store, crawler, counters }) => {
        const made = await crawler();
        const { crawlerId, accountId } = made;
        const limits = { ...LIMITS, crawlerQueue: 2 };
        const send = async (requestId: string) => {
          const request = { crawlerId, accountId, jobs: makeJobs(made, 2), requestId };
          return await store.queue.push(request, limits, at(0));
        };
        const first = await send('first');
        expect(refusals(await send('second'))).toEqual([
          'crawler_queue_full',
          'crawler_queue_full',
        ]);
        await store.queue.purge(crawlerId, at(1));
        expect(admitted(await send('second'))).toHaveLength(2);
        expect((await send('first')).outcomes).toEqual(first.outcomes);
        expect(await counters(made)).toMatchObject({ pushed: 4, waiting: 2 });
      }),
    );

    test(
      'queues once when eight of them come at once',
      withStore(open, async ({ store, crawler, counters }) => {
        const made = await crawler();
        const { crawlerId, accountId } = made;
        const limits = { ...LIMITS, accountQueue: 3 };
        const receipts = await Promise.all(
          Array.from({ length: 8 }, async () => {
            const request = { crawlerId, accountId, jobs: makeJobs(made, 5), requestId: 'same' };
            return await store.queue.push(request, limits, at(0));
          }),
        );
        expect(new Set(receipts.map(({ outcomes }) => JSON.stringify(outcomes))).size).toBe(1);
        expect(receipts.filter(({ crossedAccountLimit }) => crossedAccountLimit)).toHaveLength(1);
        expect(await counters(made)).toMatchObject({ pushed: 4, waiting: 4 });
        expect(await store.queue.find(crawlerId, newId())).toBeUndefined();
      }),
    );
  });
}
