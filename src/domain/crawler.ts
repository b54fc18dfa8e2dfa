import type { TokenType } from './account.ts';

/** Which of the two channels carries a crawler's results. */
export type DeliveryMode = 'webhook' | 'storage';

/** A secret that signs deliveries (Standard Webhooks); `expiresAt` is set once a newer one has replaced it. */
export interface WebhookSecret {
  /** `whsec_` and base64 of 24 to 64 bytes. */
  readonly secret: string;
  readonly expiresAt?: Date;
}

/** How considerate a crawler is to each host; all zero and false is off. */
export interface Politeness {
  /** Most requests at one host at once, 0 for no limit. */
  readonly maxPerHost: number;
  /** Least time between the starts of two requests at one host. */
  readonly delayMs: number;
  readonly robotsTxt: boolean;
}

/** The fields of a crawler its owner may change. */
export interface CrawlerSettings {
  /** Set exactly when `delivery` is `webhook`. */
  readonly callbackUrl: string | undefined;
  /** Most URLs crawled at once. */
  readonly concurrency: number;
  /** Most deliveries in flight at its callback URL, 0 for as many as the endpoint takes. */
  readonly deliveryConcurrency: number;
  readonly maxRetries: number;
  readonly retryWindowHours: number;
  readonly politeness: Politeness | undefined;
}

/** A named queue of URLs with its own concurrency and delivery. */
export interface Crawler extends CrawlerSettings {
  /** 24 lower-case hexadecimal digits. */
  readonly crawlerId: string;
  readonly accountId: string;
  /** Unique in the account. */
  readonly name: string;
  readonly tokenType: TokenType;
  readonly delivery: DeliveryMode;
  /** The two pauses are independent: the monitor never lifts the user's. */
  readonly pausedByUser: boolean;
  readonly pausedByMonitor: boolean;
  /** Since when the pause that is shown holds: the user's, else the monitor's. */
  readonly pausedAt?: Date;
  /** Why the monitor paused it, while it does. */
  readonly pauseReason?: string;
  /** Newest first; empty in storage mode. */
  readonly webhookSecrets: readonly WebhookSecret[];
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** Whether the crawler takes no work. */
export function isPaused(crawler: Pick<Crawler, 'pausedByUser' | 'pausedByMonitor'>): boolean {
  return crawler.pausedByUser || crawler.pausedByMonitor;
}

/** When something last happened to a crawler; absent until the first time. */
export interface CrawlerMoments {
  /** URLs were accepted. */
  readonly push?: Date;
  /** A crawl ended. */
  readonly crawl?: Date;
  /** A delivery was acknowledged. */
  readonly delivery?: Date;
  /** A probe of the callback URL was made. */
  readonly probe?: Date;
}

/**
 * Counters of one crawler. At every moment
 * `pushed = waiting + running + retrying + completed + failed + deleted + purged`.
 */
export interface CrawlerCounters {
  /** Never tried yet. */
  readonly waiting: number;
  readonly running: number;
  /** Waiting for a retry. */
  readonly retrying: number;
  readonly pushed: number;
  /** Crawls that ended with `cb_status` 200. */
  readonly completed: number;
  /** Crawls that ended otherwise, timeouts in the queue included. */
  readonly failed: number;
  readonly deleted: number;
  readonly purged: number;
  /** Results that wait for a successful delivery. */
  readonly deliveriesPending: number;
  readonly last: CrawlerMoments;
}
