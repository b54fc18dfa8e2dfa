/** What happened at one crawler on one day. */
export interface HistoryDay {
  /** `YYYY-MM-DD`, UTC. */
  readonly date: string;
  readonly pushed: number;
  /** Crawls that ended with `cb_status` 200. */
  readonly success: number;
  readonly failed: number;
  /** Ended crawls by `cb_status`. */
  readonly byCbStatus: Readonly<Record<number, number>>;
  /** POSTs that the callback URL acknowledged. */
  readonly deliveries: number;
  readonly deliveryFailures: number;
  /** Billed crawls and billed delivery retries. */
  readonly billed: number;
  /** Crawls tried again. */
  readonly retries: number;
  /** Jobs that waited longer than their `queue_timeout`. */
  readonly timeouts: number;
  readonly deleted: number;
  readonly purged: number;
}

/** The UTC day of a moment, `YYYY-MM-DD`. */
export function dayOf(moment: Date): string {
  return moment.toISOString().slice(0, 10);
}
