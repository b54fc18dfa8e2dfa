import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type CrawlerActivitySchema,
  type CrawlerSchema,
  CrawlerStatus,
  DeliveryMode,
  type DeliverySchema,
  DeliveryState,
  JobStatus,
  PausedBy,
  type Politeness,
  type RequestInfoSchema,
  TokenType,
} from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import type { TokenType as DomainTokenType } from '../domain/account.ts';
import {
  type Crawler,
  type CrawlerCounters,
  type DeliveryMode as DomainDeliveryMode,
  type Politeness as DomainPoliteness,
  isPaused,
} from '../domain/crawler.ts';
import { defined } from '../domain/defined.ts';
import type { DeliverySummary } from '../domain/delivery.ts';
import type { QueuedJob } from '../domain/job.ts';
import type { CrawlerInput } from '../service/crawlers/crawler-input.ts';

/** A crawler on the wire. */
export function crawlerMessage(
  crawler: Crawler,
  counters?: CrawlerCounters,
): MessageInitShape<typeof CrawlerSchema> {
  const pausedBy = pausedByOf(crawler);
  return {
    name: crawler.name,
    delivery: crawler.delivery === 'webhook' ? DeliveryMode.WEBHOOK : DeliveryMode.STORAGE,
    ...defined({ callbackUrl: crawler.callbackUrl }),
    tokenType: tokenTypeValue(crawler.tokenType),
    concurrency: crawler.concurrency,
    ...(crawler.delivery === 'webhook' ? { deliveryConcurrency: crawler.deliveryConcurrency } : {}),
    status: statusOf(crawler),
    ...defined({
      pausedBy,
      pausedAt: optionalTimestamp(crawler.pausedAt),
      pauseReason: crawler.pauseReason,
    }),
    maxRetries: crawler.maxRetries,
    retryWindowHours: crawler.retryWindowHours,
    ...defined({ politeness: crawler.politeness }),
    createdAt: timestampFromDate(crawler.createdAt),
    updatedAt: timestampFromDate(crawler.updatedAt),
    ...defined({ activity: counters === undefined ? undefined : activityMessage(counters) }),
  };
}

/** Counters on the wire. */
export function activityMessage(
  counters: CrawlerCounters,
): MessageInitShape<typeof CrawlerActivitySchema> {
  const { last } = counters;
  return {
    waiting: BigInt(counters.waiting),
    running: BigInt(counters.running),
    retrying: BigInt(counters.retrying),
    pushed: BigInt(counters.pushed),
    completed: BigInt(counters.completed),
    failed: BigInt(counters.failed),
    deleted: BigInt(counters.deleted),
    purged: BigInt(counters.purged),
    deliveriesPending: BigInt(counters.deliveriesPending),
    ...defined({
      lastPushAt: optionalTimestamp(last.push),
      lastCrawlAt: optionalTimestamp(last.crawl),
      lastDeliveryAt: optionalTimestamp(last.delivery),
      lastProbeAt: optionalTimestamp(last.probe),
    }),
  };
}

/** Whether the crawler runs, on the wire. */
export function statusOf(crawler: Crawler): CrawlerStatus {
  return isPaused(crawler) ? CrawlerStatus.PAUSED : CrawlerStatus.RUNNING;
}

/** A token type on the wire. */
export function tokenTypeValue(tokenType: DomainTokenType): TokenType {
  return tokenType === 'javascript' ? TokenType.JAVASCRIPT : TokenType.NORMAL;
}

/** A token type from the wire; undefined when it was not said. */
export function toTokenType(value: TokenType | undefined): DomainTokenType | undefined {
  if (value === TokenType.JAVASCRIPT) return 'javascript';
  return value === TokenType.NORMAL ? 'normal' : undefined;
}

/** The settings of a create or update request; fields that are absent stay absent. */
export function toCrawlerInput(request: {
  readonly callbackUrl?: string | undefined;
  readonly concurrency?: number | undefined;
  readonly deliveryConcurrency?: number | undefined;
  readonly maxRetries?: number | undefined;
  readonly retryWindowHours?: number | undefined;
  readonly politeness?: Politeness | undefined;
  readonly delivery?: DeliveryMode | undefined;
  readonly tokenType?: TokenType | undefined;
}): CrawlerInput {
  const { callbackUrl, concurrency, deliveryConcurrency, maxRetries, retryWindowHours } = request;
  const delivery = toDelivery(request.delivery);
  const tokenType = toTokenType(request.tokenType);
  return {
    ...defined({
      callbackUrl,
      concurrency,
      deliveryConcurrency,
      maxRetries,
      retryWindowHours,
      politeness: request.politeness === undefined ? undefined : toPoliteness(request.politeness),
      delivery,
      tokenType,
    }),
  };
}

/** A queued job on the wire. */
export function requestInfoMessage(
  job: Pick<QueuedJob, 'rid' | 'url' | 'retry' | 'createdAt'>,
): MessageInitShape<typeof RequestInfoSchema> {
  const { rid, url, retry, createdAt } = job;
  return { rid, url, retry, createdAt: createdAt.getTime() / 1_000 };
}

/** Whether a job is queued, on the wire; undefined for one that is not. */
export function jobStatusMessage(rid: string, job: QueuedJob | undefined) {
  return job === undefined
    ? { status: JobStatus.NOT_QUEUED, requestInfo: { rid } }
    : { status: JobStatus.QUEUED, requestInfo: requestInfoMessage(job) };
}

/** A delivery and its attempts on the wire. */
export function deliveryMessage(summary: DeliverySummary): MessageInitShape<typeof DeliverySchema> {
  const states = {
    pending: DeliveryState.PENDING,
    delivered: DeliveryState.DELIVERED,
    failed: DeliveryState.FAILED,
  };
  const { rid, url, cbStatus, originalStatus, nextAttemptAt } = summary;
  return {
    rid,
    url,
    cbStatus,
    originalStatus,
    state: states[summary.state],
    createdAt: timestampFromDate(summary.createdAt),
    ...defined({ nextAttemptAt: optionalTimestamp(nextAttemptAt) }),
    attempts: summary.attempts.map(({ startedAt, ...attempt }) => ({
      ...attempt,
      startedAt: timestampFromDate(startedAt),
    })),
  };
}

function optionalTimestamp(moment: Date | undefined) {
  return moment === undefined ? undefined : timestampFromDate(moment);
}

function pausedByOf(crawler: Crawler): PausedBy | undefined {
  if (crawler.pausedByUser) return PausedBy.USER;
  return crawler.pausedByMonitor ? PausedBy.MONITOR : undefined;
}

function toDelivery(value: DeliveryMode | undefined): DomainDeliveryMode | undefined {
  if (value === DeliveryMode.WEBHOOK) return 'webhook';
  return value === DeliveryMode.STORAGE ? 'storage' : undefined;
}

function toPoliteness(politeness: Politeness): DomainPoliteness {
  const { maxPerHost, delayMs, robotsTxt } = politeness;
  return { maxPerHost, delayMs, robotsTxt };
}
