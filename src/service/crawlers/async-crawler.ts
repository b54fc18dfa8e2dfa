import type { TokenOwner, TokenType } from '../../domain/account.ts';
import { type ServiceClock, wallNow } from '../../domain/clock.ts';
import { type Crawler, newCrawler } from '../../domain/crawler.ts';
import { INTERNAL_PREFIX, isInternal } from '../../domain/crawler-name.ts';
import type { CrawlerDefaults } from '../../domain/crawler-settings.ts';
import type { CrawlerStore } from '../../store/store.ts';

const PREFIX = `${INTERNAL_PREFIX}async-`;

/** Sorts after every name of the service's own crawlers and before every name a client can give. */
export const BEFORE_CLIENT_NAMES = '/';

/** Stands for the crawler that carries a token's `async=true` crawls; no request can name it. */
export const ASYNC_CRAWLER = Symbol('the crawler of async crawls');

/**
 * How a call names a crawler: by the client's name for it, or the crawler of `async=true` crawls.
 */
export type CrawlerReference = string | typeof ASYNC_CRAWLER;

/** The name under which the referenced crawler is stored. */
export function storedName(reference: CrawlerReference, tokenType: TokenType): string {
  return typeof reference === 'string' ? reference : PREFIX + tokenType;
}

/** The crawler's name in messages to its owner. */
export function crawlerLabel(crawler: Pick<Crawler, 'name'>): string {
  return isInternal(crawler) ? 'async=true crawls' : `crawler "${crawler.name}"`;
}

/**
 * Creates the storage-mode crawler that carries a token's `async=true` crawls, unless it exists.
 * With it those crawls are as durable, limited and retried as any other.
 */
export async function ensureAsyncCrawler(
  deps: {
    readonly crawlers: Pick<CrawlerStore, 'insert'>;
    readonly clock: ServiceClock;
    readonly defaults: CrawlerDefaults;
  },
  owner: TokenOwner,
): Promise<void> {
  await deps.crawlers.insert(
    newCrawler({
      accountId: owner.account.accountId,
      name: storedName(ASYNC_CRAWLER, owner.tokenType),
      tokenType: owner.tokenType,
      delivery: 'storage',
      callbackUrl: undefined,
      settings: {},
      defaults: deps.defaults,
      now: wallNow(deps.clock),
    }),
  );
}
