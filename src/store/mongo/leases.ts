import { createLruMap } from '../../domain/lru-map.ts';
import { isShare } from '../share-store.ts';
import type { CrawlerChanges, HeldUntil, Lease, QueueStore } from '../store.ts';
import type { Collections, CrawlerDocument } from './collections.ts';
import { readParts, sumCounts } from './counts-document.ts';
import type { Lanes } from './lanes.ts';
import { currentLease, type EndOfLease, endLease, isLive, setWake, wakeNow } from './lease.ts';
import { type FormerWork, takeBack } from './requeue.ts';
import {
  endLapsedShares,
  endShare,
  formerEpochs,
  renewShares,
  SHARING_FIELDS,
  type SharedDocument,
  shareOf,
  toSharing,
} from './shares.ts';

const NEWS_FIELDS = {
  epoch: 1,
  leaseOwner: 1,
  leaseUntil: 1,
  wakes: 1,
  updatedAt: 1,
  ...SHARING_FIELDS,
} as const;
/** Crawlers of which it is known when this process let them go. */
const MAX_KNOWN = 10_000;
const LED_FIELDS = {
  epoch: 1,
  leaseOwner: 1,
  leaseUntil: 1,
  crawledUntil: 1,
  shares: 1,
} as const;
const ACQUIRED_FIELDS = { ...NEWS_FIELDS, ...LED_FIELDS, accountId: 1, politeness: 1 } as const;

type LedCrawler = Pick<CrawlerDocument, '_id' | keyof typeof LED_FIELDS>;
type VisitedCrawler = Pick<CrawlerDocument, '_id' | keyof typeof NEWS_FIELDS>;

/**
 * The leases of the queue: who dispatches a crawler, and what becomes of the work of former
 * holders.
 */
export function createLeases(
  collections: Collections,
  lanes: Lanes,
): Pick<QueueStore, 'acquire' | 'visit' | 'release'> {
  /** Until when other processes have crawled a crawler, and when this one let it go, if it did. */
  const known = createLruMap<string, { readonly othersMs: number; readonly releasedMs?: number }>({
    maxEntries: MAX_KNOWN,
  });

  async function acquire(
    crawlerId: string,
    owner: string,
    ttlMs: number,
    now: Date,
  ): Promise<Lease | undefined> {
    const startedAt = performance.now();
    const leaseUntil = new Date(now.getTime() + ttlMs);
    const before = await collections.crawlers.findOneAndUpdate(
      { _id: crawlerId, $or: [{ leaseUntil: { $lte: now } }, { leaseOwner: owner }] },
      // A crawler is looked at when its lease ends, because the holder may have crashed.
      { $inc: { epoch: 1 }, $set: { leaseOwner: owner, leaseUntil, wakeAt: leaseUntil } },
      { returnDocument: 'before', projection: ACQUIRED_FIELDS },
    );
    if (before === null) return undefined;
    const settings = before.updatedAt.getTime();
    const lease: Lease = {
      crawlerId,
      owner,
      epoch: before.epoch + 1,
      work: before.wakes,
      settings,
    };
    let sharing = toSharing(before);
    let until: Date | undefined = leaseUntil;
    const mayHaveHelpers = Object.keys(before.shares ?? {}).length > 0;
    if (before.leaseOwner !== null || mayHaveHelpers) {
      until = await whileRenewing(collections, { lease, ttlMs, now, startedAt }, () =>
        lanes.runExclusive(crawlerId, async () => {
          const crashed = before.leaseOwner !== owner;
          await endLapsedShares(collections, before, now);
          sharing = toSharing(await takeBackFormer({ ...lease, now, crashed }));
        }),
      );
      if (until === undefined) return undefined;
    }
    // Read after the write of this lease: of two processes that do this at once, one at least sees the other.
    const others = await othersOfGroup(before);
    const isElsewhere = others.some(
      ({ leaseOwner, leaseUntil }) =>
        ![null, owner].includes(leaseOwner) && isLive(leaseUntil, now),
    );
    if (isElsewhere) {
      // It has crawled nothing.
      const isKnown = othersUntil(before, owner) !== undefined;
      await endLead(lease, now, isKnown ? { crawledUntil: new Date(0) } : {});
      return undefined;
    }
    const former = formerUntil([before, ...others], owner, now);
    known.set(crawlerId, { othersMs: othersUntil(before, owner) ?? now.getTime() });
    return { ...lease, formerUntil: former, until, sharing };
  }

  /** Until when other processes may have crawled; undefined if that is not known, or if they still may. */
  function othersUntil(crawler: LedCrawler, owner: string): number | undefined {
    const { _id, epoch, crawledUntil, leaseOwner, leaseUntil, shares = {} } = crawler;
    const isUnknown = epoch > 0 && crawledUntil === undefined && leaseOwner === null;
    if (isUnknown || Object.keys(shares).length > 0) return undefined;
    const own = known.get(_id);
    const isOwn = own?.releasedMs !== undefined && own.releasedMs === crawledUntil?.getTime();
    const releasedMs = isOwn ? own.othersMs : (crawledUntil?.getTime() ?? 0);
    const isOthers = leaseOwner !== null && leaseOwner !== owner;
    return isOthers ? Math.max(releasedMs, leaseUntil.getTime()) : releasedMs;
  }

  /** {@link othersUntil} of several crawlers, but no later than now. */
  function formerUntil(
    crawlers: readonly LedCrawler[],
    owner: string,
    now: Date,
  ): Date | undefined {
    const times: number[] = [];
    for (const crawler of crawlers) {
      const othersMs = othersUntil(crawler, owner);
      if (othersMs === undefined) return undefined;
      times.push(othersMs);
    }
    return new Date(Math.min(now.getTime(), Math.max(...times)));
  }

  /** The other crawlers of its pace group. */
  async function othersOfGroup({
    _id,
    accountId,
    politeness,
  }: Pick<CrawlerDocument, '_id' | 'accountId' | 'politeness'>): Promise<LedCrawler[]> {
    if (politeness?.group === undefined) return [];
    return collections.crawlers
      .find(
        { _id: { $ne: _id }, accountId, 'politeness.group': politeness.group },
        { projection: LED_FIELDS },
      )
      .toArray();
  }

  /** Takes back what former holders had, under the lead's `epoch`. Returns the shares that are left. */
  async function takeBackFormer({
    crawlerId,
    epoch,
    ...former
  }: Pick<Lease, 'crawlerId' | 'epoch'> & Pick<FormerWork, 'now' | 'crashed'>) {
    const shared: SharedDocument =
      (await collections.crawlers.findOne({ _id: crawlerId }, { projection: SHARING_FIELDS })) ??
      {};
    const epochs = formerEpochs(shared, epoch);
    await takeBack(collections, lanes, { crawlerId, epochs, ...former });
    return shared;
  }

  async function visit(
    leases: readonly Lease[],
    now: Date,
    ttlMs?: number,
  ): Promise<CrawlerChanges[]> {
    if (leases.length === 0) return [];
    const ids = [...new Set(leases.map((each) => each.crawlerId))];
    if (ttlMs !== undefined) {
      const leaseUntil = new Date(now.getTime() + ttlMs);
      const leads = leases.filter((each) => !isShare(each));
      const ledIds = [...new Set(leads.map((each) => each.crawlerId))];
      const owners = [...new Set(leads.map((each) => each.owner))];
      await Promise.all([
        collections.crawlers.updateMany(
          { _id: { $in: ledIds }, leaseOwner: { $in: owners }, leaseUntil: { $gt: now } },
          { $max: { leaseUntil }, $set: { wakeAt: leaseUntil } },
        ),
        renewShares(collections, leases, now, leaseUntil),
      ]);
    }
    const found: VisitedCrawler[] = await collections.crawlers
      // All in one reply.
      .find({ _id: { $in: ids } }, { projection: NEWS_FIELDS, batchSize: ids.length + 1 })
      .toArray();
    const crawlers = new Map(found.map((each) => [each._id, each]));
    const led = leases.filter((each) => {
      const crawler = crawlers.get(each.crawlerId);
      return crawler !== undefined && !isShare(each) && isHeld(crawler, each, now);
    });
    // Not with a renewal, which must not wait for that.
    if (ttlMs === undefined) await takeBackLapsed(led, crawlers, now);
    return leases.flatMap((lease): CrawlerChanges[] => {
      const crawler = crawlers.get(lease.crawlerId);
      if (crawler === undefined) return [];
      const { _id: crawlerId, wakes, updatedAt } = crawler;
      const sharing = toSharing(crawler);
      const held = isHeld(crawler, lease, now);
      const settings = updatedAt.getTime();
      return [{ crawlerId, epoch: lease.epoch, held, work: wakes, settings, sharing }];
    });
  }

  /** Ends the shares that have lapsed, also in `crawlers`, and takes back what their helpers had. */
  async function takeBackLapsed(
    led: readonly Lease[],
    crawlers: Map<string, VisitedCrawler>,
    now: Date,
  ): Promise<void> {
    for (const { crawlerId, epoch } of led) {
      const crawler = crawlers.get(crawlerId);
      if (crawler === undefined || !(await endLapsedShares(collections, crawler, now))) continue;
      const left = await lanes.runExclusive(crawlerId, () =>
        takeBackFormer({ crawlerId, epoch, now, crashed: true }),
      );
      crawlers.set(crawlerId, { ...crawler, ...left });
    }
  }

  async function release(
    lease: Lease,
    now: Date,
    heldUntil?: HeldUntil,
  ): Promise<{ wakeAt: Date | undefined }> {
    if (isShare(lease)) return releaseShare(lease, now);
    const { crawlerId } = lease;
    const wakeAt = await endLead(lease, now, { crawledUntil: now, heldUntil });
    const { othersMs = now.getTime() } = known.get(crawlerId) ?? {};
    known.set(crawlerId, { othersMs, releasedMs: now.getTime() });
    return { wakeAt };
  }

  /** Ends the lease of a lead. Returns when the crawler has work next. */
  async function endLead(
    lease: Lease,
    now: Date,
    ending: Pick<EndOfLease, 'crawledUntil' | 'heldUntil'> = {},
  ): Promise<Date | undefined> {
    const { crawlerId, epoch, owner } = lease;
    return lanes.runExclusive(crawlerId, async () => {
      const crawler = await collections.crawlers.findOne(
        { _id: crawlerId, epoch, leaseOwner: owner },
        { projection: { wakes: 1, purges: 1, ...SHARING_FIELDS } },
      );
      if (crawler !== null) {
        // After `wakes`: a push that these counts miss changes it, and the write below fails.
        const parts = await readParts(collections, [crawlerId]);
        const { waiting, retrying, running, deliveriesPending } = sumCounts(
          parts.get(crawlerId) ?? [],
          crawler.purges,
        );
        const isEmpty = waiting + retrying + running + deliveriesPending === 0;
        const asRead = { _id: crawlerId, wakes: crawler.wakes, epoch, leaseOwner: owner };
        // False if it may have got work since `wakes` was read.
        if (isEmpty && (await endLease(collections, asRead, ending))) return undefined;
        const epochs = formerEpochs(crawler, epoch + 1);
        await takeBack(collections, lanes, { crawlerId, epochs, now });
      }
      return setWake(collections, crawlerId, { ...ending, lease });
    });
  }

  /** Ends a share, and makes due again what its helper leaves. The lead sees the work. */
  async function releaseShare(lease: Lease, now: Date): Promise<{ wakeAt: undefined }> {
    const { crawlerId, epoch } = lease;
    return lanes.runExclusive(crawlerId, async () => {
      if (await endShare(collections, lease, now)) {
        await takeBack(collections, lanes, { crawlerId, epochs: { $eq: epoch }, now });
        await wakeNow(collections, crawlerId, now, 'job');
        await setWake(collections, crawlerId);
      }
      return { wakeAt: undefined };
    });
  }

  return { acquire, visit, release };
}

/** Whether nobody else has taken the lease, or the share has not ended, and it has not lapsed. */
export function isHeld(
  crawler: Pick<CrawlerDocument, 'epoch' | 'leaseOwner' | 'leaseUntil' | 'shares'>,
  lease: Lease,
  now: Date,
): boolean {
  if (isShare(lease)) return isLive(shareOf(crawler, lease)?.until, now);
  const { epoch, leaseOwner, leaseUntil } = crawler;
  return lease.epoch === epoch && lease.owner === leaseOwner && isLive(leaseUntil, now);
}

/** Runs `work` and renews the lease until it ends. Returns its end; undefined when it was lost. */
async function whileRenewing(
  collections: Collections,
  {
    lease,
    ttlMs,
    now,
    startedAt,
  }: {
    readonly lease: Lease;
    readonly ttlMs: number;
    readonly now: Date;
    /** The reading of `performance.now()` at `now`. */
    readonly startedAt: number;
  },
  work: () => Promise<void>,
): Promise<Date | undefined> {
  let until: Date | undefined = new Date(now.getTime() + ttlMs);
  const renewals = setInterval(() => {
    const at = new Date(now.getTime() + performance.now() - startedAt);
    const leaseUntil = new Date(at.getTime() + ttlMs);
    void collections.crawlers
      .updateOne(currentLease(lease, at), { $set: { leaseUntil, wakeAt: leaseUntil } })
      .then(
        ({ matchedCount }) => (until = matchedCount > 0 ? leaseUntil : undefined),
        // The next renewal may come in time.
        () => undefined,
      );
  }, ttlMs / 3);
  try {
    await work();
  } finally {
    clearInterval(renewals);
  }
  return until;
}
