import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Crawler } from '../../../src/domain/crawler.ts';
import type { QueuedJob } from '../../../src/domain/job.ts';
import type { JobOutcome, Lease } from '../../../src/store/store.ts';
import { byLength } from '../../support/length.ts';
import { toDelivery, toRelease, toRetry, toStored } from './outcomes.ts';
import {
  at,
  claimJobs,
  finishJobs,
  LIMITS,
  makeJobs,
  type OpenStore,
  type StoreBench,
  TTL_MS,
  withStore,
} from './store-harness.ts';

const STEP_MS = 100;

type Step = readonly [
  kind:
    | 'push'
    | 'claim'
    | 'end'
    | 'swift'
    | 'delete'
    | 'purge'
    | 'pause'
    | 'expire'
    | 'crash'
    | 'yield',
  amount: number,
];

const step: fc.Arbitrary<Step> = fc.tuple(
  fc.constantFrom(
    ...(['push', 'push', 'claim', 'claim', 'end', 'end', 'end', 'swift', 'swift'] as const),
    ...(['delete', 'purge', 'pause', 'expire', 'crash', 'yield'] as const),
  ),
  fc.integer({ min: 1, max: 6 }),
);

/** Performs steps on one crawler as a dispatcher and its clients would, and remembers its jobs. */
function createDriver(bench: StoreBench, crawler: Crawler) {
  const { crawlerId, accountId } = crawler;
  const rids: string[] = [];
  const running: QueuedJob[] = [];
  let lease: Lease | undefined;
  let ms = 0;
  let ended = 0;
  let epochs = 0;

  function toOutcome(job: QueuedJob): JobOutcome {
    const ends = [
      () => toStored(job),
      () => toDelivery(job, { cbStatus: 521 }),
      () => toRetry(job, at(ms + STEP_MS)),
      () => toRelease(job),
      () => toStored({ ...job, attempt: job.attempt - 1 }),
    ];
    const end = ends[ended++ % ends.length] ?? (() => toStored(job));
    return end();
  }

  /** Crawls that end before a turn has written that they began; some are told a second time. */
  async function crawlSwiftly(held: Lease, amount: number, now: Date): Promise<void> {
    const { queue } = bench.store;
    const { jobs } = await queue.turn(held, { look: { limit: amount } }, now);
    const ends = jobs.map((job): JobOutcome => {
      const end = toOutcome({ ...job, attempt: job.attempt + 1 });
      return { ...end, startedAt: now };
    });
    await finishJobs(bench.store, ends, now, held);
    if (amount % 2 === 0) await finishJobs(bench.store, ends, now, held);
  }

  async function act([kind, amount]: Step): Promise<void> {
    const { queue, crawlers } = bench.store;
    const now = at(ms);
    switch (kind) {
      case 'push': {
        const queueDeadline = amount % 2 === 0 ? at(ms + 3 * STEP_MS) : undefined;
        const jobs = makeJobs(crawler, amount, { createdAt: now, queueDeadline });
        rids.push(...jobs.map(({ rid }) => rid));
        const limits = { ...LIMITS, crawlerQueue: 12 };
        await queue.push({ crawlerId, accountId, jobs }, limits, now);
        return;
      }
      case 'claim':
        lease ??= await queue.acquire(crawlerId, `owner-${epochs++}`, TTL_MS, now);
        if (lease !== undefined)
          running.push(...(await claimJobs(bench.store, lease, amount, now)).jobs);
        return;
      case 'end':
        if (lease !== undefined)
          await finishJobs(bench.store, running.splice(0, amount).map(toOutcome), now, lease);
        return;
      case 'swift':
        if (lease !== undefined) await crawlSwiftly(lease, amount, now);
        return;
      case 'delete':
        await queue.deleteJob(crawlerId, rids[(amount * 7) % Math.max(rids.length, 1)] ?? '', now);
        return;
      case 'purge':
        if (amount > 4) await queue.purge(crawlerId, now);
        return;
      case 'pause':
        await crawlers.setPaused(crawlerId, amount % 2 === 0 ? 'user_pause' : 'user_unpause', now);
        return;
      case 'expire': {
        const overdue = await queue.overdue(now, amount);
        const ends = overdue.map((job) => toStored(job, { cbStatus: 699 }, { timedOut: true }));
        await queue.finish(ends, now);
        return;
      }
      case 'crash':
        // The holder of the crawler is gone; the jobs it had may still be written late.
        lease = undefined;
        ms += TTL_MS;
        return;
      case 'yield':
        if (lease !== undefined) await queue.release(lease, now);
        lease = undefined;
    }
  }

  return {
    async run(steps: readonly Step[], atOnce: number): Promise<void> {
      for (let n = 0; n < steps.length; n += atOnce) {
        await Promise.all(steps.slice(n, n + atOnce).map(act));
        ms += STEP_MS;
      }
    },
    /** What the counters must say, counted. */
    async counted() {
      const found = await Promise.all(rids.map((rid) => bench.store.queue.find(crawlerId, rid)));
      const count = (state: string) => found.filter((job) => job?.state === state).length;
      return {
        waiting: count('waiting'),
        running: count('running'),
        retrying: count('retrying'),
      };
    },
  };
}

/** The sums that must always be right. */
export function balanceContract(open: OpenStore): void {
  async function check(bench: StoreBench, steps: readonly Step[], atOnce: number): Promise<void> {
    const crawler = await bench.crawler();
    const driver = createDriver(bench, crawler);
    await driver.run(steps, atOnce);
    const counters = await bench.counters(crawler);
    const { waiting, running, retrying } = await driver.counted();
    expect(counters).toMatchObject({ waiting, running, retrying });
    const { completed, failed, deleted, purged, pushed } = counters;
    expect(pushed).toBe(waiting + running + retrying + completed + failed + deleted + purged);
    expect((await bench.store.accounts.usage(crawler.accountId))?.queued).toBe(waiting + retrying);
    const scope = { accountId: crawler.accountId, tokenType: 'normal' } as const;
    expect(await bench.store.results.count(scope)).toBe(
      completed + failed - counters.deliveriesPending,
    );
    const days = await bench.store.stats.history([crawler.crawlerId], {});
    const sum = (of: 'pushed' | 'success' | 'failed' | 'deleted' | 'purged') =>
      (days.get(crawler.crawlerId) ?? []).reduce((total, day) => total + day[of], 0);
    expect({
      pushed: sum('pushed'),
      completed: sum('success'),
      failed: sum('failed'),
      deleted: sum('deleted'),
      purged: sum('purged'),
    }).toEqual({ pushed, completed, failed, deleted, purged });
  }

  describe('pushed = waiting + running + retrying + completed + failed + deleted + purged', () => {
    for (const atOnce of [1, 4]) {
      test(
        `after any sequence, ${atOnce} at once`,
        withStore(open, async (bench) => {
          const steps = fc.array(step, { minLength: 10, maxLength: 50 });
          const property = fc.asyncProperty(steps, (sequence) => check(bench, sequence, atOnce));
          await fc.assert(property, { numRuns: byLength(5, 15) });
        }),
      );
    }
  });
}
