import type { BodyCoding } from './body-coding.ts';
import type { KeptTry } from './job-try.ts';

/** The statuses and address of a finished crawl. */
export interface CrawlStatus {
  /** Status given by the service, see `status.ts`. */
  readonly cbStatus: number;
  /** Status of the target, 0 when it gave none; 504 for a job that waited too long. */
  readonly originalStatus: number;
  /** Address of the page after redirects. */
  readonly url: string;
}

/** What a result reports in addition to its statuses, addresses and page. */
export interface ResultDetails {
  /** Why the crawl failed, for example `timeout`; absent when it ended well. */
  readonly failure?: string | undefined;
  /** Where the screenshot is kept for an hour. */
  readonly screenshotUrl?: string | undefined;
  /** Why there is no screenshot although one was requested. */
  readonly screenshotFailed?: string | undefined;
  /** When the page was crawled, if it came from storage; ISO 8601. */
  readonly crawledAt?: string | undefined;
  /** The rung of the crawler's ladder that the page came by; absent without a ladder. */
  readonly rung?: string | undefined;
  /** See `QueuedJob.climbed`. */
  readonly climbed?: string | undefined;
  /** See `Job.againOf`. */
  readonly againOf?: string | undefined;
  /** See `Job.batch`. */
  readonly batch?: string | undefined;
  /** The event that is delivered in place of a result. */
  readonly event?: 'batch.completed' | undefined;
  /** See `Job.metadata`. */
  readonly metadata?: string | undefined;
  /** When its job was pushed; milliseconds. Like the tries not a part of what is delivered. */
  readonly pushedAt?: number | undefined;
  /** The latest tries of its job. */
  readonly tries?: readonly KeptTry[] | undefined;
  /**
   * The target's response headers that the client requested, by name in lower case with underscores
   * for hyphens. Names and values are the target's: nothing about them is checked.
   */
  readonly originalHeaders?: Readonly<Record<string, string>>;
}

/** The end of a job, as it is stored or delivered. */
export interface CrawlRecord extends CrawlStatus {
  readonly rid: string;
  /** The URL as it was pushed; storage is searched by it. */
  readonly pushedUrl: string;
  /** Media type of the body before compression. */
  readonly contentType: string;
  /** Compressed; gzip where it is a delivery. */
  readonly body: Uint8Array;
  readonly coding: BodyCoding;
  readonly details: ResultDetails;
  /** Of a failed crawl, what is kept to push it again; see `kept-request.ts`. */
  readonly request?: string | undefined;
  /** See `page-key.ts`; set if the page may serve other requests. */
  readonly pageKey?: string | undefined;
}

/** A record in storage. */
export interface StoredResult extends CrawlRecord {
  readonly storedAt: Date;
}
