import type { Clock } from '../domain/clock.ts';
import type { Crawler } from '../domain/crawler.ts';
import type { Delivery, EndpointAnswer } from '../domain/delivery.ts';
import type { QueuedJob } from '../domain/job.ts';
import type { Logger } from '../domain/logger.ts';
import type { FairPool, Grant } from '../fairness/fair-pool.ts';
import type { Scheduler } from '../scheduler/scheduler.ts';
import type { DeliveryOutcome, JobOutcome, Store } from '../store/store.ts';
import type { HostInquiry, HostNews } from './host-news.ts';

/** What the dispatcher works with. */
export interface DispatcherDeps {
  readonly store: Pick<Store, 'queue' | 'hosts' | 'shares' | 'traits' | 'deliveries' | 'crawlers'>;
  readonly scheduler: Pick<Scheduler, 'wake' | 'runNow'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Names this process in leases. */
  readonly processId: string;
  /**
   * Crawls one URL. The store decides whether the outcome still counts. Rejects only if aborted.
   */
  readonly crawlJob: (
    job: QueuedJob,
    crawler: Crawler,
    signal: AbortSignal,
    host?: HostInquiry,
  ) => Promise<
    HostNews & {
      readonly outcome: JobOutcome;
      /** Memory that the page holds beyond `crawlBytes`; released when the outcome is written. */
      readonly held: Grant | undefined;
      /** The page before compression, where it is at hand. */
      readonly plain?: Uint8Array;
    }
  >;
  /** Whether URLs of the account may be crawled now; if not, they stay queued. Default: always. */
  readonly mayCrawl?: (accountId: string) => Promise<boolean>;
  /**
   * The crawler as it was at some time, if that is known: the lease shows whether it has changed
   * since. Default: it is read.
   */
  readonly knownCrawler?: (crawlerId: string) => Crawler | undefined;
  /** Called when a crawl starts, with the time since its job was due. */
  readonly onStart?: (lagMs: number) => void;
  /** How many crawls of the crawler at once this process has room for. */
  readonly roomFor: (crawler: Crawler) => number;
  /** Whether it has room for another one now. */
  readonly hasRoomFor: (crawler: Crawler) => boolean;
  /** Bytes of the memory budget that are reserved for each crawl. */
  readonly crawlBytes: number;
  readonly shared: SharedByCrawlers;
  /**
   * Makes one attempt of deliveries that share a POST; one, unless the crawler delivers several
   * together. `outcomes` are of the first deliveries: the others were not sent. `answer` decides how soon
   * the next may start; `isTooLong` asks for fewer results a POST. Rejects only if aborted.
   */
  readonly postDeliveries: (
    crawler: Crawler,
    deliveries: readonly Delivery[],
    signal: AbortSignal,
  ) => Promise<{
    readonly outcomes: readonly DeliveryOutcome[];
    readonly answer: EndpointAnswer;
    readonly isTooLong: boolean;
  }>;
  /** How long an endpoint has to acknowledge a delivery. */
  readonly ackTimeoutMs: number;
  readonly timing: DispatchTiming;
}

/** Pools that the crawlers of a process share; accounts take turns. */
export interface SharedByCrawlers {
  /** Bytes of pages and bodies. */
  readonly memory: FairPool;
  /** Crawls of plain HTTP in flight. */
  readonly crawlSlots: FairPool;
  /** Crawls in the browser in flight: no more than it has pages, so that jobs wait in the queue. */
  readonly pageSlots: FairPool;
  /** Runs: crawlers that are dispatched. */
  readonly runSlots: FairPool;
  /** Turns at the database. */
  readonly turns: FairPool;
}

/** The dispatcher's own times, in milliseconds. */
export interface DispatchTiming {
  /** How long a lease lives without renewal, so how long a crashed process keeps its crawlers. */
  readonly leaseMs: number;
  /** How often leases are renewed. */
  readonly renewMs: number;
  /** The least time between the beginnings of two turns of a run, unless one is urgent. */
  readonly turnMs: number;
  /** How often a process looks at the crawlers that it holds, for what others have done to them. */
  readonly pollMs: number;
  /** How long a run without work keeps its crawler. */
  readonly idleReleaseMs: number;
  /** How long crawls in flight may continue after the scheduler began to close. */
  readonly drainMs: number;
}

/** What the dispatcher of one process does now. */
export interface DispatcherActivity {
  /** Crawlers dispatched. */
  readonly crawlers: number;
  /** Crawls and deliveries in flight. */
  readonly crawls: number;
  readonly deliveries: number;
  /** Jobs read ahead that have not started. */
  readonly buffered: number;
  /** Starts and ends of crawls and deliveries that the next turns write. */
  readonly unwritten: number;
}

/** What one run does now. */
export type RunActivityNow = Omit<DispatcherActivity, 'crawlers'>;
