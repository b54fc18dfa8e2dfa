import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type AccountActivitySchema,
  CrawlOutcome,
  type FailureGroupSchema,
  FailureKind,
  JobState,
  type QueuedJobSchema,
  type ResultSummarySchema,
} from '../../gen/queuedcrawler/v1/activity_service_pb.ts';
import type { TokenOwner } from '../domain/account.ts';
import { toWall, type WallClock } from '../domain/clock.ts';
import { invalidField } from '../domain/errors.ts';
import type { AccountActivity } from '../service/reads/account-activity.ts';
import type { FailureKind as DomainFailureKind, FailureGroup } from '../service/reads/failures.ts';
import type {
  CrawlOutcome as DomainCrawlOutcome,
  ResultSummary,
  ShownJob,
  WaitingJob,
} from '../service/reads/listings.ts';
import {
  nameOnWire,
  optionalTimestamp,
  toActivityMessage,
  toTokenTypeValue,
} from './crawler-messages.ts';
import { toHostWaitMessage } from './host-handlers.ts';

const JOB_STATES = {
  waiting: JobState.WAITING,
  retrying: JobState.RETRYING,
  running: JobState.RUNNING,
  scheduled: JobState.SCHEDULED,
} as const satisfies Record<ShownJob['state'], JobState>;

const OUTCOMES = {
  completed: CrawlOutcome.COMPLETED,
  failed: CrawlOutcome.FAILED,
} as const satisfies Record<DomainCrawlOutcome, CrawlOutcome>;

const FAILURE_KINDS = {
  crawl: FailureKind.CRAWL,
  retry: FailureKind.RETRY,
  delivery: FailureKind.DELIVERY,
} as const satisfies Record<DomainFailureKind, FailureKind>;

/**
 * The state of a job that waits, from the wire; undefined when the request does not specify one.
 * Throws `invalid` naming `field` for a running one.
 */
export function toQueuedState(
  field: string,
  value: JobState,
): Exclude<ShownJob['state'], 'running'> | undefined {
  const state = nameOnWire(JOB_STATES, value);
  if (state !== 'running') return state;
  throw invalidField(field, `${field} must be one of waiting, retrying, scheduled.`);
}

/** How a crawl ended, from the wire; undefined when the request does not specify it. */
export function toCrawlOutcome(value: CrawlOutcome): DomainCrawlOutcome | undefined {
  return nameOnWire(OUTCOMES, value);
}

/** What failed, from the wire; crawls when the request does not specify it. */
export function toFailureKind(value: FailureKind): DomainFailureKind {
  return nameOnWire(FAILURE_KINDS, value) ?? 'crawl';
}

/** A queued job on the wire. */
export function toJobMessage(job: WaitingJob): MessageInitShape<typeof QueuedJobSchema> {
  return {
    ...job,
    state: JOB_STATES[job.state],
    tries: job.retry,
    pushedAt: timestampFromDate(job.createdAt),
    nextTryAt: timestampFromDate(job.dueAt),
    firstTriedAt: optionalTimestamp(job.firstTriedAt),
    // Once it was tried, the timeout ends it no more.
    queueDeadline: job.firstTriedAt ? undefined : optionalTimestamp(job.queueDeadline),
    notBefore: optionalTimestamp(job.notBefore),
    hostWait: job.hostWait && toHostWaitMessage(job.hostWait),
  };
}

/** A stored result without its page, on the wire. */
export function toResultMessage(
  result: ResultSummary,
): MessageInitShape<typeof ResultSummarySchema> {
  const { rid, url, pushedUrl, cbStatus, originalStatus, contentType } = result;
  const { failure, screenshotUrl, metadata, batch, againOf, rung, climbed } = result.details;
  return {
    rid,
    url,
    pushedUrl,
    cbStatus,
    pcStatus: cbStatus,
    originalStatus,
    contentType,
    sizeBytes: BigInt(result.size),
    storedAt: timestampFromDate(result.storedAt),
    expiresAt: timestampFromDate(result.expiresAt),
    failure,
    screenshotUrl,
    metadata,
    batch,
    againOf,
    rung,
    climbed,
  };
}

/** A group of failures on the wire. */
export function toFailureGroupMessage(
  group: FailureGroup,
): MessageInitShape<typeof FailureGroupSchema> {
  const { reason, cbStatus, originalStatus, count, pending, examples } = group;
  return {
    reason,
    cbStatus,
    pcStatus: cbStatus,
    originalStatus,
    count,
    pending,
    latestAt: timestampFromDate(examples[0].at),
    examples: examples.map(({ at, ...example }) => ({ ...example, at: timestampFromDate(at) })),
  };
}

/** What an account does, on the wire. */
export function toAccountActivityMessage(
  { account, tokenType }: TokenOwner,
  activity: AccountActivity,
  clock: WallClock,
): MessageInitShape<typeof AccountActivitySchema> {
  const { admission, totals, rates } = activity;
  return {
    account: account.name,
    email: account.email,
    tokenType: toTokenTypeValue(tokenType),
    admission: {
      queued: BigInt(admission.queued),
      accountLimit: BigInt(admission.limits.accountQueue),
      pushesPaused: admission.pushesPaused,
      crawlerLimit: BigInt(admission.limits.crawlerQueue),
      fullCrawlers: [...admission.fullCrawlers],
      pushesPerSecond: admission.pushesPerSecond,
    },
    crawlersRunning: activity.running,
    crawlersPausedByUser: activity.pausedByUser,
    crawlersPausedByMonitor: activity.pausedByMonitor,
    totals: toActivityMessage(totals, rates),
    concurrency: BigInt(activity.concurrency),
    observedAt: timestampFromDate(toWall(clock, activity.observedAt)),
  };
}
