import type { TokenOwner } from '../../domain/account.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import { isInternal } from '../../domain/crawler-name.ts';
import { crawlerNotFound, DomainError, missingField } from '../../domain/errors.ts';
import { createLruMap } from '../../domain/lru-map.ts';
import type { CrawlerStore } from '../../store/store.ts';
import { createExpiringCache } from '../expiring-cache.ts';
import { type CrawlerReference, storedName } from './async-crawler.ts';

/**
 * Finds the crawler that a call names, and checks that the caller may address it. The service's own
 * crawlers have no name that a client could use.
 */
export interface CrawlerAccess {
  /**
   * Reads the crawler from the store. `field` is the field of the call that names it, `name` unless
   * given. Throws `not_found`, or `forbidden` when the crawler was made with the account's other token.
   */
  find(
    owner: TokenOwner,
    reference: CrawlerReference,
    field?: 'name' | 'crawler',
  ): Promise<Crawler>;
  /** As {@link find}, but returns undefined when no crawler has this name any more, or ever had. */
  findIfAny(owner: TokenOwner, reference: CrawlerReference): Promise<Crawler | undefined>;
  /**
   * Returns the crawler as it was up to a second ago, for pushes, whose field is `crawler`: the
   * store checks them once more. Throws as {@link find} does.
   */
  findRecent(owner: TokenOwner, reference: CrawlerReference): Promise<Crawler>;
  /**
   * Returns the crawler as it was found last, however long ago: for pushes, of which the store checks
   * that it has not changed since. Throws as {@link findRecent} does.
   */
  findForPush(owner: TokenOwner, reference: CrawlerReference): Promise<Crawler>;
  /** The crawler as it was found last, however long ago. */
  lastKnown(crawlerId: string): Crawler | undefined;
  /** Notes a crawler that was just made. */
  note(crawler: Crawler): void;
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
  /** By `crawlerId`, and by name. */
  const found = createLruMap<string, Crawler>({ maxEntries: MAX_FOUND });
  const named = createLruMap<string, Crawler>({ maxEntries: MAX_FOUND });
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

  function note(crawler: Crawler): void {
    found.set(crawler.crawlerId, crawler);
    named.set(cacheKey(crawler.accountId, crawler.name), crawler);
  }

  async function findRecent(owner: TokenOwner, reference: CrawlerReference): Promise<Crawler> {
    const { accountId } = owner.account;
    const name = referencedName(owner, reference, 'crawler');
    const read = () => deps.crawlers.findByName(accountId, name);
    const crawler = await recent.get(cacheKey(accountId, name), read);
    // A cached crawler of the other token type may have been deleted and created again since.
    const isOther = crawler !== undefined && crawler.tokenType !== owner.tokenType;
    const current = checked(owner, name, isOther ? await read() : crawler, 'crawler');
    note(current);
    return current;
  }

  return {
    async find(owner, reference, field = 'name') {
      const { accountId } = owner.account;
      const name = referencedName(owner, reference, field);
      return checked(owner, name, await deps.crawlers.findByName(accountId, name), field);
    },
    async findIfAny(owner, reference) {
      const { accountId } = owner.account;
      const name = referencedName(owner, reference, 'name');
      const crawler = await deps.crawlers.findByName(accountId, name);
      return crawler === undefined && name !== ''
        ? undefined
        : checked(owner, name, crawler, 'name');
    },
    findRecent,
    async findForPush(owner, reference) {
      const name = referencedName(owner, reference, 'crawler');
      const last = named.get(cacheKey(owner.account.accountId, name));
      return last?.tokenType === owner.tokenType ? last : findRecent(owner, reference);
    },
    lastKnown: found.get,
    note,
    forget({ accountId, name }) {
      const key = cacheKey(accountId, name);
      recent.forget(key);
      named.delete(key);
    },
  };
}
