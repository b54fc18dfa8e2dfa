import type { Collections } from './collections.ts';

/** The work to be made due again. */
export interface Requeue {
  readonly crawlerId: string;
  /** The work of epochs before this one. */
  readonly epoch: number;
  readonly now: Date;
  readonly writeId: string;
  /** Whether the process that did the work counts as crashed. */
  readonly crashed?: boolean;
}

/**
 * Makes the jobs and deliveries of older epochs due again, and returns the number of jobs. The
 * caller updates the counters.
 */
export async function requeue(collections: Collections, what: Requeue): Promise<number> {
  const { crawlerId, epoch, now, writeId, crashed = false } = what;
  const older = { crawlerId, state: 'running', epoch: { $lt: epoch } } as const;
  const running = await collections.jobs.find(older, { projection: { _id: 1 } }).toArray();
  let moved = 0;
  if (running.length > 0) {
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
    moved = back.length;
    // Pages of crawls that were not finished. A record of a later attempt is kept.
    const early = back.map(({ _id, attempt }) => ({
      deleteOne: { filter: { _id, claim: { $lte: attempt } } },
    }));
    if (early.length > 0) {
      await Promise.all([
        collections.results.bulkWrite(early, { ordered: false }),
        collections.deliveries.bulkWrite(early, { ordered: false }),
      ]);
    }
  }
  await freeDeliveries(collections, what);
  return moved;
}

/** Makes due again the deliveries that older epochs were sending. */
export async function freeDeliveries(
  collections: Collections,
  { crawlerId, epoch, now }: Pick<Requeue, 'crawlerId' | 'epoch' | 'now'>,
): Promise<void> {
  const older = { crawlerId, state: 'sending', epoch: { $lt: epoch } } as const;
  const left = await collections.deliveries.find(older, { projection: { _id: 1 } }).toArray();
  if (left.length === 0) return;
  const rids = left.map((each) => each._id);
  const alive = await collections.jobs
    .find({ _id: { $in: rids }, state: { $ne: 'ended' } }, { projection: { _id: 1 } })
    .toArray();
  // The ends of these jobs were never written, so their deliveries are void.
  const early = alive.map((each) => each._id);
  if (early.length > 0) await collections.deliveries.deleteMany({ _id: { $in: early }, ...older });
  const others = rids.filter((rid) => !early.includes(rid));
  if (others.length === 0) return;
  await collections.deliveries.updateMany({ _id: { $in: others }, ...older }, [
    { $set: { state: 'due', due: { $min: ['$due', now] } } },
    { $unset: 'epoch' },
  ]);
}
