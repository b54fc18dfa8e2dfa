import type { TokenOwner } from '../domain/account.ts';
import type { Clock } from '../domain/clock.ts';
import type { Crawler } from '../domain/crawler.ts';
import { DomainError, invalidField } from '../domain/errors.ts';
import type { CrawlerStore } from '../store/store.ts';
import { type CrawlerReference, isInternal, storedNameOf } from './async-crawler.ts';
import { createExpiringCache } from './expiring-cache.ts';

/** Finds the crawler a call names, for a caller who may address it. The service's own have no name a client could use. */
export interface CrawlerAccess {
  /** As the store has it now. Throws `not_found`, or `forbidden` when its token type is not the caller's. */
  find(owner: TokenOwner, reference: CrawlerReference): Promise<Crawler>;
  /** The same, up to a second old: for pushes, which the store checks once more. */
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
  const keyOf = (accountId: string, name: string): string => `${accountId} ${name}`;

  function checked(owner: TokenOwner, name: string, crawler: Crawler | undefined): Crawler {
    if (name === '') {
      throw invalidField('crawler', 'The crawler parameter is missing.', 'missing_crawler');
    }
    if (crawler === undefined) throw notFound(name);
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

  function nameOf(owner: TokenOwner, reference: CrawlerReference): string {
    const name = storedNameOf(reference, owner.tokenType);
    if (name === reference && isInternal({ name })) throw notFound(name);
    return name;
  }

  return {
    async find(owner, reference) {
      const { accountId } = owner.account;
      const name = nameOf(owner, reference);
      return checked(owner, name, await deps.crawlers.findByName(accountId, name));
    },
    async findRecent(owner, reference) {
      const { accountId } = owner.account;
      const name = nameOf(owner, reference);
      const crawler = await recent.get(keyOf(accountId, name), () =>
        deps.crawlers.findByName(accountId, name),
      );
      return checked(owner, name, crawler);
    },
    forget: (crawler) => recent.forget(keyOf(crawler.accountId, crawler.name)),
  };
}

function notFound(name: string): DomainError {
  return new DomainError('not_found', 'crawler_not_found', `There is no crawler "${name}".`, {
    field: 'crawler',
  });
}
