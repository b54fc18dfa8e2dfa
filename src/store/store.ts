import type { Account, TokenOwner, TokenType } from '../domain/account.ts';
import type { Crawler, CrawlerCounters, WebhookSecret } from '../domain/crawler.ts';
import type { CrawlerSettings } from '../domain/crawler-settings.ts';
import type { QueuedNotice } from '../domain/notice.ts';
import type { AccountLimits, AccountUsage } from '../domain/quotas.ts';
import type { CrawlRecord, StoredResult } from '../domain/result.ts';
import type { CookieChanges, SessionCookie } from '../domain/session-cookies.ts';
import type { StoreTraits } from '../domain/store-traits.ts';
import type { AuditStore } from './audit-store.ts';
import type { BatchStore } from './batch-store.ts';
import type { DeliveryStore } from './delivery-store.ts';
import type { HostStore } from './host-store.ts';
import type { ListingStore } from './listing-store.ts';
import type { ProcessStore } from './process-store.ts';
import type { ProxyPoolStore } from './proxy-pool-store.ts';
import type { QueueStore } from './queue-store.ts';
import type { RateStore } from './rate-store.ts';
import type { ScreenshotStore } from './screenshot-store.ts';
import type { ShareStore } from './share-store.ts';
import type { StatsStore } from './stats-store.ts';

export type * from './audit-store.ts';
export type * from './batch-store.ts';
export type * from './delivery-store.ts';
export type * from './failed-crawls.ts';
export type * from './host-store.ts';
export type * from './listing-store.ts';
export type * from './process-store.ts';
export type * from './proxy-pool-store.ts';
export type * from './queue-store.ts';
export type * from './rate-store.ts';
export type * from './screenshot-store.ts';
export type * from './share-store.ts';
export type * from './stats-store.ts';

/**
 * Everything that the service keeps. Two implementations pass the same contract (`test/contract`):
 * SQLite for one process, MongoDB for many. They compare and set inside; callers learn which
 * changes they have won. Each write is durable when its promise resolves. Every failure is a
 * `DomainError`; a database that cannot answer is of kind `unavailable`. The time is a parameter
 * (`now`), so that tests use a clock of their own.
 */
export interface Store {
  readonly accounts: AccountStore;
  readonly crawlers: CrawlerStore;
  readonly queue: QueueStore;
  readonly batches: BatchStore;
  readonly hosts: HostStore;
  readonly traits: StoreTraits;
  /** Divides crawlers among processes. Undefined if a crawler is always crawled by one process. */
  readonly shares?: ShareStore | undefined;
  readonly deliveries: DeliveryStore;
  readonly results: ResultStore;
  readonly stats: StatsStore;
  readonly rates: RateStore;
  readonly screenshots: ScreenshotStore;
  readonly notices: NoticeStore;
  readonly listings: ListingStore;
  readonly processes: ProcessStore;
  readonly cookieSessions: CookieSessionStore;
  readonly audit: AuditStore;
  readonly proxyPools: ProxyPoolStore;
  /** How the transactions of this process ended; undefined of a database that aborts none. */
  readonly transactions?: (() => TransactionCounts) | undefined;
  /**
   * Resolves when the database answers, and takes a write if the disk has refused the one before;
   * throws `unavailable` otherwise.
   */
  ping(): Promise<void>;
  /**
   * Removes records past their retention and repairs counters after a crash, for some seconds at
   * most or until `signal` is aborted; the next call does the rest. Cheap when there is nothing to
   * do.
   */
  maintain(now: Date, signal?: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** The names of the parts that every store has. */
export type AggregateName = Exclude<
  keyof Store,
  'shares' | 'traits' | 'transactions' | 'ping' | 'maintain' | 'close'
>;

/** Transactions since the start, and how often one was aborted; most of these were tried again. */
export interface TransactionCounts {
  readonly committed: number;
  readonly aborted: number;
}

/** A page of a listing: at most `limit` rows behind `after`, by name. */
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
  /** Throws `conflict` if the name or a token is taken. */
  create(account: Account): Promise<void>;
  /** The owner of the token with this SHA-256 (hexadecimal). */
  findByTokenHash(hash: string): Promise<TokenOwner | undefined>;
  findByName(name: string): Promise<Account | undefined>;
  get(accountId: string): Promise<Account | undefined>;
  list(paging: Paging): Promise<Account[]>;
  /** Returns the changed account; undefined if it does not exist. */
  update(accountId: string, patch: AccountPatch): Promise<Account | undefined>;
  /**
   * False if it does not exist. Throws `failed_precondition` while it has crawlers. `maintain`
   * removes its results, a batch at a time.
   */
  remove(accountId: string, now: Date): Promise<boolean>;
  /**
   * The use of its quotas, from counters that change together with what they count; undefined if
   * there is no such account.
   */
  usage(accountId: string): Promise<AccountUsage | undefined>;
  /**
   * The accounts whose stored bytes have reached their limit, or `defaultLimit` where they have none
   * of their own; 0 is no limit. Reads all accounts.
   */
  full(defaultLimit: number): Promise<StorageUse[]>;
}

/** The stored bytes of an account. */
export interface StorageUse {
  readonly accountId: string;
  readonly usedBytes: number;
  readonly limitBytes: number;
}

/** The limits of an account that apply when a crawler is created or changed; 0 is no limit. */
export type CrawlerQuota = Pick<AccountLimits, 'crawlers' | 'concurrency'>;

/** What `CrawlerStore.update` changes; an absent field stays as it is. */
export type CrawlerPatch = Partial<CrawlerSettings> & {
  readonly callbackUrl?: string;
};

/** A change of one of a crawler's two pauses; `user_unpause` lifts both. */
export type PauseChange = 'user_pause' | 'user_unpause' | 'monitor_pause' | 'monitor_resume';

/** A probe that is made later. */
export interface PostponedProbe {
  readonly crawlerId: string;
  readonly dueAt: Date;
}

export interface CrawlerStore {
  /**
   * Returns the crawler that has this name in this account now, and whether this call inserted it.
   * Throws the error of `quotaExceeded` if it would exceed a quota (the service's own crawlers are
   * exempt), and `unauthenticated` if the account is gone.
   */
  insert(
    crawler: Crawler,
    quota?: CrawlerQuota,
  ): Promise<{ readonly crawler: Crawler; readonly inserted: boolean }>;
  findByName(accountId: string, name: string): Promise<Crawler | undefined>;
  get(crawlerId: string): Promise<Crawler | undefined>;
  /** By name; only those of `tokenType` if it is given. */
  list(accountId: string, paging: Paging, tokenType?: TokenType): Promise<Crawler[]>;
  /**
   * Returns the changed crawler; undefined if it does not exist. Throws the error of
   * `quotaExceeded` if a higher concurrency would exceed the quota, that of `assertEtag` if the
   * crawler has another `crawlerEtag` than `etag`.
   */
  update(
    crawlerId: string,
    patch: CrawlerPatch,
    now: Date,
    quota?: Pick<CrawlerQuota, 'concurrency'>,
    etag?: string,
  ): Promise<Crawler | undefined>;
  /**
   * Replaces the signing secrets if the newest of them still is `newest` (undefined: no secret
   * yet), so that no rotation overwrites another. Otherwise `changed` is false, and the crawler is
   * returned as it is now. Undefined when the crawler does not exist.
   */
  replaceSecrets(
    crawlerId: string,
    newest: string | undefined,
    secrets: readonly WebhookSecret[],
    now: Date,
  ): Promise<{ readonly crawler: Crawler; readonly changed: boolean } | undefined>;
  /**
   * Sets or lifts pauses. `changed` is false if they were so already, so that one of several
   * callers acts on the change. `reason` is the monitor's, and is kept while its pause lasts.
   */
  setPaused(
    crawlerId: string,
    change: PauseChange,
    now: Date,
    reason?: string,
  ): Promise<{ readonly crawler: Crawler; readonly changed: boolean } | undefined>;
  /**
   * Pauses one host of the crawler, or lifts that. `changed` is false if it was so already.
   */
  setHostPaused(
    crawlerId: string,
    host: string,
    paused: boolean,
    now: Date,
  ): Promise<{ readonly crawler: Crawler; readonly changed: boolean } | undefined>;
  /**
   * Removes the crawler with its jobs, deliveries and statistics, and returns the number of URLs
   * that were queued; undefined if it does not exist.
   */
  remove(crawlerId: string): Promise<{ readonly purged: number } | undefined>;
  counters(crawlerIds: readonly string[]): Promise<Map<string, CrawlerCounters>>;
  /**
   * Takes up to `limit` webhook crawlers whose probe is due, with all that have the same callback
   * URLs, and sets their next probe `intervalMs` later. The first probe of a new crawler is the
   * next one of its URL, or at a random moment within its first interval, so that probes are
   * spread evenly. Each due probe goes to one caller, who reports it with `noteProbes`, or gives it
   * back with `postponeProbes`.
   */
  claimProbes(now: Date, intervalMs: number, limit: number): Promise<Crawler[]>;
  /** Makes claimed probes due again, each at its moment. */
  postponeProbes(probes: readonly PostponedProbe[]): Promise<void>;
  /** Notes that the callback URLs of these crawlers were probed at `now`. */
  noteProbes(crawlerIds: readonly string[], now: Date): Promise<void>;
  /**
   * The number of webhook crawlers that have neither been probed nor changed since `before`. Reads
   * all crawlers.
   */
  lateProbes(before: Date): Promise<number>;
}

/**
 * The storage of a token: the results and cookie sessions of the two tokens of an account are
 * separate.
 */
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

/** Which results of a token: all, or those of one crawler, or of one of its batches. */
export interface ResultSelection extends ResultScope {
  readonly crawlerId?: string;
  readonly batchId?: string;
}

/**
 * A place in the order of a token's results: behind number `seq` of the numbering `series`. Numbers
 * start at 1. A series ends when its numbers mean nothing any more, as after a copy to another
 * database.
 */
export interface ResultPlace {
  readonly series: string;
  readonly seq: number;
}

/** A result in the order, without its page. */
export interface NumberedResult {
  readonly rid: string;
  readonly seq: number;
  /** Bytes of the page. */
  readonly size: number;
}

/** A part of the order. */
export interface NumberedResults {
  readonly results: readonly NumberedResult[];
  /**
   * Where to continue: everything up to there has been returned, and nothing will ever appear
   * before it.
   */
  readonly place: ResultPlace;
  /** Whether there was nothing more; false when there may be. */
  readonly isEnd: boolean;
}

/** What a token has in storage. */
export interface ResultTotals {
  readonly results: number;
  /** As the storage quota counts them. */
  readonly bytes: number;
}

export interface ResultStore {
  /**
   * Stores a record that belongs to no crawler: an inline crawl with `store`. Returns its `storedAt`.
   */
  put(scope: ResultScope, record: CrawlRecord, now: Date, expiresAt: Date): Promise<Date>;
  get(scope: ResultScope, rid: string): Promise<StoredResult | undefined>;
  /** The newest record of a pushed URL; with `page`, of one that was stored since then by its `pageKey`. */
  newest(
    scope: ResultScope,
    pushedUrl: string,
    page?: { readonly key: string; readonly since: Date },
  ): Promise<StoredResult | undefined>;
  /** The records that exist, in the order of `rids`. */
  getMany(scope: ResultScope, rids: readonly string[]): Promise<StoredResult[]>;
  /** The bytes of the pages that exist, by `rid`, without reading them. */
  sizes(scope: ResultScope, rids: readonly string[]): Promise<Map<string, number>>;
  /**
   * Hides records from `get`, `newest`, `sizes`, `rids` and `count` until they are removed or
   * released, or until `maintain` runs after `until`. Returns the `rid`s of those that were not
   * held before.
   */
  hold(scope: ResultScope, rids: readonly string[], until: Date): Promise<Set<string>>;
  /** Shows held records again. */
  release(scope: ResultScope, rids: readonly string[]): Promise<void>;
  /** Returns the `rid`s of the records that existed and are removed now, held or not. */
  remove(scope: ResultScope, rids: readonly string[]): Promise<Set<string>>;
  /** A page of `rid`s by time of storing; `cursor` is undefined for a page without any, behind the last. */
  rids(
    scope: ResultScope,
    page: RidsPage,
  ): Promise<{ readonly rids: string[]; readonly cursor: string | undefined }>;
  count(scope: ResultScope): Promise<number>;
  /** Undefined for more results than `MAX_SUMMED_RESULTS`, which would take too long to add up. */
  totals(scope: ResultScope): Promise<ResultTotals | undefined>;
  /**
   * Returns the next results behind `after`, up to `limit`, in the order of their commits. A place of another series, or ahead of every number, as after a backup was
   * restored, counts as the beginning.
   */
  following(
    selection: ResultSelection,
    after: ResultPlace | undefined,
    limit: number,
  ): Promise<NumberedResults>;
  /**
   * Removes up to `limit` results of the order up to `place`, oldest first, and returns how many;
   * none for a place of another series.
   */
  removeUpTo(selection: ResultSelection, place: ResultPlace, limit: number): Promise<number>;
}

/** The outbox of notices to owners of accounts. */
export interface NoticeStore {
  /** Changes nothing if a notice with this `noticeId` exists. */
  add(notice: QueuedNotice): Promise<void>;
  /**
   * Takes up to `limit` due notices, earliest due first. They are due again after `leaseMs` unless
   * they are removed or postponed before, as after a crash. Each goes to one caller.
   */
  claim(now: Date, leaseMs: number, limit: number): Promise<QueuedNotice[]>;
  remove(noticeIds: readonly string[]): Promise<void>;
  postpone(noticeIds: readonly string[], dueAt: Date): Promise<void>;
  /**
   * Notes that the trouble of these keys lasts, and returns its episodes. One that was not noted for
   * `EPISODE_GAP_MS` (`rules.ts`) is over, and begins anew. For one caller at a time.
   */
  lasting(keys: readonly string[], now: Date): Promise<Episode[]>;
  /** The owners of these episodes have been told. */
  told(keys: readonly string[]): Promise<void>;
}

/** Trouble from when it was first noted. */
export interface Episode {
  readonly key: string;
  readonly since: Date;
  readonly told: boolean;
}

/** The cookies of crawls with the same `cookies_session`, bounded by `domain/session-cookies.ts`. */
export interface CookieSessionStore {
  /** Returns the cookies of a session, whose time begins again; none when there is no session. */
  open(scope: ResultScope, name: string, now: Date): Promise<SessionCookie[]>;
  /**
   * Merges the changes of some crawls into a session, cookie by cookie, so that crawls of several
   * processes lose nothing of each other. Creates the session, whose time begins again.
   */
  change(
    scope: ResultScope,
    name: string,
    changes: readonly CookieChanges[],
    now: Date,
  ): Promise<void>;
}
