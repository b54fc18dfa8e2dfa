import type { Filter } from 'mongodb';
import type { Collections, JobDocument } from './collections.ts';
import { deleteBatch } from './delete-batch.ts';
import type { Lanes } from './lanes.ts';
import { readPurges } from './queue-reads.ts';

/** How many documents one statement removes: few enough that none takes long. */
const SWEEP_BATCH = 5_000;
/** A process that was stopped for longer than this writes nothing more of what it has begun. */
const AFTERMATH_MS = 60_000;

/** Notes that a crawler or its queue is about to be removed, so that `maintain` sweeps up leftovers. */
export async function noteRemoval(collections: Collections, crawlerId: string): Promise<void> {
  await collections.removals.updateOne(
    { _id: crawlerId },
    { $unset: { at: '' } },
    { upsert: true },
  );
}

/**
 * Sweeps up after one crawler until nothing is left or `goesOn` returns false: what nobody counts or
 * finds any more. Returns whether nothing is left.
 */
export async function sweepUp(
  collections: Collections,
  crawlerId: string,
  goesOn: () => boolean,
): Promise<boolean> {
  const crawler = await readPurges(collections, crawlerId);
  const gen = crawler === null ? {} : { gen: { $lt: crawler.purges } };
  const sweeps: readonly Sweep[] = [
    ['jobs', { crawlerId, queued: true, ...gen }],
    ['uniqueKeys', { crawlerId, ...gen }],
    ...(crawler === null ? sweepsOfRemoved(crawlerId) : []),
  ];
  for (const [name, filter] of sweeps) {
    for (;;) {
      const documents = collections[name] as Collections['jobs'];
      const count = (await deleteBatch(documents, filter, SWEEP_BATCH)).found.length;
      if (count < SWEEP_BATCH) break;
      if (!goesOn()) return false;
    }
  }
  return true;
}

/** Continues every removal and purge. */
export async function sweepAll(
  collections: Collections,
  lanes: Lanes,
  now: Date,
  goesOn: () => boolean,
  limit: number,
): Promise<void> {
  const over = now.getTime() - AFTERMATH_MS;
  const entries = await collections.removals.find().limit(limit).toArray();
  for (const { _id, at } of entries) {
    if (!goesOn()) return;
    if (at !== undefined && at.getTime() > over) continue;
    const crawler = await readPurges(collections, _id);
    // The process of a purge may have died before this.
    if (crawler !== null) await lanes.raise(_id, crawler.purges, now);
    if (!(await sweepUp(collections, _id, goesOn))) continue;
    if (at === undefined) {
      await collections.removals.updateOne({ _id, at: { $exists: false } }, { $set: { at: now } });
    } else await collections.removals.deleteOne({ _id, at });
  }
}

const OF_CRAWLER = [
  'deliveries',
  'history',
  'samples',
  'pushRequests',
  'batches',
  'batchParts',
  'counts',
  'hosts',
] as const;

/** A collection, and which of its documents go. */
type Sweep = readonly [
  name: 'jobs' | 'uniqueKeys' | (typeof OF_CRAWLER)[number],
  filter: Filter<JobDocument>,
];

function sweepsOfRemoved(crawlerId: string): Sweep[] {
  return [
    ['jobs', { crawlerId, state: 'running' }],
    ...OF_CRAWLER.map((name): Sweep => [name, { crawlerId }]),
  ];
}
