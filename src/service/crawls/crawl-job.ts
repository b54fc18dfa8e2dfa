import type { Clock } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import { deliveryModes } from '../../domain/delivery-mode.ts';
import { DAY_MS } from '../../domain/durations.ts';
import type { QueuedJob } from '../../domain/job.ts';
import { nextCrawlRetry } from '../../domain/retry-schedule.ts';
import { type FailureReason, isBilled, MOST_RETRIES, UNTRIED } from '../../domain/status.ts';
import type { CrawlFailure } from '../../engine/engine.ts';
import { failedPage } from '../../engine/failed-page.ts';
import type { Grant } from '../../fairness/fair-pool.ts';
import type { JobOutcome } from '../../store/store.ts';
import type { CrawlResult } from '../../threads/build-result.ts';
import type { Crawled, CrawlOrder } from '../../threads/crawl-threads.ts';
import { ThreadLost } from '../../threads/thread-lost.ts';
import type { Crawling } from './crawling.ts';

/** Before a job whose host is busy is tried again. */
const BUSY_MS = 5_000;
/** For a crawl whose thread ended through no fault of its own. */
const LOST_MS = 1_000;
/** Crawls that ended their thread: the third ends the job. */
const MAX_CRASHES = 3;
/**
 * Claims that never ended, as when the process dies, which is rarely the page's fault: the tenth
 * ends the job.
 */
const MAX_LOST_CLAIMS = 10;

/** What crawling jobs works with. */
export interface CrawlJobDeps {
  readonly crawling: Crawling;
  readonly clock: Clock;
  readonly retentionDays: number;
  readonly random?: () => number;
}

/** The outcome of a job, and the memory that its page holds. */
export interface JobEnd {
  readonly outcome: JobOutcome;
  /** The caller releases it when the outcome has been written. */
  readonly held: Grant | undefined;
}

/** Crawls jobs and ends them. */
export interface CrawlJobs {
  /** Crawls one URL. Resolves with a result, or a time to try again; rejects only when aborted. */
  crawl(job: QueuedJob, crawler: Crawler, signal: AbortSignal): Promise<JobEnd>;
  /** Ends a job that waited longer than its `queue_timeout`. */
  expire(job: QueuedJob, crawler: Crawler): Promise<JobOutcome>;
}

/** Makes the use cases. */
export function createCrawlJobs(deps: CrawlJobDeps): CrawlJobs {
  const { clock, crawling } = deps;
  const random = deps.random ?? Math.random;

  function toOrder(job: QueuedJob, crawler: Crawler): CrawlOrder {
    const { tokenType, accountId, crawlerId, politeness, delivery } = crawler;
    return {
      task: { request: job, tokenType, accountId, crawlerId, politeness },
      spec: { kind: 'record', rid: job.rid, delivery },
      isSuspect: job.crashes > 0,
    };
  }

  function end(job: QueuedJob, crawler: Crawler, result: CrawlResult): JobOutcome {
    const { rid, crawlerId, attempt } = job;
    const { cbStatus, originalStatus, url, packedType, details } = result;
    const ending = {
      rid,
      crawlerId,
      attempt,
      record: {
        cbStatus,
        originalStatus,
        url,
        rid,
        pushedUrl: job.url,
        contentType: packedType,
        body: result.packed,
        details,
      },
      billed: isBilled(cbStatus, originalStatus),
      expiresAt: new Date(clock.now().getTime() + deps.retentionDays * DAY_MS),
    };
    if (deliveryModes[crawler.delivery].delivers) {
      return { ...ending, kind: 'delivery', callbackHeaders: job.callbackHeaders, held: false };
    }
    return { ...ending, kind: 'stored', tokenType: crawler.tokenType };
  }

  async function fail(job: QueuedJob, crawler: Crawler, reason: FailureReason): Promise<JobEnd> {
    const order = toOrder(job, crawler);
    const { result, held } = await crawling.result(failedPage(order.task, reason), order);
    return { outcome: end(job, crawler, result), held };
  }

  /** When the job is tried again; undefined when its retries or its window are used up. */
  function retryAt(job: QueuedJob, crawler: Crawler, failure?: CrawlFailure): Date | undefined {
    const now = clock.now();
    const most = MOST_RETRIES[failure?.reason ?? ''] ?? crawler.maxRetries;
    return nextCrawlRetry({
      retry: job.retry,
      firstTriedAt: job.firstTriedAt ?? now,
      now,
      maxRetries: Math.min(crawler.maxRetries, most),
      windowHours: crawler.retryWindowHours,
      retryAfterMs: failure?.retryAfterMs,
      random: random(),
    })?.dueAt;
  }

  function giveBack({ rid, crawlerId, attempt }: QueuedJob, afterMs: number): JobEnd {
    const dueAt = new Date(clock.now().getTime() + afterMs);
    return { outcome: { kind: 'release', rid, crawlerId, attempt, dueAt }, held: undefined };
  }

  async function lost(job: QueuedJob, crawler: Crawler, { blamed }: ThreadLost): Promise<JobEnd> {
    if (!blamed) return giveBack(job, random() * LOST_MS);
    const dueAt = job.crashes + 1 < MAX_CRASHES ? retryAt(job, crawler) : undefined;
    if (dueAt === undefined) return fail(job, crawler, 'crawl_crashed');
    const { rid, crawlerId, attempt } = job;
    const outcome = { kind: 'retry', rid, crawlerId, attempt, dueAt, crashed: true } as const;
    return { outcome, held: undefined };
  }

  return {
    async crawl(job, crawler, signal) {
      if (job.crashes >= MAX_LOST_CLAIMS) return fail(job, crawler, 'crawl_crashed');
      let crawled: Crawled;
      try {
        crawled = await crawling.crawl(toOrder(job, crawler), signal);
      } catch (error) {
        if (error instanceof ThreadLost) return lost(job, crawler, error);
        throw error;
      }
      const { result, held } = crawled;
      const { failure } = result;
      const { rid, crawlerId, attempt } = job;
      if (failure?.transient === true) {
        const isBusy = UNTRIED.has(failure.reason);
        const dueAt = isBusy ? undefined : retryAt(job, crawler, failure);
        if (isBusy || dueAt !== undefined) held?.release();
        if (isBusy) return giveBack(job, failure.retryAfterMs ?? BUSY_MS);
        if (dueAt !== undefined) {
          return { outcome: { kind: 'retry', rid, crawlerId, attempt, dueAt }, held: undefined };
        }
      }
      return { outcome: end(job, crawler, result), held };
    },

    async expire(job, crawler) {
      const order = toOrder(job, crawler);
      const page = {
        ...failedPage(order.task, 'queue_timeout'),
        originalStatus: 504,
      };
      const { result } = await crawling.result(page, order);
      return { ...end(job, crawler, result), timedOut: true };
    },
  };
}
