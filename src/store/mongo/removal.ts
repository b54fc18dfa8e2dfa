import type { Filter } from 'mongodb';
import type { Collections, CrawlerDocument, JobDocument } from './collections.ts';

/** How much one statement removes: few enough that none takes long. */
export const SWEEP_BATCH = 5_000;
/** What comes later than this comes from nobody: a push or claim that was stopped for so long gives up. */
const AFTERMATH_MS = 60_000;

/** Notes, before the fact, that a crawler or its queue is about to be removed, so that `maintain` sweeps up what is left. */
export async function noteRemoval(c: Collections, crawlerId: string): Promise<void> {
  await c.removals.updateOne({ _id: crawlerId }, { $unset: { at: '' } }, { upsert: true });
}

/** Sweeps up after one crawler until there is nothing left, or `goesOn` says stop; whether it came to the end. */
export async function sweepUp(
  c: Collections,
  crawlerId: string,
  goesOn: () => boolean,
): Promise<{ readonly removed: number; readonly done: boolean }> {
  const crawler = await c.crawlers.findOne({ _id: crawlerId }, { projection: { purges: 1 } });
  const sweeps = crawler === null ? belongingsOf(c, crawlerId) : [purgedOf(c, crawler)];
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

/** Continues every removal and purge; how many it found something left of. */
export async function sweepAll(
  c: Collections,
  now: Date,
  goesOn: () => boolean,
  limit: number,
): Promise<number> {
  const entries = await c.removals.find().limit(limit).toArray();
  let found = 0;
  for (const { _id, at } of entries) {
    if (!goesOn()) return found;
    const over = at !== undefined && now.getTime() - at.getTime() >= AFTERMATH_MS;
    if (at !== undefined && !over) continue;
    const { removed, done } = await sweepUp(c, _id, goesOn);
    if (removed > 0) found += 1;
    if (!done) continue;
    if (over) await c.removals.deleteOne({ _id, at });
    else await c.removals.updateOne({ _id, at: { $exists: false } }, { $set: { at: now } });
  }
  return found;
}

type Sweep = () => Promise<number>;

function jobSweep(c: Collections, filter: Filter<JobDocument>): Sweep {
  return async () => {
    const found = await c.jobs
      .find(filter, { projection: { _id: 1 } })
      .limit(SWEEP_BATCH)
      .toArray();
    if (found.length === 0) return 0;
    await c.jobs.deleteMany({ _id: { $in: found.map((each) => each._id) }, ...filter });
    return found.length;
  };
}

function purgedOf(
  c: Collections,
  { _id: crawlerId, purges }: Pick<CrawlerDocument, '_id' | 'purges'>,
): Sweep {
  return jobSweep(c, { crawlerId, queued: true, gen: { $lt: purges } });
}

function belongingsOf(c: Collections, crawlerId: string): Sweep[] {
  const of = (collection: 'deliveries' | 'history' | 'pushRequests'): Sweep => {
    const documents = c[collection] as Collections['deliveries'];
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
    jobSweep(c, { crawlerId, queued: true }),
    jobSweep(c, { crawlerId, state: 'running' }),
    jobSweep(c, { state: 'ended', endedAt: { $gte: new Date(0) }, crawlerId }),
    of('deliveries'),
    of('history'),
    of('pushRequests'),
  ];
}
