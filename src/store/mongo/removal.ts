import type { Filter } from 'mongodb';
import type { Collections, CrawlerDocument, JobDocument } from './collections.ts';
import { tombstonesFilter } from './tombstones.ts';
import { removeRecords } from './uncommitted.ts';

/** How many documents one statement removes: few enough that none takes long. */
const SWEEP_BATCH = 5_000;
/** A push or claim that was stopped for longer than this gives up, so nothing is written later. */
const AFTERMATH_MS = 60_000;
/** Of one sweep: many more than are crawled at a time. */
const NOTED = 1_000;
/** What is removed within such a time is noted in one entry. */
const SLOT_MS = 15_000;
/** In one entry, the latest. */
const MOST_NOTED = 5_000;
/** Between the crawler and the slot in the id of such an entry; the next character follows. */
const SLOT_MARK = '/';
const AFTER_SLOT_MARK = '0';

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
  now: Date,
  goesOn: () => boolean,
): Promise<{ readonly removed: number; readonly done: boolean }> {
  const crawler = await collections.crawlers.findOne(
    { _id: crawlerId },
    { projection: { purges: 1 } },
  );
  const sweeps =
    crawler === null
      ? removedSweeps(collections, crawlerId)
      : [purgedSweep(collections, crawler, now)];
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
  const over = now.getTime() - AFTERMATH_MS;
  const entries = await collections.removals.find().limit(limit).toArray();
  let found = 0;
  for (const { _id, at, rids } of entries) {
    if (!goesOn()) return found;
    if (at !== undefined && at.getTime() > over) continue;
    if (!_id.includes(SLOT_MARK)) {
      const { removed, done } = await sweepUp(collections, _id, now, goesOn);
      if (removed > 0) found += 1;
      if (!done) continue;
    }
    if (at === undefined) {
      await collections.removals.updateOne({ _id, at: { $exists: false } }, { $set: { at: now } });
      continue;
    }
    if (rids !== undefined) await removeRecords(collections, rids);
    await collections.removals.deleteOne({ _id, at });
  }
  return found;
}

/**
 * Removes the records of jobs that a purge or a deletion has removed, and has `maintain` do so again
 * later: a process that did not know may just then have written the result of a crawl, and have died
 * before it found that the job is gone.
 */
export async function removeRecordsOf(
  collections: Collections,
  crawlerId: string,
  rids: readonly string[],
  now: Date,
): Promise<void> {
  await removeRecords(collections, rids);
  const noted = rids.slice(0, NOTED);
  const slot = Math.floor(now.getTime() / SLOT_MS);
  await collections.removals.updateOne(
    { _id: `${crawlerId}${SLOT_MARK}${slot}` },
    {
      $setOnInsert: { at: new Date((slot + 1) * SLOT_MS) },
      $push: { rids: { $each: noted, $slice: -MOST_NOTED } },
    },
    { upsert: true },
  );
}

/** Keeps what is crawled of these jobs, which are pushed again. */
export async function keepRecordsOf(
  collections: Collections,
  crawlerId: string,
  rids: readonly string[],
): Promise<void> {
  if (rids.length === 0) return;
  const ofCrawler = { _id: { $gte: crawlerId, $lt: `${crawlerId}${AFTER_SLOT_MARK}` } };
  await collections.removals.updateMany(
    { ...ofCrawler, rids: { $exists: true } },
    { $pullAll: { rids: [...rids] } },
  );
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
    const rids = found.map((each) => each._id);
    await after(await removeJobs(collections, rids, filter));
    return found.length;
  };
}

/** Removes those of the jobs that match the filter, and returns the `rid`s that are gone. */
export async function removeJobs(
  collections: Pick<Collections, 'jobs'>,
  rids: readonly string[],
  filter: Filter<JobDocument>,
): Promise<readonly string[]> {
  const _id = { $in: [...rids] };
  const { deletedCount } = await collections.jobs.deleteMany({ _id, ...filter });
  if (deletedCount === rids.length) return rids;
  const left = await collections.jobs.find({ _id }, { projection: { _id: 1 } }).toArray();
  const kept = new Set(left.map((each) => each._id));
  return rids.filter((rid) => !kept.has(rid));
}

function purgedSweep(
  collections: Collections,
  { _id: crawlerId, purges }: Pick<CrawlerDocument, '_id' | 'purges'>,
  now: Date,
): Sweep {
  let noted = false;
  return jobSweep(collections, { crawlerId, queued: true, gen: { $lt: purges } }, async (rids) => {
    // What is crawled comes first, as in the queue; noting more would push it out.
    if (noted) return removeRecords(collections, rids);
    noted = true;
    await removeRecordsOf(collections, crawlerId, rids, now);
  });
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
