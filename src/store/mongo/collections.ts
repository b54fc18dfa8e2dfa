import type { Binary, Collection, Db } from 'mongodb';
import type { TokenType } from '../../domain/account.ts';
import type { Crawler, CrawlerMoments } from '../../domain/crawler.ts';
import type { StoredSettings } from '../../domain/crawler-settings.ts';
import type { DeliveryAttempt } from '../../domain/delivery.ts';
import type { QueuedJob } from '../../domain/job.ts';
import type { QueuedNotice } from '../../domain/notice.ts';
import type { AccountLimits } from '../../domain/quotas.ts';
import type { DayCounts } from '../../domain/stats.ts';
import type { EndedJob } from '../../domain/tally.ts';
import type { PushOutcome } from '../store.ts';

/** An account; `queued` follows the waiting and retrying URLs of its crawlers, repaired by `maintain`. */
export interface AccountDocument {
  readonly _id: string;
  readonly name: string;
  readonly email: string;
  readonly normalHash: string;
  readonly javascriptHash: string;
  /** Both hashes, under one unique index. */
  readonly hashes: readonly string[];
  readonly createdAt: Date;
  readonly queued: number;
  /** Its own limits; absent in documents of before they were. The counters below are, too, until `maintain` has filled them in. */
  readonly limits?: Partial<AccountLimits>;
  readonly crawlers?: number;
  readonly concurrency?: number;
  readonly storedBytes?: number;
  readonly queuedBytes?: number;
  /** In an episode over the limit. */
  readonly over: boolean;
  /** What the last push was granted; written and read by one update. */
  readonly granted?: number;
}

/** A day that is leaving its crawler: its counts have been added to the history, or not, as that says by `id`. */
export interface MovingDay {
  readonly id: string;
  readonly counts: DayCounts;
}

/** A push that has reserved room and not yet been confirmed. Its jobs are left alone until it is. */
export interface PendingPush {
  readonly id: string;
  readonly n: number;
  readonly at: Date;
  /** The crawler's `purges` when it reserved; absent in those of an older program. */
  readonly gen?: number;
  /** The request it belongs to, if that may come again. */
  readonly request?: string;
  /** Its jobs' `rid`s are between these two, inclusive. */
  readonly first: string;
  readonly last: string;
}

/**
 * A crawler with its counters, its lease and the days that history has not taken over yet, in one
 * document: what must agree is written together, and every reading adds up. Its settings stand
 * beside the other fields, so that an older program that shares the database finds them; one that
 * is absent has its default.
 */
export interface CrawlerDocument extends Partial<StoredSettings> {
  readonly _id: string;
  /** A setting that quotas count, so it is always there. */
  readonly concurrency: number;
  readonly accountId: string;
  readonly name: string;
  readonly tokenType: TokenType;
  readonly delivery: Crawler['delivery'];
  readonly callbackUrl: string | null;
  readonly pausedByUser: boolean;
  readonly pausedByMonitor: boolean;
  readonly pausedAt?: Date;
  readonly pauseReason?: string;
  readonly webhookSecrets: readonly { readonly secret: string; readonly expiresAt?: Date }[];
  readonly createdAt: Date;
  readonly updatedAt: Date;
  /** Absent in storage mode; the beginning of time until the first claim of probes sharesWithPeers it. */
  readonly probeAt?: Date;
  readonly probeClaim?: string;
  /** Written with the counters that go with it. */
  readonly last?: CrawlerMoments;
  /** Waiting, running and retrying together; waiting is what the other two leave. */
  readonly live: number;
  /** What they count for as queued; of these, what the running ones do. */
  readonly liveBytes?: number;
  readonly runningBytes?: number;
  readonly running: number;
  readonly retrying: number;
  readonly completed: number;
  readonly failed: number;
  readonly deleted: number;
  readonly purged: number;
  readonly deliveriesPending: number;
  readonly days: Readonly<Record<string, DayCounts>>;
  /** The earliest of `days`. */
  readonly firstDay?: string;
  /** Of each process, the last of its batches that these counters contain. */
  readonly applied: Readonly<Record<string, number>>;
  readonly pending: readonly PendingPush[];
  /** The last batches that were taken from their processes before they were applied: what bears their name is not counted. */
  readonly fenced?: readonly string[];
  /** Grows with every change of these counters but a push's. */
  readonly moves: number;
  /** Grows when they are counted anew: a move that began before and is not counted yet was seen or will be. */
  readonly recounts: number;
  /** Set when they were found wrong and could not be counted in peace. */
  readonly miscounted?: boolean;
  /** Grows with each purge: waiting and retrying jobs of an earlier `gen` are gone, their documents are swept up later. */
  readonly purges: number;
  /** Days on their way to the history. */
  readonly moving?: Readonly<Record<string, MovingDay>>;
  /** What the last push was granted; written and read by one update. */
  readonly granted?: number;
  readonly grantedBytes?: number;
  readonly epoch: number;
  readonly leaseOwner: string | null;
  readonly leaseUntil: Date;
  /** When somebody must look at it: its next work, or the end of its lease. */
  readonly wakeAt: Date;
  /** Grows with everything that may bring `wakeAt` forward, so that whoever sets it back notices. */
  readonly wakes: number;
}

/** What an ended job leaves until its counts are written: the commit of its end, and the recipe to repair the counters. */
export interface Tombstone extends EndedJob {
  readonly from: QueuedJob['state'];
  /** What the job counted for as queued, and its record does as stored. */
  readonly size?: number;
  readonly kept?: number;
  /** Whether a delivery was made that is due when the counts are written. */
  readonly delivers?: boolean;
  readonly endedAt: Date;
  /** The process and its batch that ended the job. */
  readonly by: string;
  readonly seq: number;
}

/** A job; ended ones are tombstones for some milliseconds. */
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
  /** Absent while there was none. */
  readonly crashes?: number;
  readonly epoch?: number;
  readonly firstTriedAt?: Date;
  /** The push that brought it. */
  readonly push: string;
  /** The last batch that moved it. */
  readonly mark?: string;
}

/** What a delivery and a result have in common. */
interface RecordDocument {
  readonly _id: string;
  /** The job's attempt that made it; an older one never replaces a newer one. */
  readonly claim: number;
  /** The last batch that moved it. */
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
  readonly attempts: readonly DeliveryAttempt[];
}

/** A stored result. While its job is alive it has not been committed and is not shown. */
export interface ResultDocument extends RecordDocument {
  /** Account and token type. */
  readonly scope: string;
  readonly storedAt: Date;
  readonly urlHash: string;
}

/** A day of a crawler, once it is over. `_id` is `<crawlerId>/<day>`. */
export interface HistoryDocument {
  readonly _id: string;
  readonly crawlerId: string;
  readonly day: string;
  readonly counts: DayCounts;
  /** The last moves that were added. */
  readonly moved?: readonly string[];
}

/** A push with a `request_id`. `_id` is `<crawlerId>/<requestId>`. */
export interface PushRequestDocument {
  readonly _id: string;
  readonly crawlerId: string;
  readonly rids: readonly string[];
  /** The push that took its jobs, if it came so far. */
  readonly push: string;
  /** Those of its jobs that were found queued when another process completed it. */
  readonly taken?: readonly string[];
  /** Set once its jobs are durable. */
  readonly outcomes: readonly PushOutcome[] | null;
  /** Who works on it. */
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

/** A picture. */
export interface ScreenshotDocument {
  readonly _id: string;
  readonly contentType: string;
  readonly bytes: Binary;
  readonly expiresAt: Date;
}

/** A message to the owner of an account, until it is sent. */
export interface NoticeDocument extends Omit<QueuedNotice, 'noticeId'> {
  readonly _id: string;
  /** Who last took it to be sent. */
  readonly claim: string;
}

/** A crawler that was removed or purged: what is left of it, or of its queue, is still to be swept up. */
export interface RemovalDocument {
  readonly _id: string;
  /** Since when `maintain` knows of it. It stays for a while: a process that was stopped may bring more. */
  readonly at?: Date;
}

/** An account that is gone and may have left results. */
export interface RemovedAccountDocument {
  readonly _id: string;
  readonly removedAt: Date;
}

/** Every collection of the store. */
export interface Collections {
  readonly accounts: Collection<AccountDocument>;
  readonly crawlers: Collection<CrawlerDocument>;
  readonly jobs: Collection<JobDocument>;
  readonly deliveries: Collection<DeliveryDocument>;
  readonly results: Collection<ResultDocument>;
  readonly history: Collection<HistoryDocument>;
  readonly pushRequests: Collection<PushRequestDocument>;
  readonly rates: Collection<RateDocument>;
  readonly screenshots: Collection<ScreenshotDocument>;
  readonly notices: Collection<NoticeDocument>;
  readonly removals: Collection<RemovalDocument>;
  readonly removedAccounts: Collection<RemovedAccountDocument>;
}

/** The collections of a database. */
export function toCollections(db: Db): Collections {
  return {
    accounts: db.collection('accounts'),
    crawlers: db.collection('crawlers'),
    jobs: db.collection('jobs'),
    deliveries: db.collection('deliveries'),
    results: db.collection('results'),
    history: db.collection('history'),
    pushRequests: db.collection('push_requests'),
    rates: db.collection('rates'),
    screenshots: db.collection('media'),
    notices: db.collection('notices'),
    removals: db.collection('removals'),
    removedAccounts: db.collection('removed_accounts'),
  };
}
