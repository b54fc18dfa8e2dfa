import type { Clock } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import { deliveryModes } from '../../domain/delivery-mode.ts';
import type { Logger } from '../../domain/logger.ts';
import type { Scheduler } from '../../scheduler/scheduler.ts';
import type { Store } from '../../store/store.ts';
import type { CrawlJobs } from '../crawls/crawl-job.ts';

const BATCH = 200;

/**
 * Makes the `timeout` task: in batches, it ends every job that has waited longer than its
 * `queue_timeout` with a 504/699 result. Returns how many it ended.
 */
export function createTimeouts(deps: {
  readonly store: Pick<Store, 'queue' | 'crawlers'>;
  readonly crawlJobs: Pick<CrawlJobs, 'expire'>;
  readonly scheduler: Pick<Scheduler, 'wake'>;
  readonly clock: Clock;
  readonly logger: Logger;
}): (signal: AbortSignal) => Promise<number> {
  const { store, clock } = deps;

  return async (signal) => {
    let ended = 0;
    while (!signal.aborted) {
      const jobs = await store.queue.overdue(clock.now(), BATCH);
      if (jobs.length === 0) return ended;
      const ids = [...new Set(jobs.map((job) => job.crawlerId))];
      const found = await Promise.all(ids.map((id) => store.crawlers.get(id)));
      const crawlers = new Map<string, Crawler>();
      for (const crawler of found) {
        if (crawler !== undefined) crawlers.set(crawler.crawlerId, crawler);
      }
      const outcomes = await Promise.all(
        jobs.flatMap((job) => {
          const crawler = crawlers.get(job.crawlerId);
          return crawler === undefined ? [] : [deps.crawlJobs.expire(job, crawler)];
        }),
      );
      const verdicts = await store.queue.finish(outcomes, clock.now());
      for (const [index, { rid, crawlerId: crawler, attempt }] of outcomes.entries()) {
        const verdict = verdicts[index];
        deps.logger.debug({ rid, crawler, attempt, verdict }, 'a job waited too long');
      }
      const won = verdicts.filter((verdict) => verdict === 'won').length;
      ended += won;
      for (const { crawlerId, delivery } of crawlers.values()) {
        if (deliveryModes[delivery].delivers) {
          await deps.scheduler.wake('crawl', crawlerId, clock.now());
        }
      }
      // Jobs whose end was lost have been claimed or deleted since; the next run sees the rest.
      if (won === 0 || jobs.length < BATCH) return ended;
    }
    return ended;
  };
}
