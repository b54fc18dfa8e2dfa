import type { Binary, Db } from 'mongodb';
import type { Account } from '../../domain/account.ts';
import type { AuditRecord } from '../../domain/audit.ts';
import type { Batch } from '../../domain/batch.ts';
import type { BodyCoding } from '../../domain/body-coding.ts';
import type { WallClock } from '../../domain/clock.ts';
import type { Defined } from '../../domain/defined.ts';
import type { QueuedJob } from '../../domain/job.ts';
import type { QueuedNotice } from '../../domain/notice.ts';
import type { ProcessReport } from '../../domain/process-report.ts';
import type { AccountUsage } from '../../domain/quotas.ts';
import type { CrawlRecord, CrawlStatus } from '../../domain/result.ts';
import type { DayCounts } from '../../domain/stats.ts';
import type { Sample } from '../../domain/timeline.ts';
import type { HostReport } from '../host-store.ts';
import type { KeptAnswer, KeptDelivery } from '../kept-delivery.ts';
import type { SealedPools } from '../proxy-pool-store.ts';
import type { PushReceipt, StoredScreenshot } from '../store.ts';
import type { CountsDocument } from './counts-document.ts';
import type { CrawlerDocument } from './crawler-document.ts';

export type * from './counts-document.ts';
export type * from './crawler-document.ts';

/**
 * An account. Its counters follow those of its crawlers by writes of their own; `maintain` repairs
 * them.
 */
export interface AccountDocument
  extends Pick<Account, 'name' | 'email' | 'createdAt' | 'limits'>,
    AccountUsage {
  readonly _id: string;
  /** The name in lower case, for one unique index; absent in accounts of older versions. */
  readonly nameKey?: string;
  readonly normalHash: string;
  readonly javascriptHash: string;
  /** Both hashes, for one unique index. */
  readonly hashes: readonly string[];
  /** Whether the account is in an episode over its limit. */
  readonly over: boolean;
  /** The room that the last push got; written and read by one update. */
  readonly granted?: number;
}

/** A job in the queue of a crawler, or running. */
export interface JobDocument
  extends Defined<
    Omit<QueuedJob, 'rid' | 'body' | 'parameters' | 'callbackHeaders' | 'unique' | 'crashes'>
  > {
  readonly _id: string;
  /** By which polite crawlers are shared; absent in jobs of an older program. */
  readonly hostDigit?: string;
  /** The key of its {@link UniqueKeyDocument}. */
  readonly uniqueKey?: string;
  /** The id of its batch. */
  readonly batchId?: string;
  readonly body?: Binary;
  readonly parameters: string;
  readonly callbackHeaders: string;
  /** The bytes that it counts for as queued. */
  readonly size: number;
  readonly due: Date;
  /** `orderMs` of the job. */
  readonly order: Date;
  /** Set while waiting or retrying. */
  readonly queued?: true;
  /** Set while the queue deadline applies. */
  readonly expires?: true;
  /** The crawler's `purges` when it was pushed. */
  readonly gen: number;
  /** Absent without a crash. */
  readonly crashes?: number;
  readonly epoch?: number;
  /** Why its last try failed. */
  readonly lastFailure?: string;
}

/** Which job has a unique key. `_id` is that of the crawler and the key. */
export interface UniqueKeyDocument {
  readonly _id: string;
  readonly crawlerId: string;
  readonly rid: string;
  /** The crawler's `purges` when it was pushed: a purge frees keys. */
  readonly gen: number;
  /** When it ends, as the clock shows it; while its job exists if absent. */
  readonly expiresAt?: Date;
}

/** A batch. */
export interface BatchDocument
  extends Defined<Pick<Batch, 'crawlerId' | 'name' | 'createdAt' | 'closedAt' | 'completedAt'>> {
  readonly _id: string;
  /** Whether every part of a lane of pushes knows that it is closed. */
  readonly fenced?: true;
  readonly expiresAt: Date;
}

/** What one lane counts of a batch. `_id` is `<batchId>/<lane>`. */
export interface BatchPartDocument {
  readonly _id: string;
  readonly batchId: string;
  readonly crawlerId: string;
  readonly accepted?: number;
  readonly completed?: number;
  readonly failures?: Readonly<Record<string, number>>;
  readonly lastPushedAt?: Date;
  readonly lastEndedAt?: Date;
  /** The lane pushes nothing more to it. */
  readonly closed?: true;
}

/** The fields that deliveries and results share. */
interface RecordDocument
  extends CrawlStatus,
    Defined<Pick<CrawlRecord, 'pushedUrl' | 'contentType' | 'request'>> {
  readonly _id: string;
  /** How `body` is compressed; gzip when absent. */
  readonly coding?: BodyCoding;
  readonly extras: string;
  readonly expiresAt: Date;
  /** Length of `body`. */
  readonly size: number;
  readonly body: Binary;
  readonly batchId?: string;
}

/** A result on its way to a callback URL. */
export interface DeliveryDocument extends RecordDocument {
  readonly crawlerId: string;
  readonly state: KeptDelivery['state'];
  readonly due: Date;
  readonly attempt: number;
  readonly epoch?: number;
  readonly createdAt: Date;
  readonly callbackHeaders: string;
  /** Absent if it belongs to no trace. */
  readonly traceparent?: string;
  readonly attempts: KeptDelivery['attempts'];
  /** Of the latest attempts, what the callback URL answered; absent without any. */
  readonly answers?: readonly KeptAnswer[];
}

/** A stored result. */
export interface ResultDocument extends RecordDocument {
  /** The account and the token type. */
  readonly scope: string;
  /** Absent for an inline crawl that was stored, and for results of an older program. */
  readonly crawlerId?: string;
  /** Its number in the order of the scope; 0 until somebody reads the order. */
  readonly seq: number;
  readonly storedAt: Date;
  readonly urlHash: string;
  /** Absent if the page serves no other request. */
  readonly pageKey?: string;
  /** Set while a client reads it to remove it, with the id of the hold. */
  readonly heldUntil?: Date | null;
  readonly heldBy?: string;
}

/** The order of a scope's results, once somebody has read it. `_id` is the scope. */
export interface ResultOrderDocument {
  readonly _id: string;
  /** Differs in each database. */
  readonly series: string;
  /** The last number that was given. */
  readonly last: number;
  /** The latest sessions of transactions that number results. */
  readonly sessions?: readonly Binary[];
}

/** A day of a crawler, once it is over. `_id` is `<crawlerId>/<day>`. */
export interface HistoryDocument {
  readonly _id: string;
  readonly crawlerId: string;
  readonly day: string;
  readonly counts: DayCounts;
}

/** The numbers of a crawler's day at a moment. `_id` is `<crawlerId>/<milliseconds>`. */
export interface SampleDocument extends Sample {
  readonly _id: string;
  /** Empty: samples were taken at that moment. */
  readonly crawlerId: string;
}

/** A push with a `request_id`. `_id` is `<crawlerId>/<requestId>`. */
export interface PushRequestDocument extends Pick<PushReceipt, 'outcomes' | 'places'> {
  readonly _id: string;
  readonly crawlerId: string;
  readonly expiresAt: Date;
}

/** A token's bucket. */
export interface RateDocument {
  readonly _id: string;
  readonly left: number;
  readonly granted: number;
  readonly at: Date;
}

/** A screenshot. */
export interface ScreenshotDocument extends Omit<StoredScreenshot, 'id' | 'bytes'> {
  readonly _id: string;
  readonly bytes: Binary;
  readonly size: number;
}

/** A message to the owner of an account, until it is sent. */
export interface NoticeDocument extends Omit<QueuedNotice, 'noticeId'> {
  readonly _id: string;
}

/** A crawler that was removed or purged, and whose leftovers are still to be swept up. */
export interface RemovalDocument {
  readonly _id: string;
  /**
   * When `maintain` found nothing left. The entry stays for a while, because a process that was
   * stopped may still write more.
   */
  readonly at?: Date;
}

/** An account that is gone and may have left results behind. */
export interface RemovedAccountDocument {
  readonly _id: string;
  readonly removedAt: Date;
}

/** What a process last said about itself. */
export interface ProcessDocument extends Omit<ProcessReport, 'processId'> {
  readonly _id: string;
}

/** What a process knows of the hosts of a crawler. `_id` is `<crawlerId>/<processId>`. */
export interface KnownHostsDocument extends Defined<Omit<HostReport, 'hosts'>> {
  readonly _id: string;
  /** JSON. */
  readonly hosts: string;
  readonly at: Date;
}

/** A change that was made. `_id` is its `auditId`. */
export interface AuditDocument extends Omit<AuditRecord, 'auditId'> {
  readonly _id: string;
}

/** Trouble that lasts; see `NoticeStore.lasting`. */
export interface EpisodeDocument {
  /** Its key. */
  readonly _id: string;
  readonly since: Date;
  readonly seenAt: Date;
  readonly told: boolean;
}

/** The cookies of a session. `_id` is `<accountId>/<tokenType>/<name>`. */
export interface CookieSessionDocument {
  readonly _id: string;
  readonly accountId: string;
  /** JSON. */
  readonly cookies: string;
  /** The id of the last write that changed them. */
  readonly mark: string;
  readonly usedAt: Date;
}

/** The pools of proxies of an account. `_id` is its `accountId`. */
export interface ProxyPoolsDocument extends SealedPools {
  readonly _id: string;
}

/** Every collection of the store. `time` is for moments that are kept. */
export function toCollections(db: Db, time: WallClock = { aheadMs: 0 }) {
  return {
    time,
    accounts: db.collection<AccountDocument>('accounts'),
    crawlers: db.collection<CrawlerDocument>('crawlers'),
    counts: db.collection<CountsDocument>('counts'),
    jobs: db.collection<JobDocument>('jobs'),
    batches: db.collection<BatchDocument>('batches'),
    batchParts: db.collection<BatchPartDocument>('batch_parts'),
    deliveries: db.collection<DeliveryDocument>('deliveries'),
    results: db.collection<ResultDocument>('results'),
    resultOrders: db.collection<ResultOrderDocument>('result_orders'),
    history: db.collection<HistoryDocument>('history'),
    samples: db.collection<SampleDocument>('samples'),
    pushRequests: db.collection<PushRequestDocument>('push_requests'),
    uniqueKeys: db.collection<UniqueKeyDocument>('unique_keys'),
    rates: db.collection<RateDocument>('rates'),
    screenshots: db.collection<ScreenshotDocument>('screenshots'),
    notices: db.collection<NoticeDocument>('notices'),
    removals: db.collection<RemovalDocument>('removals'),
    removedAccounts: db.collection<RemovedAccountDocument>('removed_accounts'),
    processes: db.collection<ProcessDocument>('processes'),
    cookieSessions: db.collection<CookieSessionDocument>('cookie_sessions'),
    hosts: db.collection<KnownHostsDocument>('hosts'),
    episodes: db.collection<EpisodeDocument>('episodes'),
    audit: db.collection<AuditDocument>('audit'),
    proxyPools: db.collection<ProxyPoolsDocument>('proxy_pools'),
  };
}

/** See {@link toCollections}. */
export type Collections = Readonly<ReturnType<typeof toCollections>>;
