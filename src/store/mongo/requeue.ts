import type { Filter } from 'mongodb';
import type { Collections, DeliveryDocument } from './collections.ts';
import { BATCH_FIELDS, type Ledger } from './ledger.ts';
import { removeRecordsOf } from './removal.ts';
import { batchFields, tombstoneUpdate } from './tombstones.ts';
import { removeUnfinished } from './uncommitted.ts';
import { isUncountedStart, removeVoidStarts } from './void-starts.ts';

/** The work of former holders of a lease. */
export interface FormerWork {
  readonly crawlerId: string;
  /** Matches the epochs of their work. */
  readonly epochs: object;
  readonly now: Date;
  /** Whether the process that did the work counts as crashed. */
  readonly crashed?: boolean;
}

/**
 * Makes the work of former holders due again, and returns the number of jobs. A running job that was
 * purged meanwhile ends.
 */
export async function takeBack(
  collections: Collections,
  ledger: Ledger,
  former: FormerWork,
): Promise<number> {
  const ended = await endPurged(collections, ledger, former);
  return ended + (await requeue(collections, ledger, former));
}

async function endPurged(
  collections: Collections,
  ledger: Ledger,
  { crawlerId, epochs: epoch, now }: FormerWork,
): Promise<number> {
  const crawler = await collections.crawlers.findOne(
    { _id: crawlerId },
    { projection: BATCH_FIELDS },
  );
  if (crawler === null || crawler.purges === 0) return 0;
  const older = { crawlerId, state: 'running', epoch } as const;
  const running = await collections.jobs
    .find({ ...older, gen: { $lt: crawler.purges } }, { projection: { gen: 1, mark: 1 } })
    .toArray();
  await removeVoidStarts(collections, crawler, running, now);
  const rids = running.flatMap((each) => (isUncountedStart(crawler, each) ? [] : each._id));
  if (rids.length === 0) return 0;
  const batch = ledger.newBatch();
  const { modifiedCount } = await collections.jobs.updateMany(
    { ...older, _id: { $in: rids } },
    tombstoneUpdate('purged', now, batch),
  );
  if (modifiedCount === 0) return 0;
  const named = batchFields(batch);
  const gone = await collections.jobs
    .find(
      { state: 'ended', endedAt: now, crawlerId, ...named },
      { projection: { gen: 1, size: 1 } },
    )
    .toArray();
  const goneRids = gone.map((each) => each._id);
  await removeRecordsOf(collections, crawlerId, goneRids, now);
  const tombstone = { from: 'running', end: 'purged', endedAt: now, ...named } as const;
  const ended = gone.map(({ _id: rid, gen, size = 0 }) => {
    return { rid, gen, tombstone: { ...tombstone, size } };
  });
  await ledger.settle({ crawlerId, ...batch, ended }, now, crawler);
  return ended.length;
}

/**
 * Makes the jobs and deliveries of former holders due again, and returns the number of jobs. The
 * caller updates the counters.
 */
export async function requeue(
  collections: Collections,
  ledger: Ledger,
  former: FormerWork,
): Promise<number> {
  const { crawlerId, epochs: epoch, now, crashed = false } = former;
  const older = { crawlerId, state: 'running', epoch } as const;
  const running = await collections.jobs.find(older, { projection: { _id: 1 } }).toArray();
  let requeued = 0;
  if (running.length > 0) {
    const writeId = ledger.newWriteId();
    const rids = running.map((each) => each._id);
    await collections.jobs.updateMany({ _id: { $in: rids }, ...older }, [
      {
        $set: {
          state: { $cond: [{ $gt: ['$retry', 0] }, 'retrying', 'waiting'] },
          queued: true,
          due: { $min: ['$due', now] },
          mark: writeId,
          ...(crashed ? { crashes: { $add: [{ $ifNull: ['$crashes', 0] }, 1] } } : {}),
        },
      },
      { $unset: 'epoch' },
    ]);
    const back = await collections.jobs
      .find({ _id: { $in: rids }, mark: writeId }, { projection: { attempt: 1 } })
      .toArray();
    requeued = back.length;
    await removeUnfinished(collections, back);
  }
  await freeDeliveries(collections, ledger, former);
  return requeued;
}

/** Makes the deliveries that former holders were sending due again. */
export async function freeDeliveries(
  collections: Collections,
  ledger: Ledger,
  { crawlerId, epochs: epoch, now }: FormerWork,
): Promise<void> {
  const older = { crawlerId, state: 'sending', epoch } as const;
  const left = await collections.deliveries.find(older, { projection: { _id: 1 } }).toArray();
  if (left.length === 0) return;
  const rids = left.map((each) => each._id);
  const alive = await collections.jobs
    .find({ _id: { $in: rids }, state: { $ne: 'ended' } }, { projection: { _id: 1 } })
    .toArray();
  const early = alive.map((each) => each._id);
  await removeVoid(collections, ledger, early, older);
  const others = rids.filter((rid) => !early.includes(rid));
  if (others.length === 0) return;
  await collections.deliveries.updateMany({ _id: { $in: others }, ...older }, [
    { $set: { state: 'due', due: { $min: ['$due', now] } } },
    { $unset: 'epoch' },
  ]);
}

/**
 * Removes deliveries of jobs that still wait, whose former holders have written neither their start
 * nor their end. One that goes on late may still try to: the attempt that it names counts as taken
 * first, so that its end is refused. A job that runs is left to its holder, whose end brings the same
 * delivery.
 */
async function removeVoid(
  { jobs, deliveries }: Collections,
  ledger: Ledger,
  rids: readonly string[],
  older: Filter<DeliveryDocument>,
): Promise<void> {
  if (rids.length === 0) return;
  const mark = ledger.newWriteId();
  const waiting = { _id: { $in: [...rids] }, queued: true } as const;
  await jobs.updateMany(waiting, { $set: { mark }, $inc: { attempt: 1 } });
  const fenced = await jobs
    .find({ _id: { $in: [...rids] }, mark }, { projection: { _id: 1 } })
    .toArray();
  if (fenced.length === 0) return;
  await deliveries.deleteMany({ ...older, _id: { $in: fenced.map((each) => each._id) } });
}
