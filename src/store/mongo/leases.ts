import type { CrawlerNews, Lease, QueueStore } from '../store.ts';
import type { Collections, CrawlerDocument } from './collections.ts';
import { currentLease, forgetProcesses, MAX_LEASE_MS, NO_WORK, setWake } from './lease.ts';
import type { Ledger } from './ledger.ts';
import { recount } from './recount.ts';
import { freeDeliveries, requeue, takeBack } from './requeue.ts';

const NEWS_FIELDS = { epoch: 1, leaseOwner: 1, leaseUntil: 1, wakes: 1, updatedAt: 1 } as const;
/** Most jobs and deliveries of former holders that one visit finds. */
const STRAYS = 100;

/**
 * The leases of the queue: who dispatches a crawler, and what becomes of the work of former
 * holders.
 */
export function createLeases(
  collections: Collections,
  ledger: Ledger,
): Pick<QueueStore, 'acquire' | 'visit' | 'release'> {
  async function acquire(
    crawlerId: string,
    owner: string,
    ttlMs: number,
    now: Date,
  ): Promise<Lease | undefined> {
    const startedAt = performance.now();
    const leaseUntil = new Date(now.getTime() + ttlMs);
    const before = await takeLease(collections, { crawlerId, owner, leaseUntil, now });
    if (before === null) return undefined;
    const epoch = before.epoch + 1;
    const lease: Lease = { crawlerId, owner, epoch, work: before.wakes };
    const miscounted = before.miscounted === true;
    if (before.leaseOwner === null && !miscounted) {
      await ledger.tidy(crawlerId, () => forgetProcesses(collections, before, now));
      return { ...lease, until: leaseUntil };
    }
    // The former holder's work is recounted, which takes long when many deliveries are pending.
    const until = await whileRenewing(collections, { lease, ttlMs, now, startedAt }, async () => {
      await forgetProcesses(collections, before, now);
      await ledger.runExclusive(crawlerId, async () => {
        const crashed = before.leaseOwner !== owner;
        await takeBack(collections, ledger, { crawlerId, epoch, now, crashed });
        await recount(collections, crawlerId, now, miscounted);
      });
    });
    return until === undefined ? undefined : { ...lease, until };
  }

  async function visit(
    leases: readonly Lease[],
    now: Date,
    ttlMs?: number,
  ): Promise<CrawlerNews[]> {
    if (leases.length === 0) return [];
    const ids = leases.map((each) => each.crawlerId);
    if (ttlMs !== undefined) {
      const leaseUntil = new Date(now.getTime() + ttlMs);
      const owners = [...new Set(leases.map((each) => each.owner))];
      await collections.crawlers.updateMany(
        { _id: { $in: ids }, leaseOwner: { $in: owners }, leaseUntil: { $gt: now } },
        { $set: { leaseUntil, wakeAt: leaseUntil } },
      );
      await takeBackStrays(leases, now);
    }
    const held = new Map(leases.map((each) => [each.crawlerId, each]));
    const found: (Pick<CrawlerDocument, '_id'> &
      Pick<CrawlerDocument, keyof typeof NEWS_FIELDS>)[] = await collections.crawlers
      .find({ _id: { $in: ids } }, { projection: NEWS_FIELDS })
      .toArray();
    return found.map(({ _id: crawlerId, epoch, leaseOwner, leaseUntil, wakes, updatedAt }) => {
      const lease = held.get(crawlerId);
      const isOurs = lease?.epoch === epoch && lease.owner === leaseOwner && leaseUntil > now;
      return { crawlerId, held: isOurs, work: wakes, settings: updatedAt.getTime() };
    });
  }

  /**
   * Takes back what former holders have claimed late: one that slept between its check of the lease
   * and its claim may have claimed something since.
   */
  async function takeBackStrays(leases: readonly Lease[], now: Date): Promise<void> {
    const stray = leases.map(({ crawlerId, epoch }) => ({ crawlerId, epoch: { $lt: epoch } }));
    const projection = { crawlerId: 1 } as const;
    const [jobs, deliveries] = await Promise.all([
      collections.jobs
        .find({ state: 'running', $or: stray }, { projection })
        .limit(STRAYS)
        .toArray(),
      collections.deliveries
        .find({ state: 'sending', $or: stray }, { projection })
        .limit(STRAYS)
        .toArray(),
    ]);
    const withJobs = new Set(jobs.map((each) => each.crawlerId));
    const affected = new Set([...withJobs, ...deliveries.map((each) => each.crawlerId)]);
    for (const { crawlerId, epoch } of leases) {
      if (!affected.has(crawlerId)) continue;
      await ledger.runExclusive(crawlerId, async () => {
        // A former holder does not count such a claim. Only a recount shows whether another process
        // did.
        if (withJobs.has(crawlerId)) await requeue(collections, ledger, { crawlerId, epoch, now });
        else await freeDeliveries(collections, { crawlerId, epoch, now });
        await recount(collections, crawlerId, now);
      });
    }
  }

  async function release(lease: Lease, now: Date): Promise<{ wakeAt: Date | undefined }> {
    const { crawlerId, epoch, owner } = lease;
    return ledger.runExclusive(crawlerId, async () => {
      if (await releaseEmpty(collections, lease)) return { wakeAt: undefined };
      const crawler = await collections.crawlers.findOne(
        { _id: crawlerId, epoch, leaseOwner: owner },
        { projection: { live: 1, purges: 1, miscounted: 1 } },
      );
      if (crawler !== null) {
        const former = { crawlerId, epoch: epoch + 1, now };
        const back = await takeBack(collections, ledger, former);
        const job =
          crawler.live === 0
            ? null
            : await collections.jobs.findOne(
                { crawlerId, queued: true, gen: crawler.purges },
                { projection: { _id: 1 } },
              );
        const ghosts = crawler.live !== 0 && job === null;
        const all = ghosts || crawler.miscounted === true;
        if (all || back > 0) await recount(collections, crawlerId, now, all);
      }
      return { wakeAt: await setWake(collections, crawlerId, lease) };
    });
  }

  return { acquire, visit, release };
}

/**
 * Ends the lease of a crawler of which nothing is queued, running or to be delivered. False if that
 * is not known of it.
 */
async function releaseEmpty(
  collections: Collections,
  { crawlerId, epoch, owner }: Lease,
): Promise<boolean> {
  const { matchedCount } = await collections.crawlers.updateOne(
    {
      _id: crawlerId,
      epoch,
      leaseOwner: owner,
      live: 0,
      deliveriesPending: 0,
      pending: { $size: 0 },
      miscounted: { $ne: true },
    },
    { $set: { leaseOwner: null, leaseUntil: new Date(0), wakeAt: NO_WORK } },
  );
  return matchedCount > 0;
}

/** Takes the lease if nobody else has a live one, and returns the crawler as it was before. */
function takeLease(
  collections: Collections,
  {
    crawlerId,
    owner,
    leaseUntil,
    now,
  }: {
    readonly crawlerId: string;
    readonly owner: string;
    readonly leaseUntil: Date;
    readonly now: Date;
  },
) {
  const absurd = new Date(now.getTime() + MAX_LEASE_MS);
  return collections.crawlers.findOneAndUpdate(
    {
      _id: crawlerId,
      $or: [{ leaseUntil: { $lte: now } }, { leaseOwner: owner }, { leaseUntil: { $gt: absurd } }],
    },
    // A crawler is looked at when its lease ends, because the holder may have crashed.
    { $inc: { epoch: 1 }, $set: { leaseOwner: owner, leaseUntil, wakeAt: leaseUntil } },
    {
      returnDocument: 'before',
      projection: { epoch: 1, leaseOwner: 1, applied: 1, miscounted: 1, wakes: 1 },
    },
  );
}

/** Runs `work` and renews the lease meanwhile. Returns its end; undefined when it was lost. */
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
    void prolong(collections, lease, ttlMs, at).then(
      (kept) => (until = kept ? new Date(at.getTime() + ttlMs) : undefined),
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

/** Extends the lease; false when it was lost. */
async function prolong(
  collections: Collections,
  lease: Lease,
  ttlMs: number,
  now: Date,
): Promise<boolean> {
  const leaseUntil = new Date(now.getTime() + ttlMs);
  const { matchedCount } = await collections.crawlers.updateOne(currentLease(lease, now), {
    $set: { leaseUntil, wakeAt: leaseUntil },
  });
  return matchedCount > 0;
}
