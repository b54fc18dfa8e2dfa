import type { CrawlEngine, Page } from '../crawler/crawler.ts';
import { HOST_BUSY } from '../crawler/host-gate.ts';
import type { Clock } from '../domain/clock.ts';
import type { Crawler } from '../domain/crawler.ts';
import type { QueuedJob } from '../domain/job.ts';
import { nextCrawlRetry } from '../domain/retry-schedule.ts';
import { isBilled } from '../domain/status.ts';
import type { JobOutcome } from '../store/store.ts';
import type { Recorder } from './record.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;
const HOST_BUSY_MS = 5_000;

/** What crawling a job works with. */
export interface CrawlJobDeps {
  readonly engine: CrawlEngine;
  readonly recorder: Recorder;
  readonly clock: Clock;
  readonly retentionDays: number;
  readonly random?: () => number;
}

/** Crawls jobs and ends them. */
export interface CrawlJobs {
  /** Crawls one URL: a result, or a time to try again. Rejects only when aborted. */
  crawl(job: QueuedJob, crawler: Crawler, signal: AbortSignal): Promise<JobOutcome>;
  /** The end of a job that waited longer than its `queue_timeout`. */
  expire(job: QueuedJob, crawler: Crawler): Promise<JobOutcome>;
}

/** Makes the use case. */
export function createCrawlJobs(deps: CrawlJobDeps): CrawlJobs {
  const { clock, recorder } = deps;
  const random = deps.random ?? Math.random;

  async function end(job: QueuedJob, crawler: Crawler, page: Page): Promise<JobOutcome> {
    const record = await recorder.record(page, job, job.rid, crawler.delivery);
    const ending = {
      rid: job.rid,
      crawlerId: job.crawlerId,
      attempt: job.attempt,
      record,
      billed: isBilled(page.cbStatus, page.originalStatus),
      expiresAt: new Date(clock.now().getTime() + deps.retentionDays * DAY_MS),
    };
    if (crawler.delivery === 'storage') {
      return { ...ending, kind: 'stored', tokenType: crawler.tokenType };
    }
    return { ...ending, kind: 'delivery', callbackHeaders: job.callbackHeaders, held: false };
  }

  return {
    async crawl(job, crawler, signal) {
      const { tokenType, accountId, crawlerId, politeness } = crawler;
      const task = { request: job, tokenType, accountId, crawlerId, politeness };
      const page = await deps.engine.crawl(task, signal);
      const { failure } = page;
      const { rid, attempt } = job;
      const now = clock.now();
      if (failure?.reason === HOST_BUSY) {
        const dueAt = new Date(now.getTime() + (failure.retryAfterMs ?? HOST_BUSY_MS));
        return { kind: 'release', rid, crawlerId, attempt, dueAt };
      }
      if (failure?.passing === true) {
        const next = nextCrawlRetry({
          retry: job.retry,
          firstTriedAt: job.firstTriedAt ?? now,
          now,
          maxRetries: crawler.maxRetries,
          windowHours: crawler.retryWindowHours,
          retryAfterMs: failure.retryAfterMs,
          random: random(),
        });
        if (next !== undefined) {
          return { kind: 'retry', rid, crawlerId, attempt, dueAt: next.dueAt };
        }
      }
      return end(job, crawler, page);
    },

    async expire(job, crawler) {
      const page: Page = {
        cbStatus: 699,
        originalStatus: 504,
        url: job.url,
        body: new Uint8Array(0),
        contentType: 'text/plain; charset=utf-8',
        isText: true,
        headers: [],
      };
      return { ...(await end(job, crawler, page)), timedOut: true };
    },
  };
}
