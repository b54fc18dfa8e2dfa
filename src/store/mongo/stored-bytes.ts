import { chargedBytes } from '../../domain/quotas.ts';
import { MAX_SUMMED_RESULTS } from '../rules.ts';
import type { ResultScope, ResultTotals } from '../store.ts';
import type { Collections } from './collections.ts';
import { deleteBatch } from './delete-batch.ts';
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

const SUM = { $group: { _id: null, n: { $sum: 1 }, bytes: { $sum: '$size' } } };

function total(sums: readonly Sum[]): number {
  return sums.reduce((all, { n, bytes }) => all + bytes + n * chargedBytes(0), 0);
}

/** The bytes that the deliveries of crawlers count for as stored. */
export async function keptBytes(
  collections: Collections,
  crawlerIds: readonly string[],
): Promise<number> {
  if (crawlerIds.length === 0) return 0;
  const sums = await collections.deliveries
    .aggregate<Sum>([{ $match: { crawlerId: { $in: [...crawlerIds] } } }, SUM], {
      hint: 'created_rid_size',
      maxTimeMS: MEASURE_MS,
    })
    .toArray();
  return total(sums);
}

/** The results of a token and the bytes they count for. */
export async function resultTotals(
  collections: Collections,
  scope: ResultScope,
): Promise<ResultTotals | undefined> {
  const sums = await collections.results
    .aggregate<Sum>(
      [{ $match: { scope: scopeKey(scope) } }, { $limit: MAX_SUMMED_RESULTS + 1 }, SUM],
      { hint: 'time_size', maxTimeMS: MEASURE_MS },
    )
    .toArray();
  const results = sums[0]?.n ?? 0;
  return results > MAX_SUMMED_RESULTS ? undefined : { results, bytes: total(sums) };
}

/**
 * Removes a batch of the results of removed accounts. An account is forgotten once nothing can be
 * stored for it any more.
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
 * between a write and its count. Changes that are counted during the measurement are kept.
 */
export async function measureStored(collections: Collections, accountId: string): Promise<void> {
  const before = await collections.accounts.findOne(
    { _id: accountId },
    { projection: { storedBytes: 1 } },
  );
  if (before === null) return;
  const crawlers = await collections.crawlers
    .find({ accountId }, { projection: { _id: 1 } })
    .map(({ _id }) => _id)
    .toArray();
  const results = await collections.results
    .aggregate<Sum>([{ $match: { scope: { $in: scopeKeys(accountId) } } }, SUM], {
      hint: 'time_size',
      maxTimeMS: MEASURE_MS,
    })
    .toArray();
  const screenshots = await collections.screenshots
    .aggregate<Sum>([{ $match: { accountId } }, SUM], {
      hint: 'account_size',
      maxTimeMS: MEASURE_MS,
    })
    .toArray();
  const kept = await keptBytes(collections, crawlers);
  const off = total(results) + total(screenshots) + kept - (before.storedBytes ?? 0);
  if (off !== 0)
    await collections.accounts.updateOne({ _id: accountId }, { $inc: { storedBytes: off } });
}

function scopeKeys(accountId: string): string[] {
  return (['normal', 'javascript'] as const).map((tokenType) => scopeKey({ accountId, tokenType }));
}
