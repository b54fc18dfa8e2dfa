import type { TokenType } from './account.ts';
import type { HeldUp, Streaks } from './attention.ts';
import type { CrawlerDefaults, CrawlerSettings } from './crawler-settings.ts';
import { defaultSettings } from './crawler-settings.ts';
import { type DeliveryMode, deliveryModes } from './delivery-mode.ts';
import { createRid } from './rid.ts';
import { createWebhookSecret } from './webhook-signature.ts';

/**
 * A secret that signs deliveries (Standard Webhooks); `expiresAt` is set once a newer one has
 * replaced it.
 */
export interface WebhookSecret {
  /** `whsec_` and base64 of 24 to 64 bytes. */
  readonly secret: string;
  readonly expiresAt?: Date;
}

/** A named queue of URLs with its own concurrency and delivery mode. */
export interface Crawler extends CrawlerSettings {
  /** 24 lower-case hexadecimal digits. */
  readonly crawlerId: string;
  readonly accountId: string;
  /** Unique in the account. */
  readonly name: string;
  readonly tokenType: TokenType;
  readonly delivery: DeliveryMode;
  /** Set exactly when the delivery mode posts to a callback URL. */
  readonly callbackUrl: string | undefined;
  /** The two pauses are independent: the monitor never lifts the user's. */
  readonly pausedByUser: boolean;
  readonly pausedByMonitor: boolean;
  /** When the shown pause began: the user's, else the monitor's. */
  readonly pausedAt?: Date;
  /** Why the monitor paused it; present while that pause holds. */
  readonly pauseReason?: string;
  /** Hosts of which nothing is asked, as their owner has chosen; absent for none. */
  readonly pausedHosts?: readonly string[];
  /** Newest first; empty when the delivery mode posts to no callback URL. */
  readonly webhookSecrets: readonly WebhookSecret[];
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** The input of {@link newCrawler}. */
export interface NewCrawler
  extends Pick<Crawler, 'accountId' | 'name' | 'tokenType' | 'delivery' | 'callbackUrl'> {
  /** The settings that its creation names. */
  readonly settings: Partial<CrawlerSettings>;
  readonly defaults: CrawlerDefaults;
  readonly now: Date;
}

/** Makes a running crawler, with a signing secret if its delivery mode posts to a callback URL. */
export function newCrawler({ settings, defaults, now, ...fixed }: NewCrawler): Crawler {
  const { postsToCallback } = deliveryModes[fixed.delivery];
  return {
    ...defaultSettings,
    ...defaults,
    ...settings,
    ...fixed,
    crawlerId: createRid(now),
    pausedByUser: false,
    pausedByMonitor: false,
    webhookSecrets: postsToCallback ? [{ secret: createWebhookSecret() }] : [],
    createdAt: now,
    updatedAt: now,
  };
}

/** Whether the crawler takes no work. */
export function isPaused(crawler: Pick<Crawler, 'pausedByUser' | 'pausedByMonitor'>): boolean {
  return crawler.pausedByUser || crawler.pausedByMonitor;
}

/** When something last happened to a crawler; absent before the first time. */
export interface CrawlerMoments {
  /** URLs were accepted. */
  readonly push?: Date;
  /** A crawl ended. */
  readonly crawl?: Date;
  /** A crawl ended with `cb_status` 200. */
  readonly success?: Date;
  /** A delivery was acknowledged. */
  readonly delivery?: Date;
  /** A probe of the callback URL was made. */
  readonly probe?: Date;
}

/** The counters of a crawler, each with the name it has on the wire. */
export const counterNames = [
  /** Never tried yet. */
  'waiting',
  'running',
  /** Waiting for a retry. */
  'retrying',
  'pushed',
  /** Crawls that ended with `cb_status` 200. */
  'completed',
  /** Crawls that ended otherwise, timeouts in the queue included. */
  'failed',
  'deleted',
  'purged',
  /** Results that wait for a successful delivery. */
  'deliveriesPending',
] as const;

/** The name of a counter. */
export type CounterName = (typeof counterNames)[number];

/**
 * Counters of one crawler. At every moment
 * `pushed = waiting + running + retrying + completed + failed + deleted + purged`.
 */
export interface CrawlerCounters extends Readonly<Record<CounterName, number>> {
  /** Acknowledged deliveries, those before this number was kept excluded. */
  readonly delivered: number;
  readonly last: CrawlerMoments;
  /** Tries since the last success, which all failed. */
  readonly failing: Streaks;
  /** The host that has most of the queue and is not reached, if a process has found one. */
  readonly heldUp?: HeldUp;
  /** The process that dispatches it, until that moment unless it renews its lease. */
  readonly dispatchedBy?: { readonly processId: string; readonly until: Date };
  /** The processes that help it, and how many of the crawler's slots each has. */
  readonly helpers?: readonly {
    readonly processId: string;
    readonly slots: number;
    readonly until: Date;
  }[];
}
