import type { HeldUp } from '../../domain/attention.ts';
import type { Crawler, CrawlerCounters, CrawlerMoments } from '../../domain/crawler.ts';
import {
  type CrawlerSettings,
  fromStoredSettings,
  type StoredSettings,
  toStoredSettings,
} from '../../domain/crawler-settings.ts';
import { defined } from '../../domain/defined.ts';
import { deliveryModes } from '../../domain/delivery-mode.ts';
import { pushedOf } from '../rules.ts';
import type { Share } from '../share-store.ts';
import { type CountsDocument, latest, sumCounts } from './counts-document.ts';
import { NO_WORK } from './lease.ts';

/** A share of a crawler; see `Share`. */
export interface ShareDocument extends Omit<Share, 'shareId' | 'awaits'> {
  readonly until: Date;
  /** Absent in shares of an older program. */
  readonly awaits?: boolean;
}

/**
 * A crawler, its lease and its shares. Its counters are in parts of their own (`CountsDocument`). A
 * setting that is absent has its default.
 */
export interface CrawlerDocument
  extends Omit<Crawler, keyof CrawlerSettings | 'crawlerId' | 'callbackUrl'>,
    Partial<StoredSettings> {
  readonly _id: string;
  /** A setting that quotas count, so it is always there. */
  readonly concurrency: number;
  readonly callbackUrl: string | null;
  /** Absent in storage mode; 1970 until the first claim of probes schedules it. */
  readonly probeAt?: Date;
  /** The write that last claimed the probe. */
  readonly probeClaim?: string;
  /** The moment of the last probe; the others are with the counters. */
  readonly last?: CrawlerMoments;
  /**
   * Incremented by every purge. Waiting and retrying jobs of an earlier `gen` are gone; their
   * documents are swept up later.
   */
  readonly purges: number;
  /** Set once a job was pushed with another priority than the default. */
  readonly hasPriorities?: boolean;
  readonly epoch: number;
  readonly leaseOwner: string | null;
  readonly leaseUntil: Date;
  /** When a process that may have crawled it last let it go; absent before that. */
  readonly crawledUntil?: Date;
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

/** The document of a new crawler. */
export function toCrawlerDocument(crawler: Crawler): CrawlerDocument {
  const { crawlerId, callbackUrl, ...others } = crawler;
  return {
    ...others,
    ...toStoredSettings(crawler),
    _id: crawlerId,
    callbackUrl: callbackUrl ?? null,
    ...(deliveryModes[crawler.delivery].postsToCallback ? { probeAt: NOT_SCHEDULED } : {}),
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
    ...(document.pausedHosts?.length ? { pausedHosts: document.pausedHosts } : {}),
    webhookSecrets: document.webhookSecrets,
    createdAt: document.createdAt,
    updatedAt: document.updatedAt,
  };
}

/** The fields that {@link toCounters} reads. */
export const COUNTER_FIELDS = {
  purges: 1,
  last: 1,
  leaseOwner: 1,
  leaseUntil: 1,
  shares: 1,
} as const;

/** The counters of a crawler, from its document and the parts of its counters. */
export function toCounters(
  {
    purges,
    last,
    leaseOwner,
    leaseUntil,
    shares = {},
  }: Pick<CrawlerDocument, keyof typeof COUNTER_FIELDS>,
  parts: readonly CountsDocument[] = [],
  heldUp?: HeldUp,
): CrawlerCounters {
  const { queuedBytes: _queued, runningBytes: _running, ...sum } = sumCounts(parts, purges);
  const helpers = Object.values(shares).map(({ processId, until, heldSlots }) => {
    return { processId, until, slots: heldSlots };
  });
  return {
    ...sum,
    pushed: pushedOf(sum),
    last: latest(sum.last, last),
    ...(leaseOwner === null ? {} : { dispatchedBy: { processId: leaseOwner, until: leaseUntil } }),
    ...(helpers.length === 0 ? {} : { helpers }),
    ...defined({ heldUp }),
  };
}
