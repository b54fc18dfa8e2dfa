import { isInternal } from '../../domain/crawler-name.ts';
import { invalidToken } from '../../domain/errors.ts';
import { exceedsLimit, quotaExceeded } from '../../domain/quotas.ts';
import type { CrawlerQuota } from '../store.ts';
import type { Collections, CrawlerDocument } from './collections.ts';

/** A quota without limits. */
export const UNLIMITED: CrawlerQuota = { crawlers: 0, concurrency: 0 };

/** The share of a crawler in its account's quotas; the service's own crawlers have none. */
export function quotaShare(crawler: Pick<CrawlerDocument, 'name' | 'concurrency'>): CrawlerQuota {
  return isInternal(crawler)
    ? { crawlers: 0, concurrency: 0 }
    : { crawlers: 1, concurrency: crawler.concurrency };
}

/**
 * Counts crawlers and their concurrency in the account, in one write that fails if it would exceed
 * the quota. Throws the error of `quotaExceeded`, or `unauthenticated` if the account is gone.
 * Negative amounts always pass.
 */
export async function countCrawlers(
  collections: Collections,
  accountId: string,
  more: CrawlerQuota,
  quota: CrawlerQuota,
): Promise<void> {
  const names = (['crawlers', 'concurrency'] as const).filter((name) => more[name] !== 0);
  const bounded = names.filter((name) => quota[name] > 0 && more[name] > 0);
  const fits = bounded.map((name) => ({
    $lte: [{ $add: [{ $ifNull: [`$${name}`, 0] }, more[name]] }, quota[name]],
  }));
  const { matchedCount } = await collections.accounts.updateOne(
    { _id: accountId, ...(fits.length > 0 ? { $expr: { $and: fits } } : {}) },
    { $inc: { crawlers: more.crawlers, concurrency: more.concurrency } },
  );
  if (matchedCount > 0) return;
  const account = await collections.accounts.findOne(
    { _id: accountId },
    { projection: { crawlers: 1, concurrency: 1 } },
  );
  if (account === null) {
    throw invalidToken();
  }
  const over = bounded.find((name) => exceedsLimit(quota[name], account[name] ?? 0, more[name]));
  const name = over ?? bounded[0] ?? 'crawlers';
  throw quotaExceeded(name, quota[name], account[name] ?? 0, {
    kind: 'invalid',
    ...(name === 'concurrency' ? { field: name } : {}),
  });
}
