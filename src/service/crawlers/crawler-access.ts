import type { TokenOwner } from '../../domain/account.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import { isInternal } from '../../domain/crawler-name.ts';
import { crawlerNotFound, DomainError, missingField } from '../../domain/errors.ts';
import type { CrawlerStore } from '../../store/store.ts';
import { type CrawlerReference, storedName } from './async-crawler.ts';
import { createExpiringCache } from './expiring-cache.ts';

/** Finds the crawler a call names, for a caller who may address it. The service's own have no name a client could use. */
export interface CrawlerAccess {
  /** As the store has it now, for calls whose field is `name`. Throws `not_found`, or `forbidden` when its token type is not the caller's. */
  find(owner: TokenOwner, reference: CrawlerReference): Promise<Crawler>;
  /** The same, up to a second old: for pushes, which the store checks once more; their field is `crawler`. */
  findRecent(owner: TokenOwner, reference: CrawlerReference): Promise<Crawler>;
  /** Forgets a crawler that was changed or removed. */
  forget(crawler: Pick<Crawler, 'accountId' | 'name'>): void;
}

const CACHE_MS = 1_000;

/** Makes the look-up. */
export function createCrawlerAccess(deps: {
  readonly crawlers: Pick<CrawlerStore, 'findByName'>;
  readonly clock: Clock;
}): CrawlerAccess {
  const recent = createExpiringCache<Crawler>({
    clock: deps.clock,
    ttlMs: CACHE_MS,
    maxEntries: 10_000,
  });
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
      const look = () => deps.crawlers.findByName(accountId, name);
      const crawler = await recent.get(cacheKey(accountId, name), look);
      // Of the other type, it may have been made anew since.
      const isOther = crawler !== undefined && crawler.tokenType !== owner.tokenType;
      return checked(owner, name, isOther ? await look() : crawler, 'crawler');
    },
    forget: (crawler) => recent.forget(cacheKey(crawler.accountId, crawler.name)),
  };
}
