import {
  type Collection,
  type Db,
  type Document,
  type IndexDescription,
  MongoNetworkTimeoutError,
} from 'mongodb';
import { AUDIT_KEPT_MS } from '../../domain/audit.ts';
import { DAY_MS } from '../../domain/durations.ts';
import { databaseTooNew } from '../../domain/errors.ts';
import type { Logger } from '../../domain/logger.ts';
import { DEFAULT_PRIORITY } from '../../domain/priority.ts';
import { SESSION_MS } from '../../domain/session-cookies.ts';
import { CB_STATUS } from '../../domain/status.ts';
import { SAMPLES_KEPT_MS } from '../../domain/timeline.ts';
import { logUpgrade } from '../upgrade-step.ts';
import type { Collections } from './collections.ts';
import { settle } from './settle.ts';
import type { Transactions } from './transactions.ts';

/**
 * Of version 6 are results that say how they are compressed, which older programs do not read. For the
 * other versions see below.
 */
const VERSION = 7;
/**
 * A large index takes longer to build than a connection waits, while the server builds on: the most
 * repetitions of the request.
 */
const MAX_WAITS = 120;
/** Indexes of released versions that were replaced by others. */
const REPLACED = {
  crawlers: ['day', 'pending'],
  jobs: ['ended', 'by_host'],
} as const;

interface MetaDocument {
  readonly _id: 'schema';
  readonly version: number;
}

/**
 * Migrates the database and creates its indexes; throws for a database of a newer program. Before it
 * changes anything in one of an older program, it calls `untilAlone`. Logs each step from an older version
 * before it begins; the first one includes the indexes. Indexes on jobs and deliveries are partial: they cover
 * live ones only, so finished work costs nothing.
 * Requests also expire by the server's own clock.
 */
export async function migrate(
  db: Db,
  collections: Collections,
  transactions: Transactions,
  logger: Pick<Logger, 'info'>,
  untilAlone: (isMigrated: () => Promise<boolean>) => Promise<void>,
): Promise<void> {
  const isMigrated = async () => (await schemaVersion(db)) === VERSION;
  if (((await schemaVersion(db)) ?? VERSION) < VERSION) await untilAlone(isMigrated);
  const version = await schemaVersion(db);
  const from = version ?? VERSION;
  const logStep = (next: number): void => logUpgrade(logger, { version: next, of: VERSION });
  if (from < VERSION) logStep(from < 5 ? 5 : 7);
  // First, because the server refuses an index of the same key under another name.
  if (version !== undefined) {
    await Promise.all(
      Object.entries(REPLACED).map(([name, indexes]) =>
        drop(collections[name as keyof typeof REPLACED], indexes),
      ),
    );
  }
  await patiently(() => createIndexes(collections));
  if (from < 5) {
    await settle(db, transactions);
    logStep(7);
  }
  if (from < 7) await orderJobs(collections);
  const meta = db.collection<MetaDocument>('meta');
  await meta.updateOne({ _id: 'schema' }, { $max: { version: VERSION } }, { upsert: true });
}

/** The version of the schema; undefined in a new database. Throws `database_too_new` for a newer one. */
export async function schemaVersion(db: Db): Promise<number | undefined> {
  const found = await db.collection<MetaDocument>('meta').findOne({ _id: 'schema' });
  if (found !== null && found.version > VERSION) throw databaseTooNew(found.version, VERSION);
  return found?.version;
}

/** Version 7: jobs have their order. Those of before have the same priority. */
async function orderJobs(collections: Collections): Promise<void> {
  await collections.jobs.updateMany({ order: { $exists: false } }, [{ $set: { order: '$due' } }]);
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

/** The documents that have a field. */
const has = (field: string): Document => ({ [field]: { $exists: true } });

/** Results and deliveries of crawls that failed. */
const OF_FAILED = { cbStatus: { $gt: CB_STATUS.success } };

/** An index of the documents that match `of` alone. */
const partial = (name: string, key: IndexDescription['key'], of: Document): IndexDescription => ({
  key,
  name,
  partialFilterExpression: of,
});

async function createIndexes(collections: Collections): Promise<void> {
  await Promise.all([
    collections.accounts.createIndexes([
      { key: { name: 1 }, name: 'name', unique: true },
      { ...partial('name_key', { nameKey: 1 }, has('nameKey')), unique: true },
      { key: { hashes: 1 }, name: 'hashes', unique: true },
    ]),
    collections.crawlers.createIndexes([
      { key: { accountId: 1, name: 1 }, name: 'name', unique: true },
      { key: { wakeAt: 1 }, name: 'wake' },
      { key: { probeAt: 1 }, name: 'probe', sparse: true },
      partial('callback', { callbackUrl: 1 }, has('probeAt')),
      { key: { wantsHelp: 1 }, name: 'wants_help', sparse: true },
      partial('group', { accountId: 1, 'politeness.group': 1 }, has('politeness.group')),
    ]),
    collections.jobs.createIndexes([
      partial('next', { crawlerId: 1, gen: 1, due: 1, _id: 1 }, { queued: true }),
      partial(
        'by_host_order',
        { crawlerId: 1, gen: 1, host: 1, order: 1, _id: 1, due: 1 },
        { queued: true },
      ),
      partial(
        'urgent',
        { crawlerId: 1, gen: 1, order: 1, _id: 1, due: 1, host: 1 },
        { queued: true, priority: { $gt: DEFAULT_PRIORITY } },
      ),
      partial('scheduled', { crawlerId: 1, gen: 1, notBefore: 1 }, has('notBefore')),
      partial('running', { crawlerId: 1, epoch: 1 }, { state: 'running' }),
      partial('next_retry', { crawlerId: 1, gen: 1, due: 1, _id: 1 }, { state: 'retrying' }),
      partial('batch', { batchId: 1, state: 1, gen: 1, notBefore: 1 }, has('batchId')),
      partial('deadline', { queueDeadline: 1 }, { expires: true }),
    ]),
    collections.samples.createIndexes([
      { key: { crawlerId: 1, at: 1 }, name: 'crawler' },
      { key: { at: 1 }, name: 'expiry', expireAfterSeconds: SAMPLES_KEPT_MS / 1_000 },
    ]),
    collections.batches.createIndexes([
      { key: { crawlerId: 1, name: 1 }, name: 'name', unique: true },
      { key: { crawlerId: 1, _id: 1 }, name: 'newest' },
      partial('closed', { closedAt: 1 }, has('closedAt')),
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
      partial('next', { crawlerId: 1, state: 1, due: 1, _id: 1 }, { state: 'due' }),
      partial('retried', { crawlerId: 1, due: 1, _id: 1 }, { state: 'due', attempt: { $gt: 0 } }),
      partial('sending_rid', { crawlerId: 1, state: 1, epoch: 1, _id: 1 }, { state: 'sending' }),
      // Ends with the size, so that stored bytes are summed without reading pages.
      { key: { crawlerId: 1, createdAt: 1, _id: 1, size: 1 }, name: 'created_rid_size' },
      partial('failed', { crawlerId: 1, createdAt: 1, _id: 1 }, { state: 'failed' }),
      partial('failed_crawls', { crawlerId: 1, createdAt: 1, _id: 1 }, OF_FAILED),
      partial('batch', { batchId: 1, createdAt: 1, _id: 1, cbStatus: 1 }, has('batchId')),
      { key: { expiresAt: 1 }, name: 'expiry' },
    ]),
    collections.results.createIndexes([
      { key: { scope: 1, storedAt: 1, _id: 1, size: 1 }, name: 'time_size' },
      { key: { scope: 1, urlHash: 1, storedAt: 1, _id: 1 }, name: 'newest' },
      // Numbered ones by number, and those without by time, without reading pages.
      { key: { scope: 1, seq: 1, storedAt: 1, _id: 1, size: 1 }, name: 'order' },
      { key: { scope: 1, crawlerId: 1, seq: 1, _id: 1, size: 1 }, name: 'crawler_order' },
      partial('crawler_time', { crawlerId: 1, storedAt: 1, _id: 1 }, has('crawlerId')),
      partial('failed', { scope: 1, storedAt: 1, _id: 1 }, OF_FAILED),
      partial('failed_of_crawler', { crawlerId: 1, storedAt: 1, _id: 1 }, OF_FAILED),
      partial('batch_order', { batchId: 1, seq: 1, _id: 1, size: 1 }, has('batchId')),
      partial('held', { heldUntil: 1, scope: 1 }, has('heldUntil')),
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
      partial('held_up', { crawlerId: 1, at: 1, heldUp: 1 }, has('heldUp')),
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
