import type { TokenType } from '../domain/account.ts';
import type { Delivery } from '../domain/delivery.ts';
import type { DueJob, Job, QueuedJob } from '../domain/job.ts';
import type { CrawlRecord } from '../domain/result.ts';
import type { DeliveryOutcome } from './delivery-store.ts';
import type { Sharing } from './share-store.ts';

/** Until when a crawler's work of each kind is held back; absent if it is not. */
export interface HeldUntil {
  readonly job?: Date | undefined;
  readonly delivery?: Date | undefined;
  /** `CrawlerChanges.work` as the holder has seen it last. If there is more, jobs are not held back. */
  readonly seenWork?: number | undefined;
}

/** The limits that a push is checked against. */
export interface PushLimits {
  /** The most waiting and retrying URLs of one crawler. */
  readonly crawlerQueue: number;
  /** Pushes are refused while the account has more queued URLs than this. */
  readonly accountQueue: number;
}

/** One push call: its jobs go to one crawler. */
export interface PushRequest {
  readonly crawlerId: string;
  readonly accountId: string;
  readonly jobs: readonly Job[];
  /**
   * {@link CrawlerChanges.settings} of the crawler as the jobs were made for it. They are refused as
   * `crawler_not_found` if the crawler has changed since.
   */
  readonly settings?: number;
  /** Makes a repeated call return the outcomes and places of the first, for 24 hours. */
  readonly requestId?: string;
  /** With `requestId`: the place of each job in the caller's list. */
  readonly places?: readonly number[];
}

/** The result of one push. */
export interface PushReceipt {
  /** One for each job, in order; those of the first call if it is repeated. */
  readonly outcomes: readonly PushOutcome[];
  /** {@link PushRequest.places} of the outcomes of a first call, if it is repeated. */
  readonly places?: readonly number[];
  /**
   * True for the one push that took the account over its limit. The next one can be true only after
   * the account has fallen to 90 % of the limit.
   */
  readonly crossedAccountLimit: boolean;
  /** Whether a live lease dispatches the crawler; if not, the caller must wake it. */
  readonly leased: boolean;
}

/** `duplicate`: a job before has the same unique key, and this is its `rid`. */
export type PushOutcome =
  | { readonly rid: string; readonly duplicate?: true }
  | {
      readonly refused:
        | 'crawler_queue_full'
        | 'account_queue_full'
        | 'crawler_not_found'
        | 'batch_closed'
        | 'too_many_batches';
    };

/** The right to dispatch one crawler, or a share of it. */
export interface Lease {
  readonly crawlerId: string;
  readonly owner: string;
  /**
   * Grows with every new holder; claims under an older epoch are refused. Of a share it is the
   * negative `shareId`.
   */
  readonly epoch: number;
  /** When it ends unless it is renewed; later than requested if taking it took long. */
  readonly until?: Date;
  /** Until when other processes may have crawled; until now if absent. */
  readonly formerUntil?: Date | undefined;
  /** {@link CrawlerChanges.work} when it was taken; default 0. */
  readonly work?: number;
  /** {@link CrawlerChanges.settings} when it was taken, if the store read them. */
  readonly settings?: number;
  /** {@link CrawlerChanges.sharing} when it was taken. */
  readonly sharing?: Sharing | undefined;
}

/** What a process has to know of a crawler that it holds. */
export interface CrawlerChanges extends Pick<Lease, 'crawlerId' | 'epoch'> {
  /** Whether the lease is still current. */
  readonly held: boolean;
  /** Changes when the crawler may have got work from another process. */
  readonly work: number;
  /** Changes with the settings and the pauses. */
  readonly settings: number;
  /** Undefined if it was never shared. */
  readonly sharing?: Sharing | undefined;
}

/** A crawl that began since the last turn and is still in flight. */
export interface StartedJob {
  readonly rid: string;
  /** The attempt of this crawl: one more than the job had in the queue. */
  readonly attempt: number;
  readonly startedAt: Date;
}

/**
 * What a run writes and reads in one turn. Its parts happen in the order of the fields: a job that
 * goes back to the queue here can be found by the look.
 */
export interface TurnWork {
  /** Ends of crawls. */
  readonly ended?: readonly JobOutcome[] | undefined;
  /** Refused while the crawler is paused: such a crawl is dropped, and its job stays queued. */
  readonly started?: readonly StartedJob[] | undefined;
  /** Ends of delivery attempts. */
  readonly settled?: readonly DeliveryOutcome[] | undefined;
  /**
   * Due deliveries to claim, the longest due first: how many, and about how many bytes of pages
   * together, but at least one. None while the monitor has paused the crawler; they continue while a
   * user has.
   */
  readonly deliveries?: { readonly limit: number; readonly maxBytes: number } | undefined;
  readonly look?: QueueLook | undefined;
}

/**
 * A look at the jobs that are due: those with the earliest due time (of jobs with priorities, with
 * the least `orderMs`), except the rids that the run
 * has already. Jobs past their queue deadline are left to {@link QueueStore.overdue} unless they
 * were tried before. It changes nothing: to everyone else the jobs still wait.
 */
export interface QueueLook {
  readonly limit: number;
  /** Of `chargedJobBytes` together, about; at least one job is found. No limit if absent. */
  readonly maxBytes?: number;
  readonly except?: readonly string[];
  /** Only jobs with one of these digits; all if absent. See `domain/share-digits.ts`. */
  readonly digits?: string | undefined;
  /**
   * Looks host by host, so that one with many jobs does not hide the others. Of each host those with
   * the least `orderMs` come first.
   */
  readonly hosts?: HostsLook;
  /**
   * Looks by age in spite of `hosts`, which costs less, if all jobs have the same priority. Without
   * `hosts` always set.
   */
  readonly byAge?: boolean;
}

/** How a look goes from host to host. */
export interface HostsLook {
  /** Jobs of one host at most, in the first round. */
  readonly perHost: number;
  /** Jobs at most of hosts that have more, once the look has seen all hosts. */
  readonly rest: number;
  /** It begins with the hosts behind this one, and continues with the first. */
  readonly after: string;
  /** Hosts of which nothing is read. */
  readonly closed: readonly string[];
  /** Hosts that are read last. */
  readonly full: readonly string[];
}

/**
 * Whether a write found its job or delivery in the attempt it named; a lost one changed nothing.
 */
export type Verdict = 'won' | 'lost';

/** What a look has found. */
export interface LookReceipt {
  readonly jobs: readonly DueJob[];
  /** Whether it may have left due jobs, because of its limits. */
  readonly hasMore: boolean;
  /** When the next job falls due, unless it has left due ones; undefined if none will. */
  readonly nextDueAt: Date | undefined;
  /** By hosts: whether every host with due jobs has some in `jobs`, or was left out. */
  readonly seesAllHosts?: boolean;
  /** Where the next look by hosts continues; absent if this one has seen all of them. */
  readonly lastHost?: string;
}

/** What a turn did. Its look finds nothing when the lease is not current or the crawler is paused. */
export interface TurnReceipt extends LookReceipt {
  /** One for each end, in order. */
  readonly verdicts: readonly Verdict[];
  /** One for each settled delivery, in order. */
  readonly settled: readonly Verdict[];
  /** The held deliveries that were won, and those that were claimed. */
  readonly held: readonly Delivery[];
  readonly claimed: readonly Delivery[];
  /** When the next delivery falls due, if some were asked for, none was due, and there is one. */
  readonly nextDeliveryAt: Date | undefined;
  /**
   * The started jobs whose start was not written, because they were removed first, or for one of
   * the two reasons below. Their crawls must be dropped.
   */
  readonly lost: readonly string[];
  readonly leaseLost: boolean;
  readonly paused: boolean;
}

/** The end of a crawl, or of a wait in the queue. `attempt` is the one the job was claimed with. */
export type JobOutcome = {
  readonly rid: string;
  readonly crawlerId: string;
  readonly attempt: number;
  /** The trace that the end and its delivery belong to. */
  readonly traceparent?: string | undefined;
  /** Bytes that the crawl has sent and received through proxies. */
  readonly proxyBytes?: number;
} & (
  | {
      /** Failed for a transient reason; due again at `dueAt`. */
      readonly kind: 'retry';
      readonly dueAt: Date;
      /** Why it failed; kept with the job until its next failure. */
      readonly failure?: string;
      /** See `QueuedJob.climbed`: the rungs that have blocked it; absent if it has not climbed. */
      readonly climbed?: string;
      /** What the job keeps of its tries from now on; see `domain/job-try.ts`. */
      readonly tries?: string;
      /** The thread that ran the crawl died with it; counted in the job's `crashes`. */
      readonly crashed?: boolean;
    }
  | {
      /**
       * Returned to the queue without a try, as at shutdown or without room in the process. Does not
       * count as a retry; due at once if `dueAt` is absent.
       */
      readonly kind: 'release';
      readonly dueAt?: Date;
    }
  | {
      /** Crawled; the result goes into storage. */
      readonly kind: 'stored';
      readonly record: CrawlRecord;
      readonly tokenType: TokenType;
      readonly billed: boolean;
      readonly expiresAt: Date;
    }
  | {
      /**
       * Crawled; the result goes to the callback URL. With `held` true the caller delivers at once:
       * the delivery starts as claimed, with attempt 1, under the caller's lease. Otherwise it is
       * due at once for anyone who claims it.
       */
      readonly kind: 'delivery';
      readonly record: CrawlRecord;
      readonly callbackHeaders: Delivery['callbackHeaders'];
      readonly billed: boolean;
      readonly expiresAt: Date;
      readonly held: boolean;
    }
) & {
    /**
     * True for a job that waited too long and was never claimed: it must still be queued, with
     * `attempt` unchanged.
     */
    readonly timedOut?: boolean;
    /**
     * When the crawl began, if no turn is known to have written that: then the job may also still be
     * queued, in the attempt before.
     */
    readonly startedAt?: Date;
    /** How long the crawl took, in milliseconds. */
    readonly tookMs?: number;
  };

export interface QueueStore {
  /**
   * Checks the limits and inserts the jobs; all of it is durable when the promise resolves. Pushes
   * that arrive together share one write. A job is accepted while its crawler has fewer than
   * `limits.crawlerQueue` waiting and retrying URLs and its account at most `limits.accountQueue`;
   * the others are refused one by one. A job whose unique key another one has, which can be one of
   * the same push, is not inserted. A key with `until` holds until then, any other while its job
   * exists. Removals and purges free keys.
   */
  push(request: PushRequest, limits: PushLimits, now: Date): Promise<PushReceipt>;
  /**
   * Takes the crawler's lease until `now + ttlMs`, unless another owner has a live one. Jobs and
   * deliveries that an older epoch had in progress become due again at once; a job keeps its retry
   * count. If the previous lease had lapsed, its holder counts as crashed, and the `crashes` of
   * each job that it was crawling grow by one. Undefined also while another owner has a live lease of
   * a crawler of the same account and pace group.
   */
  acquire(crawlerId: string, owner: string, ttlMs: number, now: Date): Promise<Lease | undefined>;
  /**
   * Looks at all crawlers that a process holds, and renews their leases until `now + ttlMs` if that
   * is given. Crawlers that are gone are left out.
   */
  visit(leases: readonly Lease[], now: Date, ttlMs?: number): Promise<CrawlerChanges[]>;
  /**
   * Ends the lease and returns when the crawler has work next: its earliest due job (now or later)
   * or delivery. Both in one step, so that no push is missed between them. Pauses count as for
   * {@link crawlersWithWorkDue}. Work of a kind that is held back is due when that ends.
   */
  release(
    lease: Lease,
    now: Date,
    heldUntil?: HeldUntil,
  ): Promise<{ readonly wakeAt: Date | undefined }>;
  /**
   * Writes what ended and started in a run since its last turn, and looks for more. A run starts the
   * jobs that it has found whenever it has room, and writes that in its next turn. No other process
   * starts jobs of the crawler while the lease is current. A crash in between leaves a job queued,
   * untried.
   */
  turn(lease: Lease, work: TurnWork, now: Date): Promise<TurnReceipt>;
  /**
   * Ends jobs outside of a run. Each is won when the job still is in the state and attempt named; a
   * lost one changes nothing. Counters and the day's history change in the same write.
   */
  finish(outcomes: readonly JobOutcome[], now: Date): Promise<Verdict[]>;
  /** Jobs of any crawler, never tried, whose queue deadline has passed; oldest deadline first. */
  overdue(now: Date, limit: number): Promise<QueuedJob[]>;
  /**
   * Crawlers that have a job or a delivery due and no live lease. While a user has paused a crawler
   * only its deliveries count, while the monitor has paused it nothing does. Idle crawlers cost
   * nothing.
   */
  crawlersWithWorkDue(now: Date, limit: number): Promise<string[]>;
  find(crawlerId: string, rid: string): Promise<QueuedJob | undefined>;
  /** How many jobs wait for their `notBefore`. */
  countScheduled(crawlerId: string, now: Date): Promise<number>;
  /** Removes a queued or running job; false when it does not exist. */
  deleteJob(crawlerId: string, rid: string, now: Date): Promise<boolean>;
  /** The same with several in one write; returns the `rid`s of those that existed. */
  deleteJobs(crawlerId: string, rids: readonly string[], now: Date): Promise<string[]>;
  /** Removes all waiting and retrying jobs, and returns their number. */
  purge(crawlerId: string, now: Date): Promise<number>;
}
