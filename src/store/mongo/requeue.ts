import type { Collections } from './collections.ts';
import { exists } from './find-ids.ts';
import { orderExpression } from './job-document.ts';
import type { Lanes } from './lanes.ts';

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
 * Ends the right of former holders to write, and makes their work due again: what they write later
 * finds the jobs changed. A running job that was purged since its start ends.
 */
export async function takeBack(
  collections: Collections,
  lanes: Lanes,
  former: FormerWork,
): Promise<void> {
  const { counts, jobs, deliveries } = collections;
  const { crawlerId, epochs: epoch } = former;
  const ofFormer = { crawlerId, epoch } as const;
  const parts = await counts.find(ofFormer, { projection: { session: 1 } }).toArray();
  if (parts.length > 0) {
    // One that died in a transaction would hold its jobs for a minute.
    await lanes.abort(parts);
    await lanes.unblocked(crawlerId, () => counts.updateMany(ofFormer, { $unset: { epoch: 1 } }));
  }
  const [hasJob, hasDelivery] = await Promise.all([
    exists(jobs, { ...ofFormer, state: 'running' }),
    exists(deliveries, { ...ofFormer, state: 'sending' }),
  ]);
  if (hasJob || hasDelivery) await requeue(collections, lanes, former);
}

async function requeue(
  { jobs, deliveries }: Collections,
  lanes: Lanes,
  { crawlerId, epochs: epoch, now, crashed = false }: FormerWork,
): Promise<void> {
  await lanes.change(crawlerId, now, async (session, changes, purges) => {
    const running = await jobs
      .find({ crawlerId, epoch, state: 'running' } as object, {
        projection: { retry: 1, gen: 1, size: 1 },
        session,
      })
      .toArray();
    const purged = running.filter(({ gen }) => gen < purges).map(({ _id }) => _id);
    const back = running.filter(({ gen }) => gen >= purges).map(({ _id }) => _id);
    for (const { gen, retry, size } of running) {
      if (gen < purges) changes.remove({ state: 'running', size }, 'purged');
      else changes.move(size, 'running', retry > 0 ? 'retrying' : 'waiting');
    }
    if (purged.length > 0) await jobs.deleteMany({ _id: { $in: purged } }, { session });
    if (back.length > 0) {
      await jobs.updateMany(
        { _id: { $in: back } },
        [
          {
            $set: {
              state: { $cond: [{ $gt: ['$retry', 0] }, 'retrying', 'waiting'] },
              queued: true,
              due: { $min: ['$due', now] },
              order: orderExpression({ $min: ['$due', now] }),
              ...(crashed ? { crashes: { $add: [{ $ifNull: ['$crashes', 0] }, 1] } } : {}),
            },
          },
          { $unset: 'epoch' },
        ],
        { session },
      );
    }
    await deliveries.updateMany(
      { crawlerId, epoch, state: 'sending' } as object,
      [{ $set: { state: 'due', due: { $min: ['$due', now] } } }, { $unset: 'epoch' }],
      { session },
    );
  });
}
