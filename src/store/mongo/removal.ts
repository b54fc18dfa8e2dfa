import type { Filter } from 'mongodb';
import type { Collections, CrawlerDocument, JobDocument } from './collections.ts';
import { tombstonesFilter } from './tombstones.ts';
import { removeRecords } from './uncommitted.ts';

/** How many documents one statement removes: few enough that none takes long. */
const SWEEP_BATCH = 5_000;
/** A push or claim that was stopped for longer than this gives up, so nothing is written later. */
const AFTERMATH_MS = 60_000;

/**
 * Notes that a crawler or its queue is about to be removed, so that `maintain` sweeps up leftovers.
 */
export async function noteRemoval(collections: Collections, crawlerId: string): Promise<void> {
  await collections.removals.updateOne(
    { _id: crawlerId },
    { $unset: { at: '' } },
    { upsert: true },
  );
}

/**
 * Sweeps up after one crawler until nothing is left or `goesOn` returns false. `done` says whether
 * nothing is left.
 */
export async function sweepUp(
  collections: Collections,
  crawlerId: string,
  goesOn: () => boolean,
): Promise<{ readonly removed: number; readonly done: boolean }> {
  const crawler = await collections.crawlers.findOne(
    { _id: crawlerId },
    { projection: { purges: 1 } },
  );
  const sweeps =
    crawler === null ? removedSweeps(collections, crawlerId) : [purgedSweep(collections, crawler)];
  let removed = 0;
  for (const sweep of sweeps) {
    for (;;) {
      const count = await sweep();
      removed += count;
      if (count < SWEEP_BATCH) break;
      if (!goesOn()) return { removed, done: false };
    }
  }
  return { removed, done: true };
}

/** Continues every removal and purge, and returns the number that had leftovers. */
export async function sweepAll(
  collections: Collections,
  now: Date,
  goesOn: () => boolean,
  limit: number,
): Promise<number> {
  const entries = await collections.removals.find().limit(limit).toArray();
  let found = 0;
  for (const { _id, at } of entries) {
    if (!goesOn()) return found;
    const over = at !== undefined && now.getTime() - at.getTime() >= AFTERMATH_MS;
    if (at !== undefined && !over) continue;
    const { removed, done } = await sweepUp(collections, _id, goesOn);
    if (removed > 0) found += 1;
    if (!done) continue;
    if (over) await collections.removals.deleteOne({ _id, at });
    else
      await collections.removals.updateOne({ _id, at: { $exists: false } }, { $set: { at: now } });
  }
  return found;
}

type Sweep = () => Promise<number>;

/** Removes jobs, and then does `after` for those that had not ended meanwhile. */
function jobSweep(
  collections: Collections,
  filter: Filter<JobDocument>,
  after: (rids: readonly string[]) => Promise<void> = async () => undefined,
): Sweep {
  return async () => {
    const found = await collections.jobs
      .find(filter, { projection: { _id: 1 } })
      .limit(SWEEP_BATCH)
      .toArray();
    if (found.length === 0) return 0;
    const _id = { $in: found.map((each) => each._id) };
    const { deletedCount } = await collections.jobs.deleteMany({ _id, ...filter });
    const ended =
      deletedCount === found.length
        ? []
        : await collections.jobs.find({ _id }, { projection: { _id: 1 } }).toArray();
    const kept = new Set(ended.map((each) => each._id));
    await after(found.flatMap((each) => (kept.has(each._id) ? [] : each._id)));
    return found.length;
  };
}

function purgedSweep(
  collections: Collections,
  { _id: crawlerId, purges }: Pick<CrawlerDocument, '_id' | 'purges'>,
): Sweep {
  return jobSweep(collections, { crawlerId, queued: true, gen: { $lt: purges } }, (rids) =>
    removeRecords(collections, rids),
  );
}

function removedSweeps(collections: Collections, crawlerId: string): Sweep[] {
  const sweepIn = (collection: 'deliveries' | 'history' | 'pushRequests'): Sweep => {
    const documents = collections[collection] as Collections['deliveries'];
    return async () => {
      const found = await documents
        .find({ crawlerId }, { projection: { _id: 1 } })
        .limit(SWEEP_BATCH)
        .toArray();
      if (found.length === 0) return 0;
      await documents.deleteMany({ _id: { $in: found.map((each) => each._id) }, crawlerId });
      return found.length;
    };
  };
  return [
    jobSweep(collections, { crawlerId, queued: true }),
    jobSweep(collections, { crawlerId, state: 'running' }),
    jobSweep(collections, tombstonesFilter(crawlerId)),
    sweepIn('deliveries'),
    sweepIn('history'),
    sweepIn('pushRequests'),
  ];
}
