import type { TokenType } from '../domain/account.ts';
import type { Crawler, CrawlerCounters } from '../domain/crawler.ts';
import type { Delivery, DeliverySummary } from '../domain/delivery.ts';
import type { QueuedJob } from '../domain/job.ts';
import type { MatchFilter } from '../domain/match-filter.ts';
import type { CrawlRecord, CrawlStatus } from '../domain/result.ts';
import type { ReadFailedCrawls } from './failed-crawls.ts';
import type { ResultSelection } from './store.ts';

/** A part of a listing that is asked for: from the beginning, or behind the `cursor` of the part before. */
export interface ListingPart {
  readonly limit: number;
  /** As the store returned it. Throws `invalid` naming `page_token` for any other. */
  readonly cursor?: string;
}

/**
 * A part of a listing. A call looks through a bounded number of rows, so there may be fewer than
 * were asked for, or none, and still a next part.
 */
export interface Listing<Row> {
  readonly rows: readonly Row[];
  /** Where the next part begins; undefined after the last. */
  readonly cursor: string | undefined;
}

/** A crawler and its counters, read together. */
export interface CrawlerOverview {
  readonly crawler: Crawler;
  readonly counters: CrawlerCounters;
}

/** A job in a queue without its body and parameters. */
export interface JobSummary
  extends Omit<
    QueuedJob,
    | 'accountId'
    | 'body'
    | 'contentType'
    | 'parameters'
    | 'callbackHeaders'
    | 'unique'
    | 'attempt'
    | 'crashes'
    | 'tries'
    | 'traceparent'
  > {
  /** The earliest moment of its next try. */
  readonly dueAt: Date;
  /** Why its last try failed. */
  readonly lastFailure: string | undefined;
}

/** A stored result without its page. */
export interface ResultSummary
  extends Pick<CrawlRecord, keyof CrawlStatus | 'rid' | 'pushedUrl' | 'contentType' | 'details'> {
  readonly storedAt: Date;
  readonly expiresAt: Date;
  /** Bytes of the page as it is kept. */
  readonly size: number;
  /** Absent for inline crawls, and for results of an older program. */
  readonly crawlerId?: string;
}

/** How a crawl ended, as the crawler's counters name it. */
export type CrawlOutcome = 'completed' | 'failed';

/** Jobs that are listed: those of a state, or the waiting ones whose `notBefore` is later. */
export type ListedJobState = 'waiting' | 'retrying' | { readonly scheduledAfter: Date };

/** Which deliveries are listed; all conditions together. */
export interface DeliveryFilter {
  readonly state?: DeliverySummary['state'];
  readonly outcome?: CrawlOutcome;
  /** Of state `pending`: those that wait for another attempt. */
  readonly retried?: true;
  /** Of `[from, to)` by the end of their crawl, oldest first. Newest first without it. */
  readonly range?: { readonly from: Date; readonly to: Date };
  readonly matches?: MatchFilter;
}

/** Where a `rid` was found; each part is present if there is one. */
export interface FoundRid {
  readonly job?: JobSummary & QueuedJob;
  readonly delivery?: DeliverySummary &
    Pick<
      Delivery,
      'crawlerId' | 'contentType' | 'details' | 'callbackHeaders' | 'traceparent' | 'request'
    >;
  readonly result?: ResultSummary & {
    readonly request?: string | undefined;
    readonly accountId: string;
    readonly tokenType: TokenType;
  };
}

/** What selects crawlers in trouble. */
export interface TroubleLimits {
  /** Most URLs that the queue of a crawler holds. */
  readonly queueLimit: number;
  /** The accounts whose crawls are held back. */
  readonly heldAccounts: readonly string[] | 'all';
}

/** Reads for people, who look at what the queues hold and what became of it. */
export interface ListingStore {
  /**
   * The crawlers of these accounts with their counters, in one query; those of the service itself
   * included. Of an account with more than `limit` the first by name. `nameContains`, in lower case,
   * leaves only those with that part in their name, upper and lower case alike.
   */
  crawlers(
    accountIds: readonly string[],
    limit: number,
    nameContains?: string,
  ): Promise<CrawlerOverview[]>;
  /**
   * Crawlers that may need attention, up to `limit`: paused by the monitor, with a streak of failed
   * tries, with `queueLimit` queued URLs or more, or held up by a host. Of `heldAccounts` those with
   * any queued URL. Reads the counters of all.
   */
  troubled(limits: TroubleLimits, limit: number): Promise<CrawlerOverview[]>;
  /** Waiting and retrying jobs, earliest due first; or those of one state. */
  jobs(
    crawlerId: string,
    state: ListedJobState | undefined,
    part: ListingPart,
    matches?: MatchFilter,
  ): Promise<Listing<JobSummary>>;
  /**
   * The same of one host, by its index, in no order. `cursor` only says that there may be more; a part
   * cannot be continued.
   */
  jobsOfHost(
    crawlerId: string,
    host: string,
    part: Pick<ListingPart, 'limit'>,
    matches?: MatchFilter,
  ): Promise<Listing<JobSummary>>;
  /**
   * Deliveries, newest first. Pending ones are listed by their next attempt, unless a range is
   * given. Each has its last {@link LISTED_ATTEMPTS} attempts.
   */
  deliveries(
    crawlerId: string,
    filter: DeliveryFilter,
    part: ListingPart,
  ): Promise<Listing<DeliverySummary>>;
  /** Stored results of a token or of one crawler, newest first. */
  results(
    selection: ResultSelection,
    outcome: CrawlOutcome | undefined,
    part: ListingPart,
    matches?: MatchFilter,
  ): Promise<Listing<ResultSummary>>;
  failedCrawls: ReadFailedCrawls;
  /** Finds a `rid` anywhere; the caller checks whose it is. */
  locate(rid: string): Promise<FoundRid>;
}

/** The attempts of a delivery that lists show: the latest. */
export const LISTED_ATTEMPTS = 20;

/** The most rows that one part of a listing looks through. */
export const LISTING_SCAN = 2_000;

/** The most characters that these rows have, about: headers of sites may make each of them long. */
export const LISTING_CHARACTERS = 4 * 1024 * 1024;
