import type { TokenOwner } from '../domain/account.ts';
import type { Clock } from '../domain/clock.ts';
import type { Crawler, CrawlerSettings } from '../domain/crawler.ts';
import { createRid } from '../domain/rid.ts';
import type { CrawlerStore } from '../store/store.ts';

// No client can name a crawler so: a crawler's name begins with a letter or digit.
const PREFIX = '.async-';

/** Whether a crawler is the service's own, to be left out of listings. */
export function isInternal(crawler: Pick<Crawler, 'name'>): boolean {
  return crawler.name.startsWith(PREFIX);
}

/**
 * Finds or makes the storage-mode crawler that carries a token's `async=true` crawls, so that they are as durable, limited
 * and retried as any other. Returns its name.
 */
export async function ensureAsyncCrawler(
  deps: {
    readonly crawlers: Pick<CrawlerStore, 'insert'>;
    readonly clock: Clock;
    readonly defaults: Pick<CrawlerSettings, 'concurrency' | 'maxRetries' | 'retryWindowHours'>;
  },
  owner: TokenOwner,
): Promise<string> {
  const now = deps.clock.now();
  const { crawler } = await deps.crawlers.insert({
    ...deps.defaults,
    crawlerId: createRid(now),
    accountId: owner.account.accountId,
    name: PREFIX + owner.tokenType,
    tokenType: owner.tokenType,
    delivery: 'storage',
    callbackUrl: undefined,
    politeness: undefined,
    pausedByUser: false,
    pausedByMonitor: false,
    webhookSecrets: [],
    createdAt: now,
    updatedAt: now,
  });
  return crawler.name;
}
