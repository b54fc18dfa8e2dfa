import type { Dispatcher } from '../../dispatcher/dispatcher.ts';
import type { TokenOwner } from '../../domain/account.ts';
import { type ServiceClock, toWall, wallNow } from '../../domain/clock.ts';
import { defined } from '../../domain/defined.ts';
import type { DeliverySummary } from '../../domain/delivery.ts';
import { deliveryModes } from '../../domain/delivery-mode.ts';
import { missingField, noDeliveries, ridNotFound } from '../../domain/errors.ts';
import type { QueuedJob } from '../../domain/job.ts';
import type { Logger } from '../../domain/logger.ts';
import { isRid, selectedRids } from '../../domain/rid.ts';
import type { Scheduler } from '../../scheduler/scheduler.ts';
import type { Store, ReplaySelector as StoreSelector } from '../../store/store.ts';
import type { Quotas } from '../accounts/quotas.ts';
import type { CrawlerAccess } from '../crawlers/crawler-access.ts';

/** Selects the deliveries of a replay. */
export type ReplaySelector =
  | { readonly rid: string }
  | { readonly rids: readonly string[] }
  | ReplayRange;

/** Deliveries by the end of their crawl. */
export interface ReplayRange {
  readonly from: Date;
  readonly to: Date | undefined;
  /** Only those in this state. */
  readonly state?: DeliverySummary['state'] | undefined;
  /** Most deliveries, oldest first; all of the range if absent. */
  readonly maxCount?: number | undefined;
  /** Continues behind an earlier replay of the range. */
  readonly cursor?: string | undefined;
}

/** The result of a replay. */
export interface Replayed {
  readonly count: number;
  /** Where the next replay of the range continues; undefined when nothing is left of it. */
  readonly cursor: string | undefined;
}

/** Single jobs and deliveries of a crawler. Every method throws as {@link CrawlerAccess} does. */
export interface JobManagement {
  /**
   * Returns the job while it is queued or being crawled; undefined otherwise, also when the crawler
   * was removed.
   */
  find(owner: TokenOwner, crawlerName: string, rid: string): Promise<QueuedJob | undefined>;
  /** Removes a queued or running job. Throws `not_found` when it does not exist. */
  remove(owner: TokenOwner, crawlerName: string, rid: string): Promise<void>;
  /** Returns a delivery with its attempts. Throws `not_found` when it does not exist. */
  delivery(owner: TokenOwner, crawlerName: string, rid: string): Promise<DeliverySummary>;
  /**
   * Makes deliveries due again, and returns how many. Throws `not_found` for a single one that
   * cannot be replayed, and `failed_precondition` for a crawler without deliveries. Throws
   * `exhausted`, and replays none, when they are more than the account's quota has left.
   */
  replay(owner: TokenOwner, crawlerName: string, selector: ReplaySelector): Promise<Replayed>;
}

/** What the job management works with. */
export interface JobManagementDeps {
  readonly store: Pick<Store, 'queue' | 'deliveries' | 'listings'>;
  readonly access: CrawlerAccess;
  readonly dispatcher: Pick<Dispatcher, 'abortJob' | 'notify'>;
  readonly scheduler: Pick<Scheduler, 'wake'>;
  readonly quotas: Pick<Quotas, 'replaysLeft' | 'takeReplays'>;
  readonly clock: ServiceClock;
  readonly logger: Logger;
}

/** Deliveries that one write makes due. */
const REPLAY_BATCH = 1_000;

/** Parts of the listing that one replay of a part of a range looks through. */
const MAX_PARTS = 10;

/** Makes the job management. */
export function createJobManagement(deps: JobManagementDeps): JobManagement {
  const { store, access, quotas, clock } = deps;

  /** Counts towards the quota what the store would replay. */
  async function takeQuota(
    { account }: TokenOwner,
    crawlerId: string,
    which: StoreSelector,
  ): Promise<void> {
    const left = await quotas.replaysLeft(account);
    // Counting stops at one more than the quota has left: that is enough to refuse the replay.
    const count = await store.deliveries.countReplayable(crawlerId, which, left + 1);
    if (count > 0) await quotas.takeReplays(account, count);
  }

  async function replaySelected(
    owner: TokenOwner,
    crawlerId: string,
    selector: ReplaySelector,
  ): Promise<Replayed> {
    if (!('from' in selector)) {
      const which = { rids: 'rid' in selector ? [selector.rid] : selectedRids(selector.rids) };
      await takeQuota(owner, crawlerId, which);
      const count = await store.deliveries.replay(crawlerId, which, clock.now());
      return { count, cursor: undefined };
    }
    const { from, to = wallNow(clock), state, maxCount, cursor } = selector;
    const isWhole = state === undefined && maxCount === undefined && cursor === undefined;
    return isWhole
      ? replayAll(owner, crawlerId, { from, to })
      : replayPart(owner, crawlerId, selector);
  }

  /** In batches, so that other calls are served in between. */
  async function replayAll(
    owner: TokenOwner,
    crawlerId: string,
    range: { readonly from: Date; readonly to: Date },
  ): Promise<Replayed> {
    await takeQuota(owner, crawlerId, range);
    let count = 0;
    let cursor: string | undefined;
    do {
      const part = { limit: REPLAY_BATCH, ...defined({ cursor }) };
      const found = await store.listings.deliveries(crawlerId, { range }, part);
      const rids = found.rows.map(({ rid }) => rid);
      count += await store.deliveries.replay(crawlerId, { rids }, clock.now());
      ({ cursor } = found);
    } while (cursor !== undefined);
    return { count, cursor };
  }

  /** The oldest `maxCount` of a range. */
  async function replayPart(
    owner: TokenOwner,
    crawlerId: string,
    { from, to = wallNow(clock), state, maxCount = REPLAY_BATCH, cursor: start }: ReplayRange,
  ): Promise<Replayed> {
    const rids: string[] = [];
    let cursor = start;
    for (let parts = 0; parts < MAX_PARTS && rids.length < maxCount; parts += 1) {
      const found = await store.listings.deliveries(
        crawlerId,
        { range: { from, to }, ...defined({ state }) },
        { limit: maxCount - rids.length, ...defined({ cursor }) },
      );
      rids.push(...found.rows.map(({ rid }) => rid));
      ({ cursor } = found);
      if (cursor === undefined) break;
    }
    await takeQuota(owner, crawlerId, { rids });
    const count = await store.deliveries.replay(crawlerId, { rids }, clock.now());
    return { count, cursor };
  }

  return {
    async find(owner, crawlerName, rid) {
      const crawler = await access.findIfAny(owner, crawlerName);
      return crawler === undefined || !isRid(rid)
        ? undefined
        : store.queue.find(crawler.crawlerId, rid);
    },

    async remove(owner, crawlerName, rid) {
      const { crawlerId } = await access.find(owner, crawlerName);
      if (rid === '') throw missingField('rid');
      const removed = isRid(rid) && (await store.queue.deleteJob(crawlerId, rid, clock.now()));
      if (!removed) throw ridNotFound('job', rid);
      deps.logger.debug({ rid, crawler: crawlerId }, 'a job was deleted');
      deps.dispatcher.abortJob(crawlerId, rid);
    },

    async delivery(owner, crawlerName, rid) {
      const { crawlerId } = await access.find(owner, crawlerName);
      const summary = isRid(rid) ? await store.deliveries.get(crawlerId, rid) : undefined;
      if (summary === undefined) throw ridNotFound('delivery', rid);
      const { nextAttemptAt } = summary;
      return { ...summary, nextAttemptAt: nextAttemptAt && toWall(clock, nextAttemptAt) };
    },

    async replay(owner, crawlerName, selector) {
      const { crawlerId, delivery } = await access.find(owner, crawlerName);
      if (!deliveryModes[delivery].delivers) throw noDeliveries(crawlerName);
      const replayed = await replaySelected(owner, crawlerId, selector);
      if ('rid' in selector && replayed.count === 0) throw ridNotFound('delivery', selector.rid);
      if (replayed.count > 0) {
        deps.dispatcher.notify(crawlerId);
        await deps.scheduler.wake('crawl', crawlerId, clock.now());
      }
      return replayed;
    },
  };
}
