import type { Db } from 'mongodb';
import { DomainError } from '../../domain/errors.ts';
import type { Collections } from './collections.ts';

const VERSION = 2;

interface MetaDocument {
  readonly _id: 'schema';
  readonly version: number;
}

/**
 * Makes the indexes, and refuses a database of a newer program. Indexes on jobs and deliveries are partial: they cover what is
 * alive, so finished work costs nothing. Pictures and requests also expire by the server's own clock.
 */
export async function migrate(db: Db, c: Collections): Promise<void> {
  const meta = db.collection<MetaDocument>('meta');
  const found = await meta.findOne({ _id: 'schema' });
  if (found !== null && found.version > VERSION) {
    throw new DomainError(
      'failed_precondition',
      'database_too_new',
      `The database has version ${found.version}; this program knows ${VERSION}. Start the newer program.`,
    );
  }
  // First: an index of the same key under another name is refused.
  if (found !== null && found.version < 2) await toVersion2(c);
  await Promise.all([
    c.accounts.createIndexes([
      { key: { name: 1 }, name: 'name', unique: true },
      { key: { hashes: 1 }, name: 'hashes', unique: true },
    ]),
    c.crawlers.createIndexes([
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
    c.jobs.createIndexes([
      {
        key: { crawlerId: 1, due: 1, _id: 1 },
        name: 'due',
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
    c.deliveries.createIndexes([
      {
        key: { crawlerId: 1, due: 1, _id: 1 },
        name: 'due',
        partialFilterExpression: { state: 'due' },
      },
      {
        key: { crawlerId: 1, epoch: 1 },
        name: 'sending',
        partialFilterExpression: { state: 'sending' },
      },
      // Ends with the size, so that what is stored is summed up without reading pages.
      { key: { crawlerId: 1, createdAt: 1, size: 1 }, name: 'created_size' },
      { key: { expiresAt: 1 }, name: 'expiry' },
    ]),
    c.results.createIndexes([
      { key: { scope: 1, storedAt: 1, _id: 1, size: 1 }, name: 'time_size' },
      { key: { scope: 1, urlHash: 1, storedAt: 1 }, name: 'url' },
      // `maintain` removes what is past its retention, and counts it: the server's own expiry would not.
      { key: { expiresAt: 1 }, name: 'expires' },
    ]),
    c.history.createIndexes([{ key: { crawlerId: 1, day: 1 }, name: 'day' }]),
    c.pushRequests.createIndexes([
      { key: { crawlerId: 1 }, name: 'crawler' },
      { key: { expiresAt: 1 }, name: 'expiry', expireAfterSeconds: 0 },
    ]),
    c.rates.createIndexes([{ key: { at: 1 }, name: 'expiry', expireAfterSeconds: 3_600 }]),
    c.notices.createIndexes([{ key: { dueAt: 1 }, name: 'due' }]),
    c.media.createIndexes([{ key: { expiresAt: 1 }, name: 'expiry', expireAfterSeconds: 0 }]),
  ]);
  await meta.updateOne({ _id: 'schema' }, { $max: { version: VERSION } }, { upsert: true });
}

/** Records know their size; indexes that know it, too, take the place of others. Doing it twice does nothing. */
async function toVersion2(c: Collections): Promise<void> {
  await c.results.updateMany({ size: { $exists: false } }, [
    { $set: { size: { $binarySize: '$body' } } },
  ]);
  await Promise.all([
    dropIndex(c.results, 'time'),
    dropIndex(c.results, 'expiry'),
    dropIndex(c.deliveries, 'created'),
  ]);
}

async function dropIndex(
  collection: Collections['results'] | Collections['deliveries'],
  name: string,
) {
  if (await collection.indexExists(name)) await collection.dropIndex(name);
}
