import { invalidToken } from '../../domain/errors.ts';
import { exceedsLimit } from '../../domain/quotas.ts';
import { crawlerQuotaExceeded } from '../crawler-quota.ts';
import type { CrawlerQuota } from '../store.ts';
import type { Collections } from './collections.ts';

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
    $lte: [{ $add: [`$${name}`, more[name]] }, quota[name]],
  }));
  const { matchedCount } = await collections.accounts.updateOne(
    { _id: accountId, ...(fits.length > 0 ? { $expr: { $and: fits } } : {}) },
    { $inc: { crawlers: more.crawlers, concurrency: more.concurrency } },
  );
  if (matchedCount > 0) return;
  const account = await collections.accounts.findOne({ _id: accountId });
  if (account === null) throw invalidToken();
  const over = bounded.find((name) => exceedsLimit(quota[name], account[name], more[name]));
  const name = over ?? bounded[0] ?? 'crawlers';
  throw crawlerQuotaExceeded(name, quota, account[name]);
}
