import { AWAY, type HostAnswer, type HostAway } from '../../dispatcher/host-health.ts';
import type { HostInquiry, HostNews } from '../../dispatcher/host-news.ts';
import { type ServiceClock, wallNow } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import { defined } from '../../domain/defined.ts';
import { deliveryModes } from '../../domain/delivery-mode.ts';
import { DAY_MS, HOUR_MS } from '../../domain/durations.ts';
import type { CrawlRequest, QueuedJob } from '../../domain/job.ts';
import { addTry, failingMs, type JobTry, type KeptTry, parseTries } from '../../domain/job-try.ts';
import { keptRequestText, shortRequestText } from '../../domain/kept-request.ts';
import { pageKey } from '../../domain/page-key.ts';
import type { CrawlRecord } from '../../domain/result.ts';
import { nextCrawlRetry } from '../../domain/retry-schedule.ts';
import { ridTime } from '../../domain/rid.ts';
import {
  type FailureReason,
  isBilled,
  longestWindow,
  mostRetries,
  UNTRIED,
} from '../../domain/status.ts';
import { resultEnd } from '../../domain/tally.ts';
import type { CrawlFailure, CrawlTask } from '../../engine/engine.ts';
import { failedPage } from '../../engine/failed-page.ts';
import type { Grant } from '../../fairness/fair-pool.ts';
import type { JobOutcome } from '../../store/store.ts';
import type { CrawlResult } from '../../threads/build-result.ts';
import type { Crawled, CrawlOrder } from '../../threads/crawl-threads.ts';
import { ThreadLost } from '../../threads/thread-lost.ts';
import { isOfOtherKey } from '../accounts/account-pools.ts';
import type { Crawling, PoliteCrawl } from './crawling.ts';
import type { Ladders, RungTry } from './ladder.ts';
import type { ProxyBudgets } from './proxy-budgets.ts';

/** Before a job for which the process had no room is tried again. */
const BUSY_MS = 5_000;
/** Before a host is asked again whose proxies could not be read. */
const UNREAD_MS = 5_000;
/** Before a crawl whose thread ended because of another one is tried again. */
const LOST_MS = 1_000;
/** Crawls that ended their thread: the third ends the job. */
const MAX_CRASHES = 3;
/**
 * Claims that never ended, as when the process dies, which is rarely the page's fault: the tenth
 * ends the job.
 */
const MAX_LOST_CLAIMS = 10;

/** What crawling jobs works with. */
export interface CrawlJobDeps {
  readonly crawling: Crawling;
  readonly ladders: Pick<Ladders, 'start'>;
  readonly budgets: ProxyBudgets;
  readonly clock: ServiceClock;
  readonly retentionDays: number;
  readonly random?: () => number;
}

/** The outcome of a job, and the memory that its page holds. */
export interface JobEnd extends HostNews {
  readonly outcome: JobOutcome;
  /** See {@link CrawlResult.plain}. */
  readonly plain?: Uint8Array;
  /** The caller releases it when the outcome has been written. */
  readonly held: Grant | undefined;
}

interface EndedTry {
  readonly job: QueuedJob;
  readonly crawler: Crawler;
  readonly crawled: PoliteCrawl;
  readonly hostAway: HostAway | undefined;
  readonly rungTry: RungTry | undefined;
  readonly triesAfter: TriesAfter;
}

/** Crawls jobs and ends them. */
export interface CrawlJobs {
  /** Crawls one URL. Resolves with a result, or a time to try again; rejects only when aborted. */
  crawl(job: QueuedJob, crawler: Crawler, signal: AbortSignal, host?: HostInquiry): Promise<JobEnd>;
  /** Ends a job that waited longer than its `queue_timeout`. */
  expire(job: QueuedJob, crawler: Crawler): Promise<JobOutcome>;
}

/** Makes the use cases. */
export function createCrawlJobs(deps: CrawlJobDeps): CrawlJobs {
  const { clock, crawling } = deps;
  const random = deps.random ?? Math.random;

  const after = (ms: number): Date => new Date(clock.now().getTime() + ms);

  function end(
    job: QueuedJob,
    crawler: Crawler,
    { result, held }: Crawled,
    tries: readonly KeptTry[] = parseTries(job.tries),
  ): JobEnd {
    const expiresAt = after(deps.retentionDays * DAY_MS);
    const outcome = toOutcome(job, crawler, withLife(result, job, tries), expiresAt);
    return { outcome, held, ...defined({ plain: result.plain }) };
  }

  async function fail(job: QueuedJob, crawler: Crawler, reason: FailureReason): Promise<JobEnd> {
    const order = toOrder(job, crawler);
    return end(job, crawler, await crawling.result(failedPage(order.task, reason), order));
  }

  /** When the job is tried again; undefined when its retries or its window are used up. */
  function retryAt(
    job: QueuedJob,
    crawler: Crawler,
    failure?: CrawlFailure,
    hostAway?: HostAway,
  ): Date | undefined {
    const now = clock.now();
    const reason = failure?.reason ?? '';
    const planned = nextCrawlRetry({
      retry: job.retry,
      firstTriedAt: windowStart(job, now, hostAway?.since),
      now,
      maxRetries: Math.min(crawler.maxRetries, mostRetries(reason)),
      windowHours: crawler.retryWindowHours,
      retryAfterMs: failure?.retryAfterMs,
      random: random(),
    });
    if (planned === undefined) return undefined;
    const hostMs = hostAway?.reason === reason ? now.getTime() - hostAway.reasonSince.getTime() : 0;
    const ms = Math.max(failingMs(parseTries(job.tries), reason, wallNow(clock)), hostMs);
    const latestMs = longestWindow(reason) * HOUR_MS;
    return ms + planned.getTime() - now.getTime() > latestMs ? undefined : planned;
  }

  async function endLost(
    job: QueuedJob,
    crawler: Crawler,
    lost: ThreadLost,
    triesAfter: TriesAfter,
  ): Promise<JobEnd> {
    if (!lost.blamed) return release(job, after(random() * LOST_MS));
    const failure = 'crawl_crashed';
    const dueAt = job.crashes + 1 < MAX_CRASHES ? retryAt(job, crawler) : undefined;
    if (dueAt === undefined) return fail(job, crawler, failure);
    return retry(job, dueAt, { crashed: true, failure, tries: triesAfter({ failure }) });
  }

  /** Begins a try of the job; the result makes the tries that are kept once it has ended. */
  function startTry(job: QueuedJob, rung?: string): TriesAfter {
    const startedAt = wallNow(clock);
    const started = performance.now();
    return ({ failure, detail, originalStatus = 0, steps = [] }) =>
      addTry(parseTries(job.tries), {
        startedAt,
        durationMs: Math.round(performance.now() - started),
        originalStatus,
        failure,
        detail,
        steps,
        rung,
      });
  }

  /** What becomes of a job whose crawl has ended. */
  async function endTry({
    job,
    crawler,
    crawled,
    hostAway,
    rungTry,
    triesAfter,
  }: EndedTry): Promise<JobEnd> {
    if (crawled.isStored === true) return end(job, crawler, crawled);
    const { failure } = crawled.result;
    const climb = rungTry?.end(crawled);
    if (climb !== undefined) {
      crawled.held?.release();
      const { reason, climbed } = climb;
      const tries = triesAfter({ ...crawled.result, failure: reason });
      const back = retry(job, after(0), { failure: reason, climbed, tries });
      // The block concerns the rung alone: the host is not asked less for it.
      return { ...back, answer: { kind: 'answered' }, tried: { failure: reason } };
    }
    const { reason: failed = '', detail } = failure ?? {};
    const tries = triesAfter({ ...crawled.result, failure: failed, detail });
    const { robotsDelayMs } = crawled;
    const untold = defined({ answer: hostAnswer(crawled, crawler, job, rungTry), robotsDelayMs });
    const told = { ...untold, tried: defined({ failure: failure?.reason }) };
    if (failure === undefined || !failure.transient) {
      return { ...end(job, crawler, crawled, tries), ...told };
    }
    if (UNTRIED.has(failure.reason)) {
      crawled.held?.release();
      const { retryAfterMs: wantedMs = BUSY_MS } = failure;
      // A change of the crawler or of its pools ends the wait of its host sooner, and not that of the job.
      const isSooner = untold.answer?.kind === 'waits' && failure.reason === 'proxy_unavailable';
      const waitMs = isSooner ? Math.min(wantedMs, Math.max(BUSY_MS, wantedMs / 10)) : wantedMs;
      return { ...release(job, after(waitMs)), ...untold };
    }
    const planned = retryAt(job, crawler, failure, hostAway);
    const isNext = job.retry === 0 && crawled.ofProxy === 'lost';
    // Another proxy is tried at once. The host may be silent to all, so further retries wait.
    const dueAt = planned !== undefined && isNext ? after(0) : planned;
    if (dueAt === undefined) return { ...end(job, crawler, crawled, tries), ...told };
    crawled.held?.release();
    return { ...retry(job, dueAt, { failure: failure.reason, tries }), ...told };
  }

  async function crawl(
    job: QueuedJob,
    crawler: Crawler,
    signal: AbortSignal,
    { hostAway, onSent }: HostInquiry = {},
  ): Promise<JobEnd> {
    if (job.crashes >= MAX_LOST_CLAIMS) return fail(job, crawler, 'crawl_crashed');
    const rungTry = await deps.ladders.start(job, crawler);
    const triesAfter = startTry(job, rungTry?.rung.name);
    let crawled: PoliteCrawl;
    try {
      const order = toOrder(job, crawler, onSent, rungTry, deps.budgets.of(crawler));
      crawled = await crawling.crawl(order, signal);
    } catch (error) {
      if (error instanceof ThreadLost) return endLost(job, crawler, error, triesAfter);
      throw error;
    }
    const ended = await endTry({ job, crawler, crawled, hostAway, rungTry, triesAfter });
    const { proxyBytes = 0 } = crawled;
    return proxyBytes === 0 ? ended : { ...ended, outcome: { ...ended.outcome, proxyBytes } };
  }

  /** Leaves the URL in the queue, and its host alone for a while. */
  async function waitForPools(job: QueuedJob, crawler: Crawler): Promise<JobEnd> {
    const proxyOpensAtMs = clock.now().getTime() + UNREAD_MS;
    const order = toOrder(job, crawler);
    const page = failedPage(order.task, 'proxy_unavailable', UNREAD_MS);
    const crawled = { ...(await crawling.result(page, order)), proxyOpensAtMs };
    const about = { job, crawler, crawled, hostAway: undefined, rungTry: undefined };
    return endTry({ ...about, triesAfter: startTry(job) });
  }

  return {
    crawl: (job, crawler, ...rest) =>
      crawl(job, crawler, ...rest).catch((error: unknown) => {
        if (isOfOtherKey(error)) return waitForPools(job, crawler);
        throw error;
      }),

    async expire(job, crawler) {
      const order = toOrder(job, crawler);
      const page = { ...failedPage(order.task, 'queue_timeout'), originalStatus: 504 };
      const { outcome } = end(job, crawler, await crawling.result(page, order));
      return { ...outcome, timedOut: true };
    },
  };
}

type TriesAfter = (
  ended: Pick<JobTry, 'failure'> & Partial<Pick<JobTry, 'detail' | 'originalStatus' | 'steps'>>,
) => KeptTry[];

/** The result with what is kept of its job. */
function withLife(
  result: CrawlResult,
  { createdAt }: QueuedJob,
  tries: readonly KeptTry[],
): CrawlResult {
  const life = { pushedAt: createdAt.getTime(), ...(tries.length > 0 ? { tries } : {}) };
  return { ...result, details: { ...result.details, ...life } };
}

function toOrder(
  job: QueuedJob,
  crawler: Crawler,
  onSent?: () => void,
  rungTry?: Pick<RungTry, 'rung' | 'climbed'>,
  budget?: CrawlTask['budget'],
): CrawlOrder {
  const { tokenType, accountId, crawlerId, politeness, delivery, proxy } = crawler;
  const { rung, climbed } = rungTry ?? {};
  const pool = rung?.pool ?? proxy;
  const task = { request: job, tokenType, accountId, crawlerId, politeness, pool };
  return {
    task: { ...task, ...defined({ onSent, budget, inBrowser: rung?.inBrowser }) },
    spec: {
      kind: 'record',
      rid: job.rid,
      delivery,
      ...defined({
        metadata: job.metadata,
        batch: job.batch,
        againOf: job.againOf,
        rung: rung?.name,
        climbed,
      }),
    },
    isSuspect: job.crashes > 0,
    retry: job.retry,
    traceparent: job.traceparent,
  };
}

/** What is kept of a result. */
export function toRecord(rid: string, request: CrawlRequest, result: CrawlResult): CrawlRecord {
  const { cbStatus, originalStatus, url, details, packed, coding, packedType } = result;
  const isSource = resultEnd(cbStatus) === 'completed' && details.crawledAt === undefined;
  return {
    cbStatus,
    originalStatus,
    url,
    rid,
    pushedUrl: request.url,
    contentType: packedType,
    body: packed,
    coding,
    details,
    ...defined({ pageKey: isSource ? pageKey(request) : undefined }),
  };
}

/** The end of a job with a result, which is kept until `expiresAt`. */
function toOutcome(
  job: QueuedJob,
  crawler: Crawler,
  result: CrawlResult,
  expiresAt: Date,
): JobOutcome {
  const { cbStatus, originalStatus, details } = result;
  const textOf = resultEnd(cbStatus) === 'failed' ? keptRequestText : shortRequestText;
  const record = { ...toRecord(job.rid, job, result), ...defined({ request: textOf(job) }) };
  const billed = details.crawledAt === undefined && isBilled(cbStatus, originalStatus);
  const common = { ...named(job), record, billed, expiresAt };
  if (deliveryModes[crawler.delivery].delivers) {
    return { ...common, kind: 'delivery', callbackHeaders: job.callbackHeaders, held: false };
  }
  return { ...common, kind: 'stored', tokenType: crawler.tokenType };
}

function retry(
  job: QueuedJob,
  dueAt: Date,
  more: {
    readonly crashed?: boolean;
    readonly failure: string;
    readonly climbed?: string;
    readonly tries: readonly KeptTry[];
  },
): JobEnd {
  const outcome = { ...named(job), kind: 'retry', dueAt, ...more } as const;
  return { outcome: { ...outcome, tries: JSON.stringify(more.tries) }, held: undefined };
}

/**
 * When the retry window of a job began: at its first try, or before that when its host was not
 * reached. URLs of such a host wait for others to be tried.
 */
function windowStart(job: QueuedJob, now: Date, hostAwaySince: Date | undefined): Date {
  const firstTriedAt = job.firstTriedAt ?? now;
  if (hostAwaySince === undefined) return firstTriedAt;
  const dueSince = job.notBefore ?? ridTime(job.rid);
  const waitedSince = hostAwaySince > dueSince ? hostAwaySince : dueSince;
  return waitedSince < firstTriedAt ? waitedSince : firstTriedAt;
}

/** What a crawl tells about its host. */
function hostAnswer(
  { result, ofProxy, proxyOpensAtMs }: PoliteCrawl,
  crawler: Crawler,
  { parameters }: QueuedJob,
  rungTry: RungTry | undefined,
): HostAnswer | undefined {
  const { failure, originalStatus } = result;
  if (proxyOpensAtMs !== undefined) {
    // Other URLs of the host may have another way out when each names its own.
    const isUsual =
      crawler.proxy !== undefined || (rungTry !== undefined && rungTry.climbed === undefined);
    const isOfAll = isUsual && parameters.proxy === undefined;
    const reason = failure?.reason ?? 'proxy_unavailable';
    return isOfAll ? { kind: 'waits', reason, untilMs: proxyOpensAtMs } : undefined;
  }
  if (ofProxy !== undefined) return originalStatus > 0 ? { kind: 'answered' } : undefined;
  if (originalStatus === 429 || originalStatus === 503) {
    const retryAfterMs = failure?.retryAfterMs;
    const mayBePage = originalStatus === 503 && retryAfterMs === undefined;
    return { kind: 'slow', mayBePage, ...defined({ retryAfterMs }) };
  }
  if (failure === undefined || originalStatus > 0) return { kind: 'answered' };
  return AWAY.has(failure.reason) ? { kind: 'away', reason: failure.reason } : undefined;
}

/** Gives a job back untried. */
function release(job: QueuedJob, dueAt: Date): JobEnd {
  return { outcome: { ...named(job), kind: 'release', dueAt }, held: undefined };
}

/** What names a job in its outcome. */
function named({ rid, crawlerId, attempt, traceparent }: QueuedJob) {
  return { rid, crawlerId, attempt, traceparent };
}
