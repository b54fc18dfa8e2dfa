import type { DeliveryAttempt, DeliverySummary } from '../domain/delivery.ts';

/** The end of one delivery attempt. */
export interface DeliveryOutcome {
  readonly rid: string;
  readonly crawlerId: string;
  /** The attempt that the delivery was claimed with. */
  readonly attempt: number;
  /** For the log of attempts; absent when the attempt never started. */
  readonly log?: DeliveryAttempt;
  /**
   * delivered: acknowledged. retry: due again at `dueAt`. failed: given up. release: returned
   * without a try, so the attempt does not count; due at once if `dueAt` is absent.
   */
  readonly kind: 'delivered' | 'retry' | 'failed' | 'release';
  readonly dueAt?: Date;
  /** Replaces the delivery's expiry: a delivered page need not be kept as long as another. */
  readonly expiresAt?: Date;
  /** Whether it is the event of a batch: the crawler's statistics count results alone. */
  readonly isEvent?: boolean;
  /** Whether the attempt is billed: every retry is. */
  readonly billed: boolean;
}

/** The deliveries that a replay is about: these, or those created in `[from, to)`. */
export type ReplaySelector =
  | { readonly rids: readonly string[] }
  | { readonly from: Date; readonly to: Date };

export interface DeliveryStore {
  get(crawlerId: string, rid: string): Promise<DeliverySummary | undefined>;
  /**
   * Makes deliveries due at once that are delivered, failed or pending and whose page is kept, and
   * returns their number. Their attempts count on.
   */
  replay(crawlerId: string, which: ReplaySelector, now: Date): Promise<number>;
  /** The number that `replay` would make due, counted up to `limit`. */
  countReplayable(crawlerId: string, which: ReplaySelector, limit: number): Promise<number>;
}
