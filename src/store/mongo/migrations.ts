import { type Collection, type Db, type Document, MongoNetworkTimeoutError } from 'mongodb';
import { databaseTooNew } from '../../domain/errors.ts';
import type { Collections } from './collections.ts';

const VERSION = 3;
/** How much one statement of a migration changes. */
const BATCH = 5_000;
/** A large index takes longer to build than a connection waits; the server builds on, and is asked again this often at most. */
const MAX_WAITS = 120;
/** Indexes that others have taken the place of. */
const REPLACED = {
  jobs: ['due'],
  deliveries: ['created', 'due', 'sending', 'underway'],
  results: ['time', 'url', 'expiry'],
} as const;

interface MetaDocument {
  readonly _id: 'schema';
  readonly version: number;
}

/**
 * Makes the indexes, and refuses a database of a newer program. Indexes on jobs and deliveries are partial: they cover what is
 * alive, so finished work costs nothing. Pictures and requests also expire by the server's own clock.
 */
export async function migrate(db: Db, collections: Collections): Promise<void> {
  const meta = db.collection<MetaDocument>('meta');
  const found = await meta.findOne({ _id: 'schema' });
  if (found !== null && found.version > VERSION) {
    throw databaseTooNew(found.version, VERSION);
  }
  if (found !== null && found.version < 3) await countPurges(collections);
  // First: an index of the same key under another name is refused.
  if (found !== null) {
    await Promise.all(
      Object.entries(REPLACED).map(([name, indexes]) =>
        drop(collections[name as keyof typeof REPLACED], indexes),
      ),
    );
  }
  await patiently(() => createIndexes(collections));
  if (found !== null && found.version < 2) await measureResults(collections);
  await meta.updateOne({ _id: 'schema' }, { $max: { version: VERSION } }, { upsert: true });
}

/** Version 2: records know their size. */
async function measureResults(collections: Collections): Promise<void> {
  await collections.results.updateMany({ size: { $exists: false } }, [
    { $set: { size: { $binarySize: '$body' } } },
  ]);
}

/** Version 3: crawlers count their purges and the changes of their counters, jobs remember how many purges there had been. */
async function countPurges(collections: Collections): Promise<void> {
  await collections.crawlers.updateMany({ purges: { $exists: false } }, [
    { $set: { moves: 0, recounts: 0, purges: 0, runningBytes: 0 } },
    { $unset: 'counted' },
  ]);
  let last = '';
  for (;;) {
    const found: Document[] = await collections.jobs
      .find({ _id: { $gt: last } }, { projection: { gen: 1 } })
      .sort({ _id: 1 })
      .limit(BATCH)
      .toArray();
    const without = found.filter((each) => each.gen === undefined).map((each) => String(each._id));
    if (without.length > 0) {
      await collections.jobs.updateMany(
        { _id: { $in: without }, gen: { $exists: false } },
        { $set: { gen: 0 } },
      );
    }
    if (found.length < BATCH) return;
    last = String(found.at(-1)?._id);
  }
}

async function patiently(work: () => Promise<unknown>): Promise<void> {
  for (let waits = 0; ; waits++) {
    try {
      return void (await work());
    } catch (error) {
      if (!(error instanceof MongoNetworkTimeoutError) || waits >= MAX_WAITS) throw error;
    }
  }
}

async function drop(
  collection: Pick<Collection, 'indexes' | 'dropIndex'>,
  names: readonly string[],
): Promise<void> {
  const there = (await collection.indexes()).map((each) => each.name);
  // Another process that starts may be dropping it, too.
  for (const name of names) {
    if (there.includes(name)) await collection.dropIndex(name).catch(() => undefined);
  }
}

async function createIndexes(collections: Collections): Promise<void> {
  await Promise.all([
    collections.accounts.createIndexes([
      { key: { name: 1 }, name: 'name', unique: true },
      { key: { hashes: 1 }, name: 'hashes', unique: true },
    ]),
    collections.crawlers.createIndexes([
      { key: { accountId: 1, name: 1 }, name: 'name', unique: true },
      { key: { wakeAt: 1 }, name: 'wake' },
      { key: { probeAt: 1 }, name: 'probe', sparse: true },
      {
        key: { callbackUrl: 1 },
        name: 'callback',
        partialFilterExpression: { probeAt: { $exists: true } },
      },
      { key: { firstDay: 1 }, name: 'day', sparse: true },
      { key: { 'pending.at': 1 }, name: 'pending', sparse: true },
    ]),
    collections.jobs.createIndexes([
      {
        key: { crawlerId: 1, gen: 1, due: 1, _id: 1 },
        name: 'next',
        partialFilterExpression: { queued: true },
      },
      {
        key: { crawlerId: 1, epoch: 1 },
        name: 'running',
        partialFilterExpression: { state: 'running' },
      },
      {
        key: { crawlerId: 1 },
        name: 'retrying',
        partialFilterExpression: { state: 'retrying' },
      },
      {
        key: { queueDeadline: 1 },
        name: 'deadline',
        partialFilterExpression: { expires: true },
      },
      { key: { endedAt: 1 }, name: 'ended', partialFilterExpression: { state: 'ended' } },
    ]),
    collections.deliveries.createIndexes([
      // With the state in them they can be counted without a look at the documents, which hold the pages.
      {
        key: { crawlerId: 1, state: 1, due: 1, _id: 1 },
        name: 'next',
        partialFilterExpression: { state: 'due' },
      },
      {
        key: { crawlerId: 1, state: 1, epoch: 1, _id: 1 },
        name: 'sending_rid',
        partialFilterExpression: { state: 'sending' },
      },
      // Ends with the size, so that what is stored is summed up without reading pages.
      { key: { crawlerId: 1, createdAt: 1, size: 1 }, name: 'created_size' },
      { key: { expiresAt: 1 }, name: 'expiry' },
    ]),
    collections.results.createIndexes([
      { key: { scope: 1, storedAt: 1, _id: 1, size: 1 }, name: 'time_size' },
      { key: { scope: 1, urlHash: 1, storedAt: 1, _id: 1 }, name: 'newest' },
      // `maintain` removes what is past its retention, and counts it: the server's own expiry would not.
      { key: { expiresAt: 1 }, name: 'expires' },
    ]),
    collections.history.createIndexes([{ key: { crawlerId: 1, day: 1 }, name: 'day' }]),
    collections.pushRequests.createIndexes([
      { key: { crawlerId: 1 }, name: 'crawler' },
      { key: { expiresAt: 1 }, name: 'expiry', expireAfterSeconds: 0 },
    ]),
    collections.rates.createIndexes([
      { key: { at: 1 }, name: 'expiry', expireAfterSeconds: 3_600 },
    ]),
    collections.notices.createIndexes([{ key: { dueAt: 1 }, name: 'due' }]),
    collections.screenshots.createIndexes([
      { key: { expiresAt: 1 }, name: 'expiry', expireAfterSeconds: 0 },
    ]),
  ]);
}
