import type { Dispatcher } from '../../dispatcher/dispatcher.ts';
import { scopeOf, type TokenOwner } from '../../domain/account.ts';
import type { Attention } from '../../domain/attention.ts';
import { type ServiceClock, wallNow } from '../../domain/clock.ts';
import { type Crawler, type CrawlerCounters, newCrawler } from '../../domain/crawler.ts';
import { parseCrawlerName } from '../../domain/crawler-name.ts';
import { type CrawlerDefaults, settingNames } from '../../domain/crawler-settings.ts';
import { defined } from '../../domain/defined.ts';
import { deliveryModes } from '../../domain/delivery-mode.ts';
import { crawlerNotFound, DomainError, invalidField } from '../../domain/errors.ts';
import { fieldName } from '../../domain/field-name.ts';
import { parseRungs, type Rung } from '../../domain/rungs.ts';
import { rotateSecrets } from '../../domain/webhook-signature.ts';
import type { Scheduler } from '../../scheduler/scheduler.ts';
import type { Store } from '../../store/store.ts';
import type { Quotas } from '../accounts/quotas.ts';
import type { UsablePools } from '../crawls/usable-pools.ts';
import { assertPool, assertProxies, type CrawlOffer } from '../queue/crawl-request.ts';
import type { ReadAttention } from '../reads/overviews.ts';
import { BEFORE_CLIENT_NAMES } from './async-crawler.ts';
import type { CrawlerAccess } from './crawler-access.ts';
import {
  assertApplicable,
  assertFixed,
  assertSame,
  type CheckedCrawlerInput,
  type CrawlerInput,
  checkCrawlerInput,
  chooseDelivery,
} from './crawler-input.ts';

/** A crawler with its counters. */
export interface CrawlerDetails {
  readonly crawler: Crawler;
  readonly counters: CrawlerCounters;
  /** Waiting URLs that may not be crawled yet. */
  readonly scheduled: number;
  readonly attention: readonly Attention[];
}

/**
 * The use cases of managing crawlers. Every method throws `not_found` and `forbidden` as {@link
 * CrawlerAccess} does.
 */
export interface CrawlerManagement {
  /**
   * Creates the crawler, or returns the existing one with `created` false. Throws `conflict` when a
   * crawler of this name has other values.
   */
  create(
    owner: TokenOwner,
    name: string,
    input: CrawlerInput,
  ): Promise<CrawlerDetails & { readonly created: boolean }>;
  details(owner: TokenOwner, name: string): Promise<CrawlerDetails>;
  /** Crawlers of the token's type by name; `after` is the last name of the previous page. */
  list(owner: TokenOwner, limit: number, after: string): Promise<Crawler[]>;
  /**
   * Throws `failed_precondition` when the delivery mode or token type would change or the crawler has
   * another etag, `invalid` when the input changes nothing.
   */
  update(
    owner: TokenOwner,
    name: string,
    input: CrawlerInput,
    etag?: string,
  ): Promise<CrawlerDetails>;
  pause(owner: TokenOwner, name: string): Promise<CrawlerDetails>;
  unpause(owner: TokenOwner, name: string): Promise<CrawlerDetails>;
  /** Removes all waiting and retrying URLs. Returns how many. */
  purge(owner: TokenOwner, name: string): Promise<number>;
  /** Removes the crawler. Returns how many queued URLs were removed with it. */
  remove(owner: TokenOwner, name: string): Promise<number>;
  /** Returns the new secret, and until when the previous one signs as well. */
  rotateSecret(owner: TokenOwner, name: string): Promise<{ secret: string; previousUntil: Date }>;
}

/** What the crawler management works with. */
export interface CrawlerManagementDeps {
  readonly store: Pick<Store, 'crawlers' | 'queue'>;
  readonly access: CrawlerAccess;
  readonly dispatcher: Pick<Dispatcher, 'refresh' | 'abortCrawler'>;
  readonly scheduler: Pick<Scheduler, 'wake'>;
  readonly clock: ServiceClock;
  readonly quotas: Pick<Quotas, 'limits' | 'holds'>;
  readonly defaults: CrawlerDefaults;
  readonly attention: ReadAttention;
  /** Why a callback URL can never be called; undefined when it may be callable. */
  readonly whyNotCallable: (callbackUrl: string) => string | undefined;
  readonly usablePools: Pick<UsablePools, 'of'>;
}

const CHANGEABLE = ['callback_url', ...settingNames.map(fieldName)]
  .join(', ')
  .replace(/, (?=[^,]*$)/, ' or ');

/** Makes the crawler management. */
export function createCrawlerManagement(deps: CrawlerManagementDeps): CrawlerManagement {
  const { store, access, clock } = deps;

  async function checked(
    input: CrawlerInput,
    { tokenType, account }: TokenOwner,
    before?: Crawler,
  ): Promise<CheckedCrawlerInput> {
    const wanted = checkCrawlerInput(input);
    const settings = { ...before, ...wanted.settings, tokenType };
    const named = [wanted.settings.proxy, ...parseRungs(settings.escalate ?? '').map(toPool)];
    const wishes = named.map((proxy) => ({ proxy }));
    const offer = { pools: await deps.usablePools.of(account.accountId, wishes) };
    assertProxies({ proxy: wanted.settings.proxy }, offer);
    assertLadder(settings, offer);
    const why =
      wanted.callbackUrl === undefined ? undefined : deps.whyNotCallable(wanted.callbackUrl);
    if (why === undefined) return wanted;
    throw invalidField('callback_url', `callback_url ${why}.`);
  }

  async function withCounters(crawler: Crawler): Promise<CrawlerDetails> {
    const { crawlerId } = crawler;
    const [found, scheduled, holds] = await Promise.all([
      store.crawlers.counters([crawlerId]),
      store.queue.countScheduled(crawlerId, clock.now()),
      deps.quotas.holds(crawler.accountId),
    ]);
    const counters = found.get(crawlerId);
    // The crawler was removed after it was read.
    if (counters === undefined) throw crawlerNotFound(crawler.name, 'name');
    const attention = deps.attention({ crawler, counters }, holds);
    return { crawler, counters, scheduled, attention };
  }

  async function changed(
    name: string,
    change: Promise<Crawler | undefined>,
  ): Promise<CrawlerDetails> {
    const crawler = await change;
    if (crawler === undefined) throw crawlerNotFound(name, 'name');
    access.forget(crawler);
    deps.dispatcher.refresh(crawler.crawlerId);
    return withCounters(crawler);
  }

  async function setPaused(
    owner: TokenOwner,
    name: string,
    change: 'user_pause' | 'user_unpause',
  ): Promise<CrawlerDetails> {
    const { crawlerId } = await access.find(owner, name);
    const result = store.crawlers.setPaused(crawlerId, change, clock.now());
    const details = await changed(
      name,
      result.then((found) => found?.crawler),
    );
    if (change === 'user_unpause') await deps.scheduler.wake('crawl', crawlerId, clock.now());
    return details;
  }

  return {
    async create(owner, name, input) {
      const wanted = await checked(input, owner);
      const { settings, callbackUrl } = wanted;
      const { accountId, tokenType } = scopeOf(owner);
      const parsedName = parseCrawlerName(name);
      if (wanted.tokenType !== undefined && wanted.tokenType !== tokenType) {
        throw invalidField('token_type', 'token_type must be the type of the token that is used.');
      }
      const delivery = chooseDelivery(wanted);
      assertApplicable(delivery, wanted);
      const { crawler, inserted } = await store.crawlers.insert(
        newCrawler({
          accountId,
          name: parsedName,
          tokenType,
          delivery,
          callbackUrl,
          settings,
          defaults: deps.defaults,
          now: wallNow(clock),
        }),
        deps.quotas.limits(owner.account),
      );
      access.note(crawler);
      if (!inserted) {
        assertSame(crawler, { ...settings, ...defined({ callbackUrl }), tokenType, delivery });
      }
      return { ...(await withCounters(crawler)), created: inserted };
    },

    details: async (owner, name) => withCounters(await access.find(owner, name)),

    async list(owner, limit, after) {
      // The page starts after the service's own crawlers, so they take no place in it.
      const paging = { limit, after: after < BEFORE_CLIENT_NAMES ? BEFORE_CLIENT_NAMES : after };
      return store.crawlers.list(owner.account.accountId, paging, owner.tokenType);
    },

    async update(owner, name, input, etag) {
      const crawler = await access.find(owner, name);
      const wanted = await checked(input, owner, crawler);
      assertFixed(crawler, wanted);
      assertApplicable(crawler.delivery, wanted);
      const patch = { ...wanted.settings, ...defined({ callbackUrl: wanted.callbackUrl }) };
      if (Object.keys(patch).length === 0) {
        throw new DomainError(
          'invalid',
          'nothing_to_change',
          `The request changes nothing: give ${CHANGEABLE}. The status is changed by pause and unpause; name, delivery and token_type never change.`,
        );
      }
      const limits = deps.quotas.limits(owner.account);
      const details = await changed(
        name,
        store.crawlers.update(crawler.crawlerId, patch, clock.now(), limits, etag),
      );
      // URLs that nothing could crawl before may start now.
      await deps.scheduler.wake('crawl', crawler.crawlerId, clock.now());
      return details;
    },

    pause: (owner, name) => setPaused(owner, name, 'user_pause'),
    unpause: (owner, name) => setPaused(owner, name, 'user_unpause'),

    async purge(owner, name) {
      const { crawlerId } = await access.find(owner, name);
      const purged = await store.queue.purge(crawlerId, clock.now());
      deps.dispatcher.refresh(crawlerId);
      return purged;
    },

    async remove(owner, name) {
      const crawler = await access.find(owner, name);
      deps.dispatcher.abortCrawler(crawler.crawlerId);
      const removed = await store.crawlers.remove(crawler.crawlerId);
      access.forget(crawler);
      // One that is gone by now was removed by another call, or by this one: the driver repeats a
      // command of which it got no answer.
      return removed?.purged ?? 0;
    },

    async rotateSecret(owner, name) {
      let crawler = await access.find(owner, name);
      const { title, postsToCallback } = deliveryModes[crawler.delivery];
      if (!postsToCallback) {
        throw new DomainError(
          'failed_precondition',
          'no_webhook',
          `A ${title.toLowerCase()}-mode crawler signs nothing.`,
        );
      }
      for (;;) {
        const now = wallNow(clock);
        const { crawlerId, webhookSecrets } = crawler;
        const secrets = rotateSecrets(webhookSecrets, now);
        const [newest, previous] = secrets;
        if (newest === undefined) throw new Error('rotation made no secret');
        const known = webhookSecrets[0]?.secret;
        const result = await store.crawlers.replaceSecrets(crawlerId, known, secrets, clock.now());
        if (result === undefined) throw crawlerNotFound(name, 'name');
        if (result.changed) {
          access.forget(result.crawler);
          deps.dispatcher.refresh(crawlerId);
          return { secret: newest.secret, previousUntil: previous?.expiresAt ?? now };
        }
        // Another rotation came first: this one replaces its secret.
        crawler = result.crawler;
      }
    },
  };
}

const toPool = ({ pool }: Rung): string => pool;

/** Throws `invalid` when a crawler cannot climb its ladder. */
function assertLadder(
  { escalate, proxy, tokenType }: Partial<Pick<Crawler, 'escalate' | 'proxy' | 'tokenType'>>,
  offer: Pick<CrawlOffer, 'pools'>,
): void {
  if (escalate === undefined) return;
  const rungs = parseRungs(escalate);
  for (const { pool } of rungs) assertPool('escalate', pool, offer);
  const browsed = rungs.find(({ inBrowser }) => inBrowser);
  if (browsed !== undefined && tokenType === 'javascript') {
    throw invalidField(
      'escalate',
      `escalate: the JavaScript token always crawls in the browser; write ${browsed.name.replace('browser:', '')} for ${browsed.name}.`,
    );
  }
  if (proxy !== undefined) {
    throw invalidField('escalate', 'escalate takes the place of proxy, which has to be empty.');
  }
}
