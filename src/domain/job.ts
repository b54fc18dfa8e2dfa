import type { CrawlParameters } from './parameters.ts';
import type { UniqueKey } from './unique-key.ts';

/** The request that a crawl sends to its target. */
export interface CrawlRequest {
  readonly url: string;
  readonly method: 'GET' | 'POST' | 'PUT';
  /** Sent to the target with POST and PUT. */
  readonly body: Uint8Array | undefined;
  /** Content-Type of `body`. */
  readonly contentType: string | undefined;
  readonly parameters: CrawlParameters;
}

/** A header name and its value. */
export type HeaderPair = readonly [name: string, value: string];

/** A URL in a crawler's queue. */
export interface Job extends CrawlRequest {
  /**
   * 24 lower-case hexadecimal digits; the first eight are the second of its creation, so order by
   * `rid` is order by age.
   */
  readonly rid: string;
  readonly crawlerId: string;
  readonly accountId: string;
  /** The lane that it waits in, as `service/queue/lane-of.ts` names it. */
  readonly host: string;
  /** Extra headers of the webhook delivery. */
  readonly callbackHeaders: readonly HeaderPair[];
  /** 0 to 9; see `domain/priority.ts`. */
  readonly priority: number;
  /** When it may be crawled at the earliest; at once if undefined. */
  readonly notBefore?: Date | undefined;
  /** When it leaves the queue if no crawl has started by then. */
  readonly queueDeadline: Date | undefined;
  readonly createdAt: Date;
  /** Undefined if it may be queued however often. */
  readonly unique?: UniqueKey | undefined;
  /** The failed crawl that it repeats. */
  readonly againOf?: string | undefined;
  /** The name of the batch that it belongs to. */
  readonly batch?: string | undefined;
  /** What its client keeps with it: JSON in one line of ASCII. Comes back with the result. */
  readonly metadata?: string | undefined;
  /** The trace that it belongs to (W3C `traceparent`); each try and delivery is a part of it. */
  readonly traceparent?: string | undefined;
}

/** A job that was found in the queue. */
export interface DueJob extends QueuedJob {
  /** Since when it could be crawled. */
  readonly dueAt: Date;
}

/** A job as the queue holds it. */
export interface QueuedJob extends Job {
  readonly state: 'waiting' | 'running' | 'retrying';
  /** How many times the crawl was retried. */
  readonly retry: number;
  /**
   * Counts the claims. Every later write on the job names the attempt of its claim, so a worker
   * that lost its lease cannot write.
   */
  readonly attempt: number;
  /** How many claims ended because the crawl's thread, or its process, ended. */
  readonly crashes: number;
  /**
   * The rungs of its crawler's ladder that have blocked it in sequence, with the reasons:
   * `direct forbidden, pool:a captcha`. The next try takes the rung after them.
   */
  readonly climbed?: string | undefined;
  /** When the first crawl started; the retry window counts from it. */
  readonly firstTriedAt: Date | undefined;
  /** Its failed tries as `domain/job-try.ts` keeps them; undefined before the first. */
  readonly tries?: string | undefined;
}
