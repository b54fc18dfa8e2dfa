import type { CrawlRecord, HeaderPair } from './job.ts';

/** One POST to the callback URL. */
export interface DeliveryAttempt {
  /** 1 for the first. */
  readonly attempt: number;
  readonly startedAt: Date;
  /** The callback URL's status, 0 when there was no answer. */
  readonly status: number;
  readonly durationMs: number;
  /** Why it failed; empty when acknowledged. */
  readonly error: string;
}

/** A result on its way to the callback URL. */
export interface Delivery extends CrawlRecord {
  readonly crawlerId: string;
  /** The push's `callback_headers`. */
  readonly callbackHeaders: readonly HeaderPair[];
  /** Attempts begun, this one included; names the claim in later writes as `QueuedJob.attempt` does. */
  readonly attempt: number;
  readonly createdAt: Date;
}

/** Where the delivery of one result stands, without its page. */
export interface DeliverySummary {
  readonly rid: string;
  readonly url: string;
  readonly cbStatus: number;
  readonly originalStatus: number;
  readonly state: 'pending' | 'delivered' | 'failed';
  readonly createdAt: Date;
  /** Set while pending. */
  readonly nextAttemptAt: Date | undefined;
  /** Oldest first, the last 100. */
  readonly attempts: readonly DeliveryAttempt[];
}
