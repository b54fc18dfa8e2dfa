import { type Collection, type Db, type Document, MongoNetworkTimeoutError } from 'mongodb';
import { AUDIT_KEPT_MS } from '../../domain/audit.ts';
import { DAY_MS } from '../../domain/durations.ts';
import { databaseTooNew } from '../../domain/errors.ts';
import { DEFAULT_PRIORITY } from '../../domain/priority.ts';
import { SESSION_MS } from '../../domain/session-cookies.ts';
import { CB_STATUS } from '../../domain/status.ts';
import { SAMPLES_KEPT_MS } from '../../domain/timeline.ts';
import type { Collections } from './collections.ts';
import { settle } from './settle.ts';
import type { Transactions } from './transactions.ts';

/**
 * Of version 6 are results that say how they are compressed, which older programs do not read. For the
 * other versions see below.
 */
const VERSION = 7;
/** How many documents one statement of a migration changes. */
const BATCH = 5_000;
/**
 * A large index takes longer to build than a connection waits, while the server builds on: the most
 * repetitions of the request.
 */
const MAX_WAITS = 120;
/** Indexes that were replaced by others. */
const REPLACED = {
  crawlers: ['day', 'pending'],
  jobs: ['due', 'retrying', 'ended', 'by_host'],
  deliveries: ['created', 'created_size', 'due', 'sending', 'underway'],
  results: ['time', 'url', 'expiry'],
} as const;

interface MetaDocument {
  readonly _id: 'schema';
  readonly version: number;
}

/**
 * Migrates the database and creates its indexes; throws for a database of a newer program. Indexes
 * on jobs and deliveries are partial: they cover live ones only, so finished work costs nothing.
 * Requests also expire by the server's own clock.
 */
export async function migrate(
  db: Db,
  collections: Collections,
  transactions: Transactions,
): Promise<void> {
  const meta = db.collection<MetaDocument>('meta');
  const found = await meta.findOne({ _id: 'schema' });
  if (found !== null && found.version > VERSION) {
    throw databaseTooNew(found.version, VERSION);
  }
  if (found !== null && found.version < 3) await countPurges(collections);
  // First, because the server refuses an index of the same key under another name.
  if (found !== null) {
    await Promise.all(
      Object.entries(REPLACED).map(([name, indexes]) =>
        drop(collections[name as keyof typeof REPLACED], indexes),
      ),
    );
  }
  await patiently(() => createIndexes(collections));
  if (found !== null && found.version < 2) await measureResults(collections);
  if (found !== null && found.version < 4) await markUnnumbered(collections);
  if (found !== null && found.version < 5) await settle(db, transactions);
  if (found !== null && found.version < 7) await orderJobs(collections);
  await meta.updateOne({ _id: 'schema' }, { $max: { version: VERSION } }, { upsert: true });
}

/** Version 7: jobs have their order. Those of before have the same priority. */
async function orderJobs(collections: Collections): Promise<void> {
  await collections.jobs.updateMany({ order: { $exists: false } }, [{ $set: { order: '$due' } }]);
}

/** Version 2: records have their size. */
async function measureResults(collections: Collections): Promise<void> {
  await collections.results.updateMany({ size: { $exists: false } }, [
    { $set: { size: { $binarySize: '$body' } } },
  ]);
}

/** Version 4: results have a number in an order. */
async function markUnnumbered(collections: Collections): Promise<void> {
  await collections.results.updateMany({ seq: { $exists: false } }, { $set: { seq: 0 } });
}

/**
 * Version 3: crawlers have the versions of their counters and count their purges; a job has the
 * number of purges before its push.
 */
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
  // Another process that starts may be dropping it at the same time.
  for (const name of names) {
    if (there.includes(name)) await collection.dropIndex(name).catch(() => undefined);
  }
}

async function createIndexes(collections: Collections): Promise<void> {
  await Promise.all([
    collections.accounts.createIndexes([
      { key: { name: 1 }, name: 'name', unique: true },
      {
        key: { nameKey: 1 },
        name: 'name_key',
        unique: true,
        partialFilterExpression: { nameKey: { $exists: true } },
      },
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
      { key: { wantsHelp: 1 }, name: 'wants_help', sparse: true },
    ]),
    collections.jobs.createIndexes([
      {
        key: { crawlerId: 1, gen: 1, due: 1, _id: 1 },
        name: 'next',
        partialFilterExpression: { queued: true },
      },
      {
        key: { crawlerId: 1, gen: 1, host: 1, order: 1, _id: 1, due: 1 },
        name: 'by_host_order',
        partialFilterExpression: { queued: true },
      },
      {
        key: { crawlerId: 1, gen: 1, order: 1, _id: 1, due: 1, host: 1 },
        name: 'urgent',
        partialFilterExpression: { queued: true, priority: { $gt: DEFAULT_PRIORITY } },
      },
      {
        key: { crawlerId: 1, gen: 1, notBefore: 1 },
        name: 'scheduled',
        partialFilterExpression: { notBefore: { $exists: true } },
      },
      {
        key: { crawlerId: 1, epoch: 1 },
        name: 'running',
        partialFilterExpression: { state: 'running' },
      },
      {
        key: { crawlerId: 1, gen: 1, due: 1, _id: 1 },
        name: 'next_retry',
        partialFilterExpression: { state: 'retrying' },
      },
      {
        key: { batchId: 1, state: 1, gen: 1, notBefore: 1 },
        name: 'batch',
        partialFilterExpression: { batchId: { $exists: true } },
      },
      {
        key: { queueDeadline: 1 },
        name: 'deadline',
        partialFilterExpression: { expires: true },
      },
    ]),
    collections.samples.createIndexes([
      { key: { crawlerId: 1, at: 1 }, name: 'crawler' },
      { key: { at: 1 }, name: 'expiry', expireAfterSeconds: SAMPLES_KEPT_MS / 1_000 },
    ]),
    collections.batches.createIndexes([
      { key: { crawlerId: 1, name: 1 }, name: 'name', unique: true },
      { key: { crawlerId: 1, _id: 1 }, name: 'newest' },
      {
        key: { closedAt: 1 },
        name: 'closed',
        partialFilterExpression: { closedAt: { $exists: true } },
      },
      { key: { expiresAt: 1 }, name: 'expires' },
    ]),
    collections.batchParts.createIndexes([
      { key: { batchId: 1 }, name: 'batch' },
      { key: { crawlerId: 1 }, name: 'crawler' },
    ]),
    collections.counts.createIndexes([
      { key: { crawlerId: 1 }, name: 'crawler' },
      { key: { at: 1 }, name: 'unused', sparse: true },
      { key: { firstDay: 1 }, name: 'day', sparse: true },
    ]),
    collections.deliveries.createIndexes([
      // They contain the state, so that deliveries are counted without reading the documents, which
      // hold the pages.
      {
        key: { crawlerId: 1, state: 1, due: 1, _id: 1 },
        name: 'next',
        partialFilterExpression: { state: 'due' },
      },
      {
        key: { crawlerId: 1, due: 1, _id: 1 },
        name: 'retried',
        partialFilterExpression: { state: 'due', attempt: { $gt: 0 } },
      },
      {
        key: { crawlerId: 1, state: 1, epoch: 1, _id: 1 },
        name: 'sending_rid',
        partialFilterExpression: { state: 'sending' },
      },
      // Ends with the size, so that stored bytes are summed without reading pages.
      { key: { crawlerId: 1, createdAt: 1, _id: 1, size: 1 }, name: 'created_rid_size' },
      {
        key: { crawlerId: 1, createdAt: 1, _id: 1 },
        name: 'failed',
        partialFilterExpression: { state: 'failed' },
      },
      {
        key: { crawlerId: 1, createdAt: 1, _id: 1 },
        name: 'failed_crawls',
        partialFilterExpression: { cbStatus: { $gt: CB_STATUS.success } },
      },
      {
        key: { batchId: 1, createdAt: 1, _id: 1, cbStatus: 1 },
        name: 'batch',
        partialFilterExpression: { batchId: { $exists: true } },
      },
      { key: { expiresAt: 1 }, name: 'expiry' },
    ]),
    collections.results.createIndexes([
      { key: { scope: 1, storedAt: 1, _id: 1, size: 1 }, name: 'time_size' },
      { key: { scope: 1, urlHash: 1, storedAt: 1, _id: 1 }, name: 'newest' },
      // Numbered ones by number, and those without by time, without reading pages.
      { key: { scope: 1, seq: 1, storedAt: 1, _id: 1, size: 1 }, name: 'order' },
      { key: { scope: 1, crawlerId: 1, seq: 1, _id: 1, size: 1 }, name: 'crawler_order' },
      {
        key: { crawlerId: 1, storedAt: 1, _id: 1 },
        name: 'crawler_time',
        partialFilterExpression: { crawlerId: { $exists: true } },
      },
      {
        key: { scope: 1, storedAt: 1, _id: 1 },
        name: 'failed',
        partialFilterExpression: { cbStatus: { $gt: CB_STATUS.success } },
      },
      {
        key: { crawlerId: 1, storedAt: 1, _id: 1 },
        name: 'failed_of_crawler',
        partialFilterExpression: { cbStatus: { $gt: CB_STATUS.success } },
      },
      {
        key: { batchId: 1, seq: 1, _id: 1, size: 1 },
        name: 'batch_order',
        partialFilterExpression: { batchId: { $exists: true } },
      },
      {
        key: { heldUntil: 1, scope: 1 },
        name: 'held',
        partialFilterExpression: { heldUntil: { $exists: true } },
      },
      // `maintain` removes and counts expired results; the server's own expiry would not count
      // them.
      { key: { expiresAt: 1 }, name: 'expires' },
    ]),
    collections.history.createIndexes([{ key: { crawlerId: 1, day: 1 }, name: 'day' }]),
    collections.pushRequests.createIndexes([
      { key: { crawlerId: 1 }, name: 'crawler' },
      { key: { expiresAt: 1 }, name: 'expiry', expireAfterSeconds: 0 },
    ]),
    collections.uniqueKeys.createIndexes([
      { key: { crawlerId: 1, gen: 1 }, name: 'crawler' },
      { key: { expiresAt: 1 }, name: 'expiry', expireAfterSeconds: 0 },
    ]),
    collections.rates.createIndexes([
      { key: { at: 1 }, name: 'expiry', expireAfterSeconds: 3_600 },
    ]),
    collections.processes.createIndexes([
      { key: { reportedAt: 1 }, name: 'expiry', expireAfterSeconds: 3_600 },
    ]),
    collections.cookieSessions.createIndexes([
      { key: { accountId: 1, usedAt: -1 }, name: 'account_use' },
      { key: { usedAt: 1 }, name: 'expiry', expireAfterSeconds: SESSION_MS / 1_000 },
    ]),
    collections.hosts.createIndexes([
      { key: { crawlerId: 1, at: -1 }, name: 'crawler' },
      {
        key: { crawlerId: 1, at: 1, heldUp: 1 },
        name: 'held_up',
        partialFilterExpression: { heldUp: { $exists: true } },
      },
      { key: { at: 1 }, name: 'expiry', expireAfterSeconds: DAY_MS / 1_000 },
    ]),
    collections.notices.createIndexes([{ key: { dueAt: 1 }, name: 'due' }]),
    collections.audit.createIndexes([
      { key: { accountId: 1, at: -1, _id: -1 }, name: 'newest' },
      { key: { at: 1 }, name: 'expiry', expireAfterSeconds: AUDIT_KEPT_MS / 1_000 },
    ]),
    collections.episodes.createIndexes([
      { key: { seenAt: 1 }, name: 'expiry', expireAfterSeconds: DAY_MS / 1_000 },
    ]),
    collections.screenshots.createIndexes([
      { key: { expiresAt: 1 }, name: 'expires' },
      { key: { accountId: 1, size: 1 }, name: 'account_size' },
    ]),
  ]);
}
