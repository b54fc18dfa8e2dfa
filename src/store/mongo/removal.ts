import type { ClientSession, Filter } from 'mongodb';
import type { Collections, CrawlerDocument, JobDocument } from './collections.ts';
import { tombstonesFilter } from './tombstones.ts';
import type { Transactions } from './transactions.ts';
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
  transactions: Transactions,
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
      ? removedSweeps(collections, transactions, crawlerId)
      : [purgedSweep(collections, transactions, crawler, now)];
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
  transactions: Transactions,
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
      const { removed, done } = await sweepUp(collections, transactions, _id, now, goesOn);
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
  session?: ClientSession,
): Promise<void> {
  await removeRecords(collections, rids, session);
  const noted = rids.slice(0, NOTED);
  const slot = Math.floor(now.getTime() / SLOT_MS);
  await collections.removals.updateOne(
    { _id: `${crawlerId}${SLOT_MARK}${slot}` },
    {
      $setOnInsert: { at: new Date((slot + 1) * SLOT_MS) },
      $push: { rids: { $each: noted, $slice: -MOST_NOTED } },
    },
    { upsert: true, ...(session === undefined ? {} : { session }) },
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

/** Removes jobs, and then does `after` for them, in one transaction for each step. */
function jobSweep(
  collections: Collections,
  transactions: Transactions,
  filter: Filter<JobDocument>,
  after: (rids: readonly string[], session: ClientSession) => Promise<void> = async () => undefined,
): Sweep {
  return () =>
    transactions.run(async (session) => {
      const found = await collections.jobs
        .find(filter, { projection: { _id: 1 }, session })
        .limit(SWEEP_BATCH)
        .toArray();
      if (found.length === 0) return 0;
      const rids = found.map((each) => each._id);
      await collections.jobs.deleteMany({ _id: { $in: rids } }, { session });
      await after(rids, session);
      return rids.length;
    });
}

function purgedSweep(
  collections: Collections,
  transactions: Transactions,
  { _id: crawlerId, purges }: Pick<CrawlerDocument, '_id' | 'purges'>,
  now: Date,
): Sweep {
  let noted = false;
  const older = { crawlerId, queued: true, gen: { $lt: purges } } as const;
  return jobSweep(collections, transactions, older, async (rids, session) => {
    // What is crawled comes first, as in the queue; noting more would push it out.
    if (noted) return removeRecords(collections, rids, session);
    await removeRecordsOf(collections, crawlerId, rids, now, session);
    noted = true;
  });
}

function removedSweeps(
  collections: Collections,
  transactions: Transactions,
  crawlerId: string,
): Sweep[] {
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
    jobSweep(collections, transactions, { crawlerId, queued: true }),
    jobSweep(collections, transactions, { crawlerId, state: 'running' }),
    jobSweep(collections, transactions, tombstonesFilter(crawlerId)),
    sweepIn('deliveries'),
    sweepIn('history'),
    sweepIn('pushRequests'),
  ];
}
