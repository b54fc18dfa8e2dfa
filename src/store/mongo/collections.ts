import type { Binary, Collection, Db } from 'mongodb';
import type { DeliveryAttempt } from '../../domain/delivery.ts';
import type { QueuedJob } from '../../domain/job.ts';
import type { QueuedNotice } from '../../domain/notice.ts';
import type { ProcessReport } from '../../domain/process-report.ts';
import type { AccountLimits } from '../../domain/quotas.ts';
import type { DayCounts } from '../../domain/stats.ts';
import type { EndedJob } from '../../domain/tally.ts';
import type { PushOutcome } from '../store.ts';
import type { CrawlerDocument } from './crawler-document.ts';

export type * from './crawler-document.ts';

/**
 * An account. Its counters follow those of its crawlers by writes of their own; `maintain` repairs
 * them. Counters and `limits` are absent in documents of an older program until it has done so.
 */
export interface AccountDocument {
  readonly _id: string;
  readonly name: string;
  readonly email: string;
  readonly normalHash: string;
  readonly javascriptHash: string;
  /** Both hashes, for one unique index. */
  readonly hashes: readonly string[];
  readonly createdAt: Date;
  /** Waiting and retrying URLs of its crawlers. */
  readonly queued: number;
  readonly limits?: Partial<AccountLimits>;
  readonly crawlers?: number;
  readonly concurrency?: number;
  readonly storedBytes?: number;
  readonly queuedBytes?: number;
  /** Whether an episode over the limit goes on. */
  readonly over: boolean;
  /** The room that the last push got; written and read by one update. */
  readonly granted?: number;
}

/**
 * What an ended job leaves until it is counted: it commits the end, and says how to count it after
 * a crash.
 */
export interface Tombstone extends EndedJob {
  readonly from: QueuedJob['state'];
  /** The bytes that the job counted for as queued, and its record counts for as stored. */
  readonly size?: number;
  readonly kept?: number;
  /** Whether a delivery was made; true for one that becomes due when the end is counted. */
  readonly delivers?: boolean;
  readonly endedAt: Date;
  /** The process and the number of its batch that ended the job. */
  readonly by: string;
  readonly seq: number;
}

/** A job. An ended one is a tombstone for some milliseconds. */
export interface JobDocument extends Partial<Omit<Tombstone, 'from'>> {
  readonly _id: string;
  readonly crawlerId: string;
  readonly accountId: string;
  readonly url: string;
  readonly method: QueuedJob['method'];
  readonly body?: Binary;
  readonly contentType?: string;
  readonly parameters: string;
  readonly callbackHeaders: string;
  readonly queueDeadline?: Date;
  readonly createdAt: Date;
  readonly state: QueuedJob['state'] | 'ended';
  readonly from?: QueuedJob['state'];
  readonly due: Date;
  /** Set while waiting or retrying. */
  readonly queued?: true;
  /** Set while the queue deadline applies. */
  readonly expires?: true;
  readonly retry: number;
  readonly attempt: number;
  /** The crawler's `purges` when it was pushed. */
  readonly gen: number;
  /** Absent if there was none. */
  readonly crashes?: number;
  readonly epoch?: number;
  readonly firstTriedAt?: Date;
  /** Why its last try failed. */
  readonly lastFailure?: string;
  /** Absent if it belongs to no trace. */
  readonly traceparent?: string;
  /** The id of its push. */
  readonly push: string;
  /** The id of the last write that changed its state. */
  readonly mark?: string;
}

/** The fields that deliveries and results share. */
interface RecordDocument {
  readonly _id: string;
  /** The job's attempt that made it; an older one never replaces a newer one. */
  readonly claim: number;
  /** The id of the last write that changed its state; `SHARED_MARK` when several brought it. */
  readonly mark: string;
  readonly url: string;
  readonly pushedUrl: string;
  readonly cbStatus: number;
  readonly originalStatus: number;
  readonly contentType: string;
  readonly extras: string;
  readonly expiresAt: Date;
  /** Length of `body`. */
  readonly size: number;
  readonly body: Binary;
}

/** A result on its way to a callback URL. `staged` until its job has ended. */
export interface DeliveryDocument extends RecordDocument {
  readonly crawlerId: string;
  readonly state: 'staged' | 'due' | 'sending' | 'delivered' | 'failed';
  readonly due: Date;
  readonly attempt: number;
  readonly epoch?: number;
  readonly createdAt: Date;
  readonly callbackHeaders: string;
  /** Absent if it belongs to no trace. */
  readonly traceparent?: string;
  readonly attempts: readonly DeliveryAttempt[];
}

/** A stored result. While its job is alive it is not committed, and not shown. */
export interface ResultDocument extends RecordDocument {
  /** The account and the token type. */
  readonly scope: string;
  /** Absent for an inline crawl that was stored, and for results of an older program. */
  readonly crawlerId?: string;
  /** Its number in the order of the scope; 0 until somebody reads the order. */
  readonly seq: number;
  readonly storedAt: Date;
  readonly urlHash: string;
}

/** The order of a scope's results, once somebody has read it. `_id` is the scope. */
export interface ResultOrderDocument {
  readonly _id: string;
  /** Differs in each database. */
  readonly series: string;
  /** The last number that was given. */
  readonly last: number;
  /** The results that get the last numbers, while they may not have them yet. */
  readonly batch: readonly string[];
}

/** A day of a crawler, once it is over. `_id` is `<crawlerId>/<day>`. */
export interface HistoryDocument {
  readonly _id: string;
  readonly crawlerId: string;
  readonly day: string;
  readonly counts: DayCounts;
  /** The ids of the last days that were added. */
  readonly moved?: readonly string[];
}

/** A push with a `request_id`. `_id` is `<crawlerId>/<requestId>`. */
export interface PushRequestDocument {
  readonly _id: string;
  readonly crawlerId: string;
  readonly rids: readonly string[];
  /** The id of the push that inserts its jobs. */
  readonly push: string;
  /** Those of its jobs that another process found inserted when it completed the push. */
  readonly taken?: readonly string[];
  /** Set once its jobs are durable. */
  readonly outcomes: readonly PushOutcome[] | null;
  /** The call that performs it. */
  readonly claim: string;
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
export interface ScreenshotDocument {
  readonly _id: string;
  readonly accountId: string;
  readonly contentType: string;
  readonly bytes: Binary;
  readonly size: number;
  readonly expiresAt: Date;
}

/** A message to the owner of an account, until it is sent. */
export interface NoticeDocument extends Omit<QueuedNotice, 'noticeId'> {
  readonly _id: string;
  /** The write that last claimed it. */
  readonly claim: string;
}

/** A crawler that was removed or purged, and whose leftovers are still to be swept up. */
export interface RemovalDocument {
  /** Of the crawler; in an entry of `rids` followed by the time that it is for. */
  readonly _id: string;
  /**
   * When `maintain` found nothing left, or when the time of `rids` ends. The entry stays for a while,
   * because a process that was stopped may still write more.
   */
  readonly at?: Date;
  /** The latest jobs that purges and deletions have removed: their crawls may bring records later. */
  readonly rids?: readonly string[];
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

/** Every collection of the store. */
export interface Collections {
  readonly accounts: Collection<AccountDocument>;
  readonly crawlers: Collection<CrawlerDocument>;
  readonly jobs: Collection<JobDocument>;
  readonly deliveries: Collection<DeliveryDocument>;
  readonly results: Collection<ResultDocument>;
  readonly resultOrders: Collection<ResultOrderDocument>;
  readonly history: Collection<HistoryDocument>;
  readonly pushRequests: Collection<PushRequestDocument>;
  readonly rates: Collection<RateDocument>;
  readonly screenshots: Collection<ScreenshotDocument>;
  readonly notices: Collection<NoticeDocument>;
  readonly removals: Collection<RemovalDocument>;
  readonly removedAccounts: Collection<RemovedAccountDocument>;
  readonly processes: Collection<ProcessDocument>;
  readonly cookieSessions: Collection<CookieSessionDocument>;
}

/** The collections of a database. */
export function toCollections(db: Db): Collections {
  return {
    accounts: db.collection('accounts'),
    crawlers: db.collection('crawlers'),
    jobs: db.collection('jobs'),
    deliveries: db.collection('deliveries'),
    results: db.collection('results'),
    resultOrders: db.collection('result_orders'),
    history: db.collection('history'),
    pushRequests: db.collection('push_requests'),
    rates: db.collection('rates'),
    screenshots: db.collection('screenshots'),
    notices: db.collection('notices'),
    removals: db.collection('removals'),
    removedAccounts: db.collection('removed_accounts'),
    processes: db.collection('processes'),
    cookieSessions: db.collection('cookie_sessions'),
  };
}
