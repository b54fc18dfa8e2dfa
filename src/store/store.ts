import type { Account, TokenOwner, TokenType } from '../domain/account.ts';
import type { Allowance } from '../domain/allowance.ts';
import type { Crawler, CrawlerCounters, WebhookSecret } from '../domain/crawler.ts';
import type { CrawlerSettings } from '../domain/crawler-settings.ts';
import type { QueuedNotice } from '../domain/notice.ts';
import type { AccountLimits, AccountUsage } from '../domain/quotas.ts';
import type { CrawlRecord, StoredResult } from '../domain/result.ts';
import type { HistoryDay } from '../domain/stats.ts';
import type { DeliveryStore } from './delivery-store.ts';
import type { QueueStore } from './queue-store.ts';

export type * from './delivery-store.ts';
export type * from './queue-store.ts';

/**
 * Everything the service keeps. Two implementations hold to the same contract (`test/contract`): SQLite for one process,
 * MongoDB for many. Compare-and-set happens inside; callers learn what was won. Each write is durable when its promise
 * resolves. Every failure is a `DomainError`; a database that cannot answer is kind `unavailable`. Moments are passed in
 * (`now`), so tests bring their own clock.
 */
export interface Store {
  readonly accounts: AccountStore;
  readonly crawlers: CrawlerStore;
  readonly queue: QueueStore;
  readonly deliveries: DeliveryStore;
  readonly results: ResultStore;
  readonly stats: StatsStore;
  readonly rates: RateStore;
  readonly screenshots: ScreenshotStore;
  readonly notices: NoticeStore;
  /** Resolves when the database answers; throws `unavailable` otherwise. */
  ping(): Promise<void>;
  /**
   * Removes what is past its retention and repairs counters that a crash left behind, for some seconds at most or until `signal` is
   * aborted; what is left is the next call's. Cheap when there is nothing to do.
   */
  maintain(now: Date, signal?: AbortSignal): Promise<MaintenanceReport>;
  close(): Promise<void>;
}

/** The parts of the store, by the things they keep. */
export type AggregateName = Exclude<keyof Store, 'ping' | 'maintain' | 'close'>;

/** What one `maintain` did. */
export interface MaintenanceReport {
  /** Records, deliveries, screenshots and push requests past their retention. */
  readonly expired: number;
  /** Crawlers whose counters were wrong. */
  readonly repaired: number;
}

/** A page of a listing: rows after `after` in name order, at most `limit`. */
export interface Paging {
  readonly limit: number;
  readonly after?: string;
}

/** What `AccountStore.update` changes; an absent field stays as it is. */
export interface AccountPatch {
  readonly email?: string;
  readonly tokenHashes?: Partial<Record<TokenType, string>>;
  /** Replaces all of the account's own limits. */
  readonly limits?: Partial<AccountLimits>;
}

export interface AccountStore {
  /** Throws `conflict` when the name or a token is taken. */
  create(account: Account): Promise<void>;
  /** Whose token has this SHA-256 (hexadecimal). */
  findByTokenHash(hash: string): Promise<TokenOwner | undefined>;
  findByName(name: string): Promise<Account | undefined>;
  get(accountId: string): Promise<Account | undefined>;
  list(paging: Paging): Promise<Account[]>;
  /** The account as it is now; undefined when there is none. */
  update(accountId: string, patch: AccountPatch): Promise<Account | undefined>;
  /**
   * False when there is none. Throws `failed_precondition` while it has crawlers. Its results are removed by `maintain`,
   * some at a time.
   */
  remove(accountId: string, now: Date): Promise<boolean>;
  /** Waiting and retrying URLs of all its crawlers. */
  queued(accountId: string): Promise<number>;
  /** What it uses of its quotas, from counters that move with what they count; undefined when there is none. */
  usage(accountId: string): Promise<AccountUsage | undefined>;
}

/** The limits of an account that making and changing crawlers is held to; 0 is no limit. */
export type CrawlerQuota = Pick<AccountLimits, 'crawlers' | 'concurrency'>;

/** What `CrawlerStore.update` changes; an absent field stays as it is. */
export type CrawlerPatch = Partial<CrawlerSettings> & {
  readonly callbackUrl?: string;
  readonly webhookSecrets?: readonly WebhookSecret[];
};

/** A change of one of a crawler's two pauses; `user_unpause` lifts both. */
export type PauseChange = 'user_pause' | 'user_unpause' | 'monitor_pause' | 'monitor_resume';

export interface CrawlerStore {
  /**
   * The crawler that has this name in this account now, and whether this call made it. Throws what `quotaExceeded` makes when
   * it would pass a quota (the service's own crawlers are exempt), and `unauthenticated` when the account is gone.
   */
  insert(
    crawler: Crawler,
    quota?: CrawlerQuota,
  ): Promise<{ readonly crawler: Crawler; readonly inserted: boolean }>;
  findByName(accountId: string, name: string): Promise<Crawler | undefined>;
  get(crawlerId: string): Promise<Crawler | undefined>;
  /** By name; only those of one token type when given. */
  list(accountId: string, paging: Paging, tokenType?: TokenType): Promise<Crawler[]>;
  /**
   * The crawler as it is now; undefined when there is none. Fields absent from `patch` stay. Throws what `quotaExceeded` makes
   * when a higher concurrency would pass the quota.
   */
  update(
    crawlerId: string,
    patch: CrawlerPatch,
    now: Date,
    quota?: Pick<CrawlerQuota, 'concurrency'>,
  ): Promise<Crawler | undefined>;
  /**
   * Sets one of the two pauses; `unpause` by the user lifts both. `changed` is false when it was so already, which makes
   * one caller of many the one that acts on it. `reason` is the monitor's, kept while its pause holds.
   */
  setPaused(
    crawlerId: string,
    change: PauseChange,
    now: Date,
    reason?: string,
  ): Promise<{ readonly crawler: Crawler; readonly changed: boolean } | undefined>;
  /** Removes the crawler with its jobs, deliveries and statistics; the URLs that were queued, undefined when there is none. */
  remove(crawlerId: string): Promise<{ readonly purged: number } | undefined>;
  counters(crawlerIds: readonly string[]): Promise<Map<string, CrawlerCounters>>;
  /**
   * Takes up to `limit` webhook crawlers whose probe is due, with all that have the same callback URLs, and sets their next probe
   * `intervalMs` later. A new crawler's first probe is its URL's next one, or at a random moment within its first interval, so
   * that probes spread by themselves. Each due probe is given to one caller.
   */
  claimProbes(now: Date, intervalMs: number, limit: number): Promise<Crawler[]>;
}

/** Whose storage: results of the two tokens are separate. */
export interface ResultScope {
  readonly accountId: string;
  readonly tokenType: TokenType;
}

/** A page of a listing of `rid`s: from the beginning, or behind the `cursor` of the page before. */
export interface RidsPage {
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  readonly cursor?: string;
}

export interface ResultStore {
  /** Stores a record that belongs to no crawler (an inline crawl kept with `store`). */
  put(scope: ResultScope, record: CrawlRecord, now: Date, expiresAt: Date): Promise<void>;
  get(scope: ResultScope, rid: string): Promise<StoredResult | undefined>;
  /** The newest record of a pushed URL. */
  newestByUrl(scope: ResultScope, pushedUrl: string): Promise<StoredResult | undefined>;
  /** Those that exist, in the order of `rids`. */
  getMany(scope: ResultScope, rids: readonly string[]): Promise<StoredResult[]>;
  /** The bytes of the pages of those that exist, without reading them. */
  sizes(scope: ResultScope, rids: readonly string[]): Promise<Map<string, number>>;
  /** Which of them existed and are gone now. */
  remove(scope: ResultScope, rids: readonly string[]): Promise<Set<string>>;
  /** `rid`s by time of storing; `cursor` is the last page's. */
  rids(
    scope: ResultScope,
    page: RidsPage,
  ): Promise<{ readonly rids: string[]; readonly cursor: string | undefined }>;
  count(scope: ResultScope): Promise<number>;
}

/** Days between two days inclusive (`YYYY-MM-DD`); no bound where one is absent. */
export interface DayRange {
  readonly from?: string;
  readonly to?: string;
}

export interface StatsStore {
  /** The days of each crawler, oldest first. */
  history(crawlerIds: readonly string[], range: DayRange): Promise<Map<string, HistoryDay[]>>;
}

export interface RateStore {
  /**
   * Takes `count` units from the token's allowance of `perSecond` (a bucket that holds one second's worth), shared by all
   * processes. Grants fewer when fewer are left; `retryAfterMs` says when one more will be.
   */
  take(
    key: string,
    count: number,
    perSecond: number,
    now: Date,
  ): Promise<{ readonly granted: number; readonly retryAfterMs: number }>;
  /**
   * Takes all of `count` units or nothing from an allowance that starts full. `left` is what it then holds, `retryAfterMs` how long it
   * is until it holds `count`, or one more when that is 0. Its refill must not take longer than an hour. The embedded store
   * forgets at a restart.
   */
  takeWhole(
    key: string,
    count: number,
    allowance: Allowance,
    now: Date,
  ): Promise<{
    readonly granted: boolean;
    readonly left: number;
    readonly retryAfterMs: number;
  }>;
}

/** The outbox of messages to owners of accounts. */
export interface NoticeStore {
  /** A notice whose `noticeId` is there already changes nothing. */
  add(notice: QueuedNotice): Promise<void>;
  /**
   * Takes up to `limit` due notices, earliest due first; who does not remove or postpone them within `leaseMs`, as after a crash, leaves
   * them due again. Each is given to one caller.
   */
  claim(now: Date, leaseMs: number, limit: number): Promise<QueuedNotice[]>;
  remove(noticeIds: readonly string[]): Promise<void>;
  postpone(noticeIds: readonly string[], dueAt: Date): Promise<void>;
}

/** Pictures that live for an hour. */
export interface ScreenshotStore {
  put(id: string, contentType: string, bytes: Uint8Array, expiresAt: Date): Promise<void>;
  get(id: string, now: Date): Promise<{ contentType: string; bytes: Uint8Array } | undefined>;
}
