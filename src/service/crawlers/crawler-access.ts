import type { TokenOwner } from '../../domain/account.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import { isInternal } from '../../domain/crawler-name.ts';
import { crawlerNotFound, DomainError, missingField } from '../../domain/errors.ts';
import { createLruMap } from '../../domain/lru-map.ts';
import type { CrawlerStore } from '../../store/store.ts';
import { type CrawlerReference, storedName } from './async-crawler.ts';
import { createExpiringCache } from './expiring-cache.ts';

/**
 * Finds the crawler that a call names, and checks that the caller may address it. The service's own
 * crawlers have no name that a client could use.
 */
export interface CrawlerAccess {
  /**
   * Reads the crawler from the store, for calls whose field is `name`. Throws `not_found`, or
   * `forbidden` when the crawler was made with the account's other token.
   */
  find(owner: TokenOwner, reference: CrawlerReference): Promise<Crawler>;
  /**
   * Returns the crawler as it was up to a second ago, for pushes, whose field is `crawler`: the
   * store checks them once more. Throws as {@link find} does.
   */
  findRecent(owner: TokenOwner, reference: CrawlerReference): Promise<Crawler>;
  /** Returns the crawler as {@link findRecent} last did, which may be long ago. */
  asFoundLast(crawlerId: string): Crawler | undefined;
  /** Drops the cached crawler after it was changed or removed. */
  forget(crawler: Pick<Crawler, 'accountId' | 'name'>): void;
}

const CACHE_MS = 1_000;
const MAX_FOUND = 10_000;

/** Makes the look-up. */
export function createCrawlerAccess(deps: {
  readonly crawlers: Pick<CrawlerStore, 'findByName'>;
  readonly clock: Clock;
}): CrawlerAccess {
  const recent = createExpiringCache<Crawler>({
    clock: deps.clock,
    ttlMs: CACHE_MS,
    maxEntries: MAX_FOUND,
  });
  const found = createLruMap<string, Crawler>({ maxEntries: MAX_FOUND });
  const cacheKey = (accountId: string, name: string): string => `${accountId} ${name}`;

  function checked(
    owner: TokenOwner,
    name: string,
    crawler: Crawler | undefined,
    field: 'name' | 'crawler',
  ): Crawler {
    if (name === '') {
      throw missingField(field);
    }
    if (crawler === undefined) throw crawlerNotFound(name, field);
    if (crawler.tokenType !== owner.tokenType) {
      const kind = crawler.tokenType === 'javascript' ? 'JavaScript' : 'Normal';
      throw new DomainError(
        'forbidden',
        'wrong_token_type',
        `The crawler "${name}" is addressed with the ${kind} token.`,
      );
    }
    return crawler;
  }

  function referencedName(
    owner: TokenOwner,
    reference: CrawlerReference,
    field: 'name' | 'crawler',
  ): string {
    const name = storedName(reference, owner.tokenType);
    if (name === reference && isInternal({ name })) throw crawlerNotFound(name, field);
    return name;
  }

  return {
    async find(owner, reference) {
      const { accountId } = owner.account;
      const name = referencedName(owner, reference, 'name');
      return checked(owner, name, await deps.crawlers.findByName(accountId, name), 'name');
    },
    async findRecent(owner, reference) {
      const { accountId } = owner.account;
      const name = referencedName(owner, reference, 'crawler');
      const read = () => deps.crawlers.findByName(accountId, name);
      const crawler = await recent.get(cacheKey(accountId, name), read);
      // A cached crawler of the other token type may have been deleted and created again since.
      const isOther = crawler !== undefined && crawler.tokenType !== owner.tokenType;
      const current = checked(owner, name, isOther ? await read() : crawler, 'crawler');
      found.set(current.crawlerId, current);
      return current;
    },
    asFoundLast: found.get,
    forget(crawler) {
      recent.forget(cacheKey(crawler.accountId, crawler.name));
    },
  };
}
