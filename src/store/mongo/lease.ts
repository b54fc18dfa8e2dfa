import type { ClientSession, Filter } from 'mongodb';
import { earliest, noSooner } from '../queue-depth.ts';
import { heldBackBy, type WorkKind } from '../rules.ts';
import { isShare } from '../share-store.ts';
import type { HeldUntil, Lease } from '../store.ts';
import type { Collections, CrawlerDocument } from './collections.ts';

/** The wake time of a crawler that has work now, whatever the clock. */
const DUE_NOW = new Date(0);
/** The wake time of a crawler that has no work. */
export const NO_WORK = new Date('9999-12-31T00:00:00Z');

/** Whether a lease that ends at `leaseUntil` is live. */
export function isLive(leaseUntil: Date | undefined, now: Date): boolean {
  return leaseUntil !== undefined && leaseUntil > now;
}

/** Matches the crawler while the lease is its current one and has not lapsed. */
export function currentLease(lease: Lease, now: Date): Filter<CrawlerDocument> {
  if (isShare(lease)) {
    const share = `shares.${-lease.epoch}`;
    return {
      _id: lease.crawlerId,
      [`${share}.processId`]: lease.owner,
      [`${share}.until`]: { $gt: now },
    };
  }
  return {
    _id: lease.crawlerId,
    epoch: lease.epoch,
    leaseOwner: lease.owner,
    leaseUntil: { $gt: now },
  };
}

/** Notes that the crawler has work now. */
export async function wakeNow(
  collections: Collections,
  crawlerId: string,
  now: Date,
  work: WorkKind,
  session?: ClientSession,
): Promise<void> {
  const wake = [{ $set: wakeFields(now, work) }];
  await collections.crawlers.updateOne({ _id: crawlerId }, wake, session && { session });
}

/**
 * The fields of {@link wakeNow}. Under a lease the wake time stays: its holder sees the work, or sets
 * the wake time when it releases the lease. So it does during a pause, whose end sets it too.
 */
export function wakeFields(now: Date, work: WorkKind) {
  const pauses = heldBackBy[work].map((pause) => `$${pause}`);
  const keeps = { $or: [{ $ne: ['$leaseOwner', null] }, ...pauses] };
  return {
    wakes: { $add: ['$wakes', 1] },
    wakeAt: { $cond: [keeps, '$wakeAt', { $min: ['$wakeAt', now] }] },
  };
}

/** When the crawler has work next; undefined when it has none, or all of it is paused. */
async function nextWorkAt(
  collections: Collections,
  crawler: Pick<CrawlerDocument, '_id' | 'pausedByUser' | 'pausedByMonitor' | 'purges'>,
  held: HeldUntil = {},
): Promise<Date | undefined> {
  if (crawler.pausedByMonitor) return undefined;
  const [delivery, job] = await Promise.all([
    nextDelivery(collections, crawler._id),
    crawler.pausedByUser ? undefined : nextJob(collections, crawler),
  ]);
  return earliest([noSooner(delivery, held.delivery), noSooner(job, held.job)]);
}

/** Finds what falls due first, and when. */
export const FIRST_DUE = { sort: { due: 1, _id: 1 }, projection: { due: 1 } } as const;

/** When the crawler's next delivery falls due; undefined when none waits. */
export async function nextDelivery(
  { deliveries }: Collections,
  crawlerId: string,
): Promise<Date | undefined> {
  return (await deliveries.findOne({ crawlerId, state: 'due' }, FIRST_DUE))?.due;
}

/** When the crawler's next job falls, or fell, due; undefined when none waits. */
export async function nextJob(
  { jobs }: Collections,
  { _id: crawlerId, purges: gen }: Pick<CrawlerDocument, '_id' | 'purges'>,
): Promise<Date | undefined> {
  return (await jobs.findOne({ crawlerId, queued: true, gen }, FIRST_DUE))?.due;
}

/** How a lease ends. */
export interface EndOfLease {
  /** Absent for a crawler that has none. */
  readonly lease?: Lease;
  readonly wakeAt?: Date | undefined;
  readonly heldUntil?: HeldUntil | undefined;
  /** Until when its holder may have crawled; absent if that is not known, or did not change. */
  readonly crawledUntil?: Date | undefined;
}

const WAKE_FIELDS = {
  pausedByUser: 1,
  pausedByMonitor: 1,
  wakes: 1,
  leaseOwner: 1,
  epoch: 1,
  purges: 1,
  shares: 1,
} as const;

/**
 * Sets the wake time of a crawler without a lease to its next work, and misses no work that arrives
 * at the same time. One that has helpers needs a lead at once. With `lease`, ends that lease in the
 * same write; changes nothing if it is no longer the current one.
 */
export async function setWake(
  collections: Collections,
  crawlerId: string,
  { lease, heldUntil, crawledUntil }: EndOfLease = {},
): Promise<Date | undefined> {
  for (;;) {
    const crawler = await collections.crawlers.findOne(
      { _id: crawlerId },
      { projection: WAKE_FIELDS },
    );
    if (crawler === null) return undefined;
    const hasHelpers = Object.keys(crawler.shares ?? {}).length > 0;
    const { wakes, epoch, leaseOwner } = crawler;
    // What was pushed since then may start at once.
    const hasMore = heldUntil?.seenWork !== undefined && heldUntil.seenWork !== wakes;
    const held = hasMore ? { delivery: heldUntil.delivery } : heldUntil;
    const wakeAt = hasHelpers ? DUE_NOW : await nextWorkAt(collections, crawler, held);
    const holds = lease === undefined ? null : lease.owner;
    if (leaseOwner !== holds || (lease !== undefined && lease.epoch !== epoch)) return wakeAt;
    const asRead = { _id: crawlerId, wakes, epoch, leaseOwner };
    if (await endLease(collections, asRead, { wakeAt, crawledUntil })) return wakeAt;
  }
}

/** Ends the lease of a crawler that is as it was read, and sets its wake time; false otherwise. */
export async function endLease(
  { crawlers }: Collections,
  asRead: Pick<CrawlerDocument, '_id' | 'wakes' | 'epoch' | 'leaseOwner'>,
  { wakeAt = NO_WORK, crawledUntil }: Pick<EndOfLease, 'wakeAt' | 'crawledUntil'>,
): Promise<boolean> {
  const { matchedCount } = await crawlers.updateOne(asRead, {
    ...(crawledUntil === undefined ? {} : { $max: { crawledUntil } }),
    $set: { leaseOwner: null, leaseUntil: new Date(0), wakeAt },
    $unset: { wantsHelp: '' },
  });
  return matchedCount > 0;
}
