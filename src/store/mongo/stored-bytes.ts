import { setTimeout as delay } from 'node:timers/promises';
import type { Collection, Document } from 'mongodb';
import { chargedBytes } from '../../domain/quotas.ts';
import { MAX_SUMMED_RESULTS } from '../rules.ts';
import type { ResultScope, ResultTotals } from '../store.ts';
import { WRITTEN_MS } from './account-increments.ts';
import type { Collections } from './collections.ts';
import { deleteBatch } from './delete-batch.ts';
import { findIds } from './find-ids.ts';
import { scopeKey } from './records.ts';

/**
 * Operations that were in progress when an account was removed, such as an inline crawl to be
 * stored, have ended after this.
 */
const LAST_WRITES_MS = 3_600_000;
/** Measuring reads an index from end to end; it is given up after this. */
const MEASURE_MS = 10_000;

interface Sum {
  readonly n: number;
  readonly bytes: number;
}

/** The number of documents, and the bytes they count for, by the index `hint`, which has the size. */
async function sumUp<Stored extends Document>(
  collection: Collection<Stored>,
  hint: string,
  filter: object,
  limit?: number,
): Promise<Sum> {
  const [sum = { n: 0, bytes: 0 }] = await collection
    .aggregate<Sum>(
      [
        { $match: filter },
        ...(limit === undefined ? [] : [{ $limit: limit }]),
        { $group: { _id: null, n: { $sum: 1 }, bytes: { $sum: '$size' } } },
      ],
      { hint, maxTimeMS: MEASURE_MS },
    )
    .toArray();
  return { n: sum.n, bytes: sum.bytes + sum.n * chargedBytes(0) };
}

/** The bytes that the deliveries of crawlers count for as stored. */
export async function keptBytes(
  { deliveries }: Collections,
  crawlerIds: readonly string[],
): Promise<number> {
  if (crawlerIds.length === 0) return 0;
  const filter = { crawlerId: { $in: [...crawlerIds] } };
  return (await sumUp(deliveries, 'created_rid_size', filter)).bytes;
}

/** The results of a token and the bytes they count for. */
export async function resultTotals(
  collections: Collections,
  scope: ResultScope,
): Promise<ResultTotals | undefined> {
  const filter = { scope: scopeKey(scope) };
  const most = MAX_SUMMED_RESULTS + 1;
  const { n, bytes } = await sumUp(collections.results, 'time_size', filter, most);
  return n === most ? undefined : { results: n, bytes };
}

/**
 * Removes what removed accounts have left: their cookies and proxies, and a batch of their results.
 * An account is forgotten once nothing can be stored for it any more.
 */
export async function sweepRemovedAccounts(
  collections: Collections,
  now: Date,
  batch: number,
): Promise<number> {
  let swept = 0;
  for (const { _id: accountId, removedAt } of await collections.removedAccounts.find().toArray()) {
    const scopes = scopeKeys(accountId);
    const scope = { $in: scopes };
    // The process that removed the account may have died before these went.
    await collections.cookieSessions.deleteMany({ accountId });
    await collections.proxyPools.deleteOne({ _id: accountId });
    const { found } = await deleteBatch(collections.results, { scope }, batch - swept);
    swept += found.length;
    if (swept >= batch) break;
    if (found.length === 0 && removedAt.getTime() <= now.getTime() - LAST_WRITES_MS) {
      await collections.resultOrders.deleteMany({ _id: { $in: scopes } });
      await collections.removedAccounts.deleteOne({ _id: accountId });
    }
  }
  return swept;
}

/**
 * Measures what an account really stores and corrects its counter, which is wrong after a crash
 * between a write and its count. If something was counted during that, nothing is corrected: it may have been
 * measured already.
 */
export async function measureStored(collections: Collections, accountId: string): Promise<void> {
  const before = await collections.accounts.findOne(
    { _id: accountId },
    { projection: { storedBytes: 1 } },
  );
  if (before === null) return;
  const crawlers = await findIds(collections.crawlers, { accountId });
  const scope = { $in: scopeKeys(accountId) };
  const results = await sumUp(collections.results, 'time_size', { scope });
  const screenshots = await sumUp(collections.screenshots, 'account_size', { accountId });
  const kept = await keptBytes(collections, crawlers);
  const off = results.bytes + screenshots.bytes + kept - before.storedBytes;
  if (off === 0) return;
  await delay(WRITTEN_MS);
  await collections.accounts.updateOne(
    { _id: accountId, storedBytes: before.storedBytes },
    { $inc: { storedBytes: off } },
  );
}

function scopeKeys(accountId: string): string[] {
  return (['normal', 'javascript'] as const).map((tokenType) => scopeKey({ accountId, tokenType }));
}
