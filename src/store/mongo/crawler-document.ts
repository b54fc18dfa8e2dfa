import type { TokenType } from '../../domain/account.ts';
import type { Crawler, CrawlerCounters, CrawlerMoments } from '../../domain/crawler.ts';
import {
  fromStoredSettings,
  type StoredSettings,
  toStoredSettings,
} from '../../domain/crawler-settings.ts';
import { defined } from '../../domain/defined.ts';
import { deliveryModes } from '../../domain/delivery-mode.ts';
import type { DayCounts } from '../../domain/stats.ts';
import type { Share } from '../share-store.ts';
import { NO_WORK } from './lease.ts';

/** A day on its way from its crawler to the history, which notes by `id` that it has added it. */
export interface MovingDay {
  readonly id: string;
  readonly counts: DayCounts;
}

/** A push that has reserved room and is not confirmed yet. Until then nobody takes its jobs. */
export interface PendingPush {
  readonly id: string;
  readonly n: number;
  readonly at: Date;
  /** The crawler's `purges` when it reserved; absent in entries of an older program. */
  readonly gen?: number;
  /** The request it belongs to, if it may be repeated. */
  readonly request?: string;
  /** The `rid`s of its jobs are between these two, inclusive. */
  readonly first: string;
  readonly last: string;
}

/** A share of a crawler; see `Share`. */
export interface ShareDocument extends Omit<Share, 'shareId'> {
  readonly until: Date;
}

/**
 * A crawler with its counters, its lease and the days that are not in the history yet, in one
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
  /** Absent in storage mode; 1970 until the first claim of probes schedules it. */
  readonly probeAt?: Date;
  /** The write that last claimed the probe. */
  readonly probeClaim?: string;
  /** Written with the counters of the same event. */
  readonly last?: CrawlerMoments;
  /** Waiting, running and retrying jobs together; the waiting ones follow from the other two. */
  readonly live: number;
  /** The bytes that the live jobs count for as queued, and the running ones among them. */
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
  /** Per process: the number of the last batch that is included in these counters. */
  readonly applied: Readonly<Record<string, number>>;
  readonly pending: readonly PendingPush[];
  /** The last batches that were fenced: tombstones that name one of them are not counted. */
  readonly fenced?: readonly string[];
  /** Version of the counters: incremented by every write that changes them, except by pushes. */
  readonly moves: number;
  /**
   * Incremented by every recount. A change that began before one and is not counted yet was seen by
   * it or not.
   */
  readonly recounts: number;
  /** Set when a recount was needed but the counters did not stand still. */
  readonly miscounted?: boolean;
  /**
   * Incremented by every purge. Waiting and retrying jobs of an earlier `gen` are gone; their
   * documents are swept up later.
   */
  readonly purges: number;
  /** Days on their way to the history. */
  readonly moving?: Readonly<Record<string, MovingDay>>;
  /** The room that the last push or purge got; written and read by one update. */
  readonly granted?: number;
  readonly grantedBytes?: number;
  readonly epoch: number;
  readonly leaseOwner: string | null;
  readonly leaseUntil: Date;
  /** The shares of helpers by `shareId`; absent if it was never shared, as are the next three. */
  readonly shares?: Readonly<Record<string, ShareDocument>>;
  /** The `shareId` of the latest. */
  readonly joins?: number;
  /** Version of `shares`. */
  readonly sharesRevision?: number;
  /** Absent if it wants none. */
  readonly wantsHelp?: true;
  /** When some process must look at it: its next work, or the end of its lease. */
  readonly wakeAt: Date;
  /**
   * Version of `wakeAt`: incremented by every write that may lower it, so that a writer that raises
   * it can detect a conflict.
   */
  readonly wakes: number;
}

/** The next probe of a crawler before the first claim of probes has scheduled it. */
export const NOT_SCHEDULED = new Date(0);

/** Leaves out the fields of a document that {@link toCrawler} does not read and that may be long. */
export const CRAWLER_FIELDS = { days: 0, moving: 0, applied: 0, fenced: 0, pending: 0 } as const;

/** The document of a new crawler. */
export function toCrawlerDocument(crawler: Crawler): CrawlerDocument {
  const { crawlerId, callbackUrl, ...others } = crawler;
  return {
    ...others,
    ...toStoredSettings(crawler),
    _id: crawlerId,
    callbackUrl: callbackUrl ?? null,
    ...(deliveryModes[crawler.delivery].postsToCallback ? { probeAt: NOT_SCHEDULED } : {}),
    live: 0,
    liveBytes: 0,
    running: 0,
    runningBytes: 0,
    retrying: 0,
    completed: 0,
    failed: 0,
    deleted: 0,
    purged: 0,
    deliveriesPending: 0,
    days: {},
    applied: {},
    pending: [],
    moves: 0,
    recounts: 0,
    purges: 0,
    epoch: 0,
    leaseOwner: null,
    leaseUntil: new Date(0),
    wakeAt: NO_WORK,
    wakes: 0,
  };
}

/** Converts a document into a crawler. */
export function toCrawler(document: CrawlerDocument): Crawler {
  return {
    crawlerId: document._id,
    accountId: document.accountId,
    name: document.name,
    tokenType: document.tokenType,
    delivery: document.delivery,
    callbackUrl: document.callbackUrl ?? undefined,
    ...fromStoredSettings(document),
    pausedByUser: document.pausedByUser,
    pausedByMonitor: document.pausedByMonitor,
    ...defined({ pausedAt: document.pausedAt, pauseReason: document.pauseReason }),
    webhookSecrets: document.webhookSecrets,
    createdAt: document.createdAt,
    updatedAt: document.updatedAt,
  };
}

/** The fields that {@link toCounters} reads. */
export const COUNTER_FIELDS = {
  live: 1,
  running: 1,
  retrying: 1,
  completed: 1,
  failed: 1,
  deleted: 1,
  purged: 1,
  deliveriesPending: 1,
  last: 1,
  leaseOwner: 1,
  leaseUntil: 1,
  shares: 1,
} as const;

/** The counters of a document. */
export function toCounters(document: CrawlerDocument): CrawlerCounters {
  const { live, running, retrying, completed, failed, deleted, purged } = document;
  const { leaseOwner, leaseUntil, shares = {} } = document;
  const helpers = Object.values(shares).map(({ processId, until, heldSlots }) => {
    return { processId, until, slots: heldSlots };
  });
  return {
    waiting: live - running - retrying,
    running,
    retrying,
    pushed: live + completed + failed + deleted + purged,
    completed,
    failed,
    deleted,
    purged,
    deliveriesPending: document.deliveriesPending,
    last: document.last ?? {},
    ...(leaseOwner === null ? {} : { dispatchedBy: { processId: leaseOwner, until: leaseUntil } }),
    ...(helpers.length === 0 ? {} : { helpers }),
  };
}
