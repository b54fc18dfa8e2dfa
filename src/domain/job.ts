import type { CrawlParameters } from './parameters.ts';

/** What is sent to the target, and how. */
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
  /** 24 lower-case hexadecimal digits; the first eight are the second it was made, so order by `rid` is by age. */
  readonly rid: string;
  readonly crawlerId: string;
  readonly accountId: string;
  /** Extra headers of the webhook delivery. */
  readonly callbackHeaders: readonly HeaderPair[];
  /** When it leaves the queue if no crawl has started by then. */
  readonly queueDeadline: Date | undefined;
  readonly createdAt: Date;
}

/** A job as the queue holds it. */
export interface QueuedJob extends Job {
  readonly state: 'waiting' | 'running' | 'retrying';
  /** How many times the crawl was retried. */
  readonly retry: number;
  /**
   * Counts the claims. Every later write on the job names the attempt it was claimed with, so a worker that lost its
   * lease cannot write.
   */
  readonly attempt: number;
  /** How many claims ended because the crawl took its thread, or its process, with it. */
  readonly crashes: number;
  /** When the first crawl started; the retry window counts from it. */
  readonly firstTriedAt: Date | undefined;
}

/** The statuses and address of a finished crawl. */
export interface CrawlStatus {
  /** Status given by the service, see `status.ts`. */
  readonly cbStatus: number;
  /** Status of the target, 0 when it gave none; 504 for a job that waited too long. */
  readonly originalStatus: number;
  /** Address of the page after redirects. */
  readonly url: string;
}

/** The end of a job, as it will be delivered or stored. */
export interface CrawlRecord extends CrawlStatus {
  readonly rid: string;
  /** The URL as it was pushed; storage is searched by it. */
  readonly pushedUrl: string;
  /** Media type of the body before compression. */
  readonly contentType: string;
  /** gzip-compressed, in the bytes that will be served or delivered. */
  readonly body: Uint8Array;
  /** Further result fields, for example `screenshot_url` and `original_*`. */
  readonly extras: Readonly<Record<string, string>>;
}

/** A record in storage. */
export interface StoredResult extends CrawlRecord {
  readonly storedAt: Date;
}
