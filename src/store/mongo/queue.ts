import type { QueuedJob } from '../../domain/job.ts';
import { toDay } from '../../domain/stats.ts';
import type { ListedJob, QueuePlace, QueueStore } from '../store.ts';
import { createClaim } from './claim.ts';
import type { Collections, Tombstone } from './collections.ts';
import { createFinish } from './finish.ts';
import { toJob } from './job-document.ts';
import { MAX_LEASE_MS, NO_WORK, setWake } from './lease.ts';
import { createLeases } from './leases.ts';
import { countInAccount, type Ledger } from './ledger.ts';
import { createPush } from './push.ts';
import { noteRemoval, sweepUp } from './removal.ts';
import { batchFields, tombstoneUpdate } from './tombstones.ts';

/** How long a purge sweeps up before it returns; `maintain` does the rest. */
const SWEEP_MS = 1_000;

/** The queue: pushes, leases, claims and the ends of jobs. */
export function createQueue(collections: Collections, ledger: Ledger): QueueStore {
  const readGenerations = (crawlerId: string) =>
    collections.crawlers.findOne({ _id: crawlerId }, { projection: { purges: 1, recounts: 1 } });

  async function overdue(now: Date, limit: number): Promise<QueuedJob[]> {
    const skipped: string[] = [];
    for (;;) {
      const found = await collections.jobs
        .find({
          expires: true,
          queueDeadline: { $lte: now },
          ...(skipped.length > 0 ? { push: { $nin: skipped } } : {}),
        })
        .sort({ queueDeadline: 1 })
        .limit(limit)
        .toArray();
      if (found.length === 0) return [];
      const ids = [...new Set(found.map((each) => each.crawlerId))];
      const crawlers = await collections.crawlers
        .find({ _id: { $in: ids } }, { projection: { pending: 1, purges: 1 } })
        .toArray();
      const known = new Map(crawlers.map((each) => [each._id, each]));
      const isGone = ({ crawlerId, gen }: (typeof found)[number]): boolean =>
        gen !== known.get(crawlerId)?.purges;
      // Leftovers of a removal or a purge must not delay the jobs behind them.
      const gone = found.filter(isGone).map((each) => each._id);
      if (gone.length > 0) await collections.jobs.deleteMany({ _id: { $in: gone }, queued: true });
      // Jobs of a push that is not counted yet are left alone.
      const pending = new Set(crawlers.flatMap((each) => each.pending.map(({ id }) => id)));
      const uncounted = found.filter((each) => pending.has(each.push)).map((each) => each.push);
      skipped.push(...new Set(uncounted));
      const due = found.filter((each) => !isGone(each) && !pending.has(each.push));
      if (due.length > 0 || found.length < limit) return due.map(toJob);
    }
  }

  async function crawlersWithWorkDue(now: Date, limit: number): Promise<string[]> {
    const absurd = { $gt: new Date(now.getTime() + MAX_LEASE_MS), $lt: NO_WORK };
    const [due, stuck] = await Promise.all(
      [{ wakeAt: { $lte: now } }, { wakeAt: absurd, leaseOwner: { $ne: null } }].map((filter) =>
        collections.crawlers
          .find(filter, { projection: { _id: 1 } })
          .sort({ wakeAt: 1 })
          .limit(limit)
          .toArray(),
      ),
    );
    return [...(due ?? []), ...(stuck ?? [])].slice(0, limit).map((each) => each._id);
  }

  async function find(crawlerId: string, rid: string): Promise<QueuedJob | undefined> {
    const [crawler, document] = await Promise.all([
      readGenerations(crawlerId),
      collections.jobs.findOne({ _id: rid, crawlerId, state: { $ne: 'ended' } }),
    ]);
    if (crawler === null || document === null) return undefined;
    const purged = document.state !== 'running' && document.gen < crawler.purges;
    return purged ? undefined : toJob(document);
  }

  async function listQueued(
    crawlerId: string,
    limit: number,
    after?: QueuePlace,
  ): Promise<ListedJob[]> {
    const crawler = await readGenerations(crawlerId);
    if (crawler === null) return [];
    const behind =
      after === undefined
        ? {}
        : {
            due: { $gte: after.dueAt },
            $or: [{ due: { $gt: after.dueAt } }, { due: after.dueAt, _id: { $gt: after.rid } }],
          };
    const found = await collections.jobs
      .find(
        { crawlerId, queued: true, gen: crawler.purges, ...behind },
        { projection: { url: 1, retry: 1, createdAt: 1, due: 1 } },
      )
      .sort({ due: 1, _id: 1 })
      .limit(limit)
      .toArray();
    return found.map(({ _id, url, retry, createdAt, due }) => {
      return { rid: _id, url, retry, createdAt, dueAt: due };
    });
  }

  function deleteJob(crawlerId: string, rid: string, now: Date): Promise<boolean> {
    return ledger.runExclusive(crawlerId, async () => {
      const crawler = await readGenerations(crawlerId);
      if (crawler === null) return false;
      const batch = ledger.newBatch();
      const before = await collections.jobs.findOneAndUpdate(
        {
          _id: rid,
          crawlerId,
          $or: [{ state: 'running' }, { queued: true, gen: crawler.purges }],
        },
        tombstoneUpdate('deleted', now, batch),
        { returnDocument: 'before', projection: { state: 1, gen: 1, size: 1 } },
      );
      if (before === null) return false;
      const from = before.state as QueuedJob['state'];
      const { size = 0 } = before;
      const named = batchFields(batch);
      const tombstone: Tombstone = { from, end: 'deleted', size, endedAt: now, ...named };
      const ended = [{ rid, gen: before.gen, tombstone }];
      return ledger.settle({ crawlerId, ...batch, ended }, now, crawler);
    });
  }

  /**
   * One update of the crawler, whatever the length of its queue: jobs that were pushed before it
   * are gone, and their documents are swept up later.
   */
  async function purge(crawlerId: string, now: Date): Promise<number> {
    const held = { $max: [0, { $subtract: ['$live', '$running'] }] };
    const heldBytes = {
      $subtract: [{ $ifNull: ['$liveBytes', 0] }, { $ifNull: ['$runningBytes', 0] }],
    };
    const day = toDay(now);
    await noteRemoval(collections, crawlerId);
    const before = await collections.crawlers.findOneAndUpdate(
      { _id: crawlerId },
      [
        { $set: { granted: held, grantedBytes: heldBytes } },
        {
          $set: {
            live: { $subtract: ['$live', '$granted'] },
            liveBytes: { $ifNull: ['$runningBytes', 0] },
            retrying: 0,
            purged: { $add: ['$purged', '$granted'] },
            [`days.${day}.purged`]: {
              $add: [{ $ifNull: [`$days.${day}.purged`, 0] }, '$granted'],
            },
            firstDay: { $min: ['$firstDay', day] },
            purges: { $add: ['$purges', 1] },
            moves: { $add: ['$moves', 1] },
            wakes: { $add: ['$wakes', 1] },
          },
        },
      ],
      { returnDocument: 'after', projection: { granted: 1, grantedBytes: 1, accountId: 1 } },
    );
    if (before === null) return 0;
    const purged = before.granted ?? 0;
    const queuedBytes = -(before.grantedBytes ?? 0);
    await countInAccount(collections, before.accountId, { queued: -purged, queuedBytes });
    await ledger.tidy(crawlerId, () => setWake(collections, crawlerId));
    const until = performance.now() + SWEEP_MS;
    await ledger.tidy(crawlerId, () =>
      sweepUp(collections, crawlerId, () => performance.now() < until),
    );
    return purged;
  }

  return {
    push: createPush(collections, ledger),
    ...createLeases(collections, ledger),
    claim: createClaim(collections, ledger),
    finish: createFinish(collections, ledger),
    overdue,
    crawlersWithWorkDue,
    find,
    listQueued,
    deleteJob,
    purge,
  };
}
