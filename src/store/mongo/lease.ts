import type { Filter } from 'mongodb';
import type { Lease } from '../store.ts';
import type { Collections, CrawlerDocument, JobDocument } from './collections.ts';

/** The wake of a crawler that has nothing to do. */
export const NEVER = new Date('9999-12-31T00:00:00Z');

/** Matches the crawler while the lease is its current one and has not lapsed. */
export function currentLease(lease: Lease, now: Date): Filter<CrawlerDocument> {
  return {
    _id: lease.crawlerId,
    epoch: lease.epoch,
    leaseOwner: lease.owner,
    leaseUntil: { $gt: now },
  };
}

/**
 * The wake once there is work at `at`. Under a lease it stays, for its holder sees the work, or lets go and sets it anew; what is
 * paused has nothing to do until the pause is lifted, which sets it too.
 */
export function wakeExpression(at: Date, what: 'job' | 'delivery'): object {
  const asleep = [
    { $ne: ['$leaseOwner', null] },
    '$pausedByMonitor',
    ...(what === 'job' ? ['$pausedByUser'] : []),
  ];
  return { $cond: [{ $or: asleep }, '$wakeAt', { $min: ['$wakeAt', at] }] };
}

/** Notes that there is work now. */
export async function wakeNow(
  c: Collections,
  crawlerId: string,
  now: Date,
  what: 'job' | 'delivery',
): Promise<void> {
  await c.crawlers.updateOne({ _id: crawlerId }, [
    { $set: { wakes: { $add: ['$wakes', 1] }, wakeAt: wakeExpression(now, what) } },
  ]);
}

/** When the crawler has something to do next; see `QueueStore.nextWake`. */
export async function nextWake(
  c: Collections,
  crawler: Pick<CrawlerDocument, '_id' | 'pausedByUser' | 'pausedByMonitor'>,
): Promise<Date | undefined> {
  if (crawler.pausedByMonitor) return undefined;
  const earliest = { sort: { due: 1, _id: 1 }, projection: { due: 1 } } as const;
  const [delivery, job] = await Promise.all([
    c.deliveries.findOne({ crawlerId: crawler._id, state: 'due' }, earliest),
    crawler.pausedByUser
      ? null
      : c.jobs.findOne({ crawlerId: crawler._id, queued: true }, earliest),
  ]);
  const due = [delivery, job].flatMap((each) => (each === null ? [] : each.due.getTime()));
  return due.length === 0 ? undefined : new Date(Math.min(...due));
}

const wakeFields = {
  pausedByUser: 1,
  pausedByMonitor: 1,
  wakes: 1,
  leaseOwner: 1,
  epoch: 1,
} as const;

/**
 * Sets the wake of a crawler that nobody holds to its next work, and misses none that comes meanwhile. With `lease`, lets that
 * go in the same write; nothing happens when it is no longer the current one.
 */
export async function setWake(
  c: Collections,
  crawlerId: string,
  lease?: Lease,
): Promise<Date | undefined> {
  for (;;) {
    const crawler = await c.crawlers.findOne({ _id: crawlerId }, { projection: wakeFields });
    if (crawler === null) return undefined;
    const wakeAt = await nextWake(c, crawler);
    const { wakes, epoch, leaseOwner } = crawler;
    const holds = lease === undefined ? null : lease.owner;
    if (leaseOwner !== holds || (lease !== undefined && lease.epoch !== epoch)) return wakeAt;
    const { matchedCount } = await c.crawlers.updateOne(
      { _id: crawlerId, wakes, epoch, leaseOwner },
      { $set: { leaseOwner: null, leaseUntil: new Date(0), wakeAt: wakeAt ?? NEVER } },
    );
    if (matchedCount > 0) return wakeAt;
  }
}

/**
 * Makes due again what epochs before `epoch` were working on; `mark` names this change. With `crashed`, the process that did counts as
 * crashed.
 */
export async function requeue(
  c: Collections,
  crawlerId: string,
  epoch: number,
  now: Date,
  mark: string,
  crashed = false,
): Promise<void> {
  const older = { crawlerId, state: 'running', epoch: { $lt: epoch } } as const;
  const running = await c.jobs.find(older, { projection: { _id: 1 } }).toArray();
  if (running.length > 0) {
    const rids = running.map((each) => each._id);
    await c.jobs.updateMany({ _id: { $in: rids }, ...older }, [
      {
        $set: {
          state: { $cond: [{ $gt: ['$retry', 0] }, 'retrying', 'waiting'] },
          queued: true,
          due: { $min: ['$due', now] },
          mark,
          ...(crashed ? { crashes: { $add: [{ $ifNull: ['$crashes', 0] }, 1] } } : {}),
        },
      },
      { $unset: 'epoch' },
    ]);
    const back = await c.jobs
      .find({ _id: { $in: rids }, mark }, { projection: { retry: 1, accountId: 1 } })
      .toArray();
    const [first] = back;
    if (first !== undefined) {
      const retrying = back.filter((each) => each.retry > 0).length;
      const backRids = back.map((each) => each._id);
      await Promise.all([
        c.crawlers.updateOne({ _id: crawlerId }, { $inc: { running: -back.length, retrying } }),
        c.accounts.updateOne({ _id: first.accountId }, { $inc: { queued: back.length } }),
        // Pages of crawls that did not come to their end.
        c.results.deleteMany({ _id: { $in: backRids } }),
        c.deliveries.deleteMany({ _id: { $in: backRids } }),
      ]);
    }
  }
  await c.deliveries.updateMany({ crawlerId, state: 'sending', epoch: { $lt: epoch } }, [
    { $set: { state: 'due', due: { $min: ['$due', now] } } },
    { $unset: 'epoch' },
  ]);
}

/**
 * Counts what is being crawled, what waits for a retry and what is to be delivered, as after a crash between a write and its
 * counts. With `all` the rest of the queue too. Ends that are yet to be applied count as what they were.
 */
export async function recount(c: Collections, crawlerId: string, all = false): Promise<void> {
  const crawler = await c.crawlers.findOne({ _id: crawlerId }, { projection: { applied: 1 } });
  if (crawler === null) return;
  const [running, retrying, queued, deliveriesPending, ended] = await Promise.all([
    c.jobs.countDocuments({ crawlerId, state: 'running' }),
    c.jobs.countDocuments({ crawlerId, state: 'retrying' }),
    all ? c.jobs.countDocuments({ crawlerId, queued: true }) : 0,
    c.deliveries.countDocuments({ crawlerId, state: { $in: ['due', 'sending'] } }),
    c.jobs.find({ state: 'ended', endedAt: { $gte: new Date(0) }, crawlerId }).toArray(),
  ]);
  const isUnapplied = ({ by = '', seq = 0 }: JobDocument) => seq > (crawler.applied[by] ?? 0);
  const unapplied = ended.filter(isUnapplied);
  const were = (state: string): number => unapplied.filter((each) => each.from === state).length;
  // Applying them will count their deliveries.
  const delivering = ended.filter((each) => each.delivers !== undefined && isUnapplied(each));
  const staged = await c.deliveries.countDocuments({
    _id: { $in: delivering.map((each) => each._id) },
    state: 'staged',
  });
  await c.crawlers.updateOne(
    { _id: crawlerId },
    {
      $set: {
        running: running + were('running'),
        retrying: retrying + were('retrying'),
        deliveriesPending: deliveriesPending + staged - delivering.length,
        ...(all ? { live: queued + running + unapplied.length } : {}),
      },
    },
  );
}

const MANY_PROCESSES = 50;
const FORGOTTEN_MS = 7 * 86_400_000;

/** Takes processes of long ago out of `applied`, unless they left something that is yet to be applied. */
export async function forgetProcesses(
  c: Collections,
  crawler: Pick<CrawlerDocument, '_id' | 'applied'>,
  now: Date,
): Promise<void> {
  const all = Object.keys(crawler.applied);
  if (all.length < MANY_PROCESSES) return;
  // Their names begin with the second they were started in.
  const old = all.filter(
    (by) => parseInt(by.slice(0, 8), 16) * 1_000 < now.getTime() - FORGOTTEN_MS,
  );
  const left = await c.jobs
    .find(
      { state: 'ended', endedAt: { $gte: new Date(0) }, crawlerId: crawler._id, by: { $in: old } },
      { projection: { by: 1 } },
    )
    .toArray();
  const gone = old.filter((by) => !left.some((each) => each.by === by));
  if (gone.length === 0) return;
  const fields = Object.fromEntries(gone.map((by) => [`applied.${by}`, '' as const]));
  await c.crawlers.updateOne({ _id: crawler._id }, { $unset: fields });
}
