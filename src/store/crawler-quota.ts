import type { Crawler } from '../domain/crawler.ts';
import { isInternal } from '../domain/crawler-name.ts';
import type { DomainError } from '../domain/errors.ts';
import { quotaExceeded } from '../domain/quotas.ts';
import type { CrawlerQuota } from './store.ts';

/** A quota without limits. */
export const UNLIMITED: CrawlerQuota = { crawlers: 0, concurrency: 0 };

/** The share of a crawler in its account's quotas; the service's own crawlers have none. */
export function quotaShare(crawler: Pick<Crawler, 'name' | 'concurrency'>): CrawlerQuota {
  return isInternal(crawler) ? UNLIMITED : { crawlers: 1, concurrency: crawler.concurrency };
}

/** The error of a crawler that would exceed a quota of which `used` is in use. */
export function crawlerQuotaExceeded(
  name: keyof CrawlerQuota,
  quota: CrawlerQuota,
  used: number,
): DomainError {
  const field = name === 'concurrency' ? { field: name } : {};
  return quotaExceeded(name, quota[name], used, { kind: 'invalid', ...field });
}
