import type { Dispatcher } from '../../dispatcher/dispatcher.ts';
import type { TokenOwner } from '../../domain/account.ts';
import type { Clock } from '../../domain/clock.ts';
import type { DeliverySummary } from '../../domain/delivery.ts';
import { missingField, ridNotFound } from '../../domain/errors.ts';
import type { QueuedJob } from '../../domain/job.ts';
import type { Logger } from '../../domain/logger.ts';
import { isRid } from '../../domain/rid.ts';
import type { Scheduler } from '../../scheduler/scheduler.ts';
import type { Store } from '../../store/store.ts';
import type { Quotas } from '../accounts/quotas.ts';
import type { CrawlerAccess } from '../crawlers/crawler-access.ts';

/** Selects the deliveries of a replay. */
export type ReplaySelector =
  | { readonly rid: string }
  | { readonly from: Date; readonly to: Date | undefined };

/** Single jobs and deliveries of a crawler. Every method throws as {@link CrawlerAccess} does. */
export interface JobManagement {
  /** Returns the job while it is queued or being crawled; undefined otherwise. */
  find(owner: TokenOwner, crawlerName: string, rid: string): Promise<QueuedJob | undefined>;
  /** Removes a queued or running job. Throws `not_found` when there is none. */
  remove(owner: TokenOwner, crawlerName: string, rid: string): Promise<void>;
  /** Returns a delivery with its attempts. Throws `not_found` when there is none. */
  delivery(owner: TokenOwner, crawlerName: string, rid: string): Promise<DeliverySummary>;
  /**
   * Makes deliveries due again, and returns how many. Throws `not_found` for a single one that
   * cannot be replayed. Throws `exhausted`, and replays none, when they are more than the account's
   * quota has left.
   */
  replay(owner: TokenOwner, crawlerName: string, selector: ReplaySelector): Promise<number>;
}

/** What the job management works with. */
export interface JobManagementDeps {
  readonly store: Pick<Store, 'queue' | 'deliveries'>;
  readonly access: CrawlerAccess;
  readonly dispatcher: Pick<Dispatcher, 'abortJob' | 'notify'>;
  readonly scheduler: Pick<Scheduler, 'wake'>;
  readonly quotas: Pick<Quotas, 'replaysLeft' | 'takeReplays'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Makes the job management. */
export function createJobManagement(deps: JobManagementDeps): JobManagement {
  const { store, access, quotas, clock } = deps;

  return {
    async find(owner, crawlerName, rid) {
      const { crawlerId } = await access.find(owner, crawlerName);
      return isRid(rid) ? store.queue.find(crawlerId, rid) : undefined;
    },

    async remove(owner, crawlerName, rid) {
      const { crawlerId } = await access.find(owner, crawlerName);
      if (rid === '') throw missingField('rid');
      const removed = isRid(rid) && (await store.queue.deleteJob(crawlerId, rid, clock.now()));
      if (!removed) throw ridNotFound();
      deps.logger.debug({ rid, crawler: crawlerId }, 'a job was deleted');
      deps.dispatcher.abortJob(crawlerId, rid);
    },

    async delivery(owner, crawlerName, rid) {
      const { crawlerId } = await access.find(owner, crawlerName);
      const summary = isRid(rid) ? await store.deliveries.get(crawlerId, rid) : undefined;
      if (summary === undefined) throw ridNotFound();
      return summary;
    },

    async replay(owner, crawlerName, selector) {
      const { crawlerId } = await access.find(owner, crawlerName);
      const now = clock.now();
      const which = 'rid' in selector ? selector : { from: selector.from, to: selector.to ?? now };
      const { account } = owner;
      const left = await quotas.replaysLeft(account);
      // Counting stops at one more than the quota has left: that is enough to refuse the replay.
      const count = await store.deliveries.countReplayable(crawlerId, which, left + 1);
      if (count > 0) await quotas.takeReplays(account, count);
      const replayed = await store.deliveries.replay(crawlerId, which, now);
      if ('rid' in selector && replayed === 0) throw ridNotFound();
      if (replayed > 0) {
        deps.dispatcher.notify(crawlerId);
        await deps.scheduler.wake('crawl', crawlerId, now);
      }
      return replayed;
    },
  };
}
