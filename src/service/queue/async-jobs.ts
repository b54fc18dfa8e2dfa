import type { Dispatcher } from '../../dispatcher/dispatcher.ts';
import type { TokenOwner } from '../../domain/account.ts';
import type { Clock } from '../../domain/clock.ts';
import { missingField, ridNotFound } from '../../domain/errors.ts';
import type { QueuedJob } from '../../domain/job.ts';
import { isRid } from '../../domain/rid.ts';
import type { JobSummary, Listing, ListingPart, Store } from '../../store/store.ts';
import { ASYNC_CRAWLER } from '../crawlers/async-crawler.ts';
import type { CrawlerAccess } from '../crawlers/crawler-access.ts';

/** The jobs of a token's `async=true` crawls, which belong to none of the client's crawlers. */
export interface AsyncJobs {
  /** Waiting and retrying jobs, earliest due first. */
  list(owner: TokenOwner, part: ListingPart): Promise<Listing<JobSummary>>;
  /** Returns the job while it is queued or being crawled; undefined otherwise. */
  find(owner: TokenOwner, rid: string): Promise<QueuedJob | undefined>;
  /** Throws `not_found` when no such job is queued. */
  remove(owner: TokenOwner, rid: string): Promise<void>;
  /** Removes all waiting and retrying jobs. Returns how many. */
  purge(owner: TokenOwner): Promise<number>;
}

/** Makes the use cases. */
export function createAsyncJobs(deps: {
  readonly store: Pick<Store, 'queue' | 'listings'>;
  readonly access: Pick<CrawlerAccess, 'findIfAny'>;
  readonly dispatcher: Pick<Dispatcher, 'abortJob' | 'refresh'>;
  readonly clock: Clock;
}): AsyncJobs {
  const { queue, listings } = deps.store;

  /** Undefined before the token's first `async=true` crawl. */
  const findAsyncCrawler = (owner: TokenOwner) => deps.access.findIfAny(owner, ASYNC_CRAWLER);

  return {
    async list(owner, part) {
      const crawler = await findAsyncCrawler(owner);
      if (crawler === undefined) return { rows: [], cursor: undefined };
      return listings.jobs(crawler.crawlerId, undefined, part);
    },

    async find(owner, rid) {
      const crawler = await findAsyncCrawler(owner);
      return crawler === undefined || !isRid(rid) ? undefined : queue.find(crawler.crawlerId, rid);
    },

    async remove(owner, rid) {
      if (rid === '') throw missingField('rid');
      const crawler = await findAsyncCrawler(owner);
      const { crawlerId } = crawler ?? { crawlerId: '' };
      const removed = isRid(rid) && (await queue.deleteJob(crawlerId, rid, deps.clock.now()));
      if (!removed) {
        throw ridNotFound('job', rid);
      }
      deps.dispatcher.abortJob(crawlerId, rid);
    },

    async purge(owner) {
      const crawler = await findAsyncCrawler(owner);
      if (crawler === undefined) return 0;
      const purged = await queue.purge(crawler.crawlerId, deps.clock.now());
      deps.dispatcher.refresh(crawler.crawlerId);
      return purged;
    },
  };
}
