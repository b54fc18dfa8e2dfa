import type { DeliveryAttempt } from '../../../src/domain/delivery.ts';
import type { QueuedJob } from '../../../src/domain/job.ts';
import type { CrawlRecord } from '../../../src/domain/result.ts';
import type { DeliveryOutcome, JobOutcome } from '../../../src/store/store.ts';
import { at } from './store-harness.ts';

type Claimed = Pick<QueuedJob, 'rid' | 'crawlerId' | 'attempt' | 'url'>;

/** When what these outcomes keep expires. */
export const EXPIRES = at(14 * 24 * 3_600_000);

/** What a crawl of the job brought back: a page of ten bytes with `cb_status` 200. */
export function makeRecord(
  job: Pick<QueuedJob, 'rid' | 'url'>,
  overrides: Partial<CrawlRecord> = {},
): CrawlRecord {
  return {
    rid: job.rid,
    pushedUrl: job.url,
    url: `${job.url}#after-redirects`,
    cbStatus: 200,
    originalStatus: 200,
    contentType: 'text/html',
    body: new Uint8Array([31, 139, 8, 0, 0, 255, 254, 1, 2, 3]),
    coding: 'gzip',
    details: { originalHeaders: { server: 'test' } },
    ...overrides,
  };
}

function ended(job: Claimed) {
  return { rid: job.rid, crawlerId: job.crawlerId, attempt: job.attempt };
}

/** The crawl failed for a transient reason. */
export function toRetry(job: Claimed, dueAt: Date, failure?: string): JobOutcome {
  return { ...ended(job), kind: 'retry', dueAt, ...(failure === undefined ? {} : { failure }) };
}

/** The job is given back untried. */
export function toRelease(job: Claimed, dueAt?: Date): JobOutcome {
  return { ...ended(job), kind: 'release', ...(dueAt === undefined ? {} : { dueAt }) };
}

/** The crawl ended, its page goes to storage. */
export function toStored(
  job: Claimed,
  record: Partial<CrawlRecord> = {},
  more: { expiresAt?: Date; billed?: boolean; timedOut?: boolean } = {},
): Extract<JobOutcome, { kind: 'stored' }> {
  return {
    ...ended(job),
    kind: 'stored',
    record: makeRecord(job, record),
    tokenType: 'normal',
    billed: true,
    expiresAt: EXPIRES,
    ...more,
  };
}

/** The crawl ended, its page goes to the callback URL. */
export function toDelivery(
  job: Claimed,
  record: Partial<CrawlRecord> = {},
  more: { expiresAt?: Date; billed?: boolean; held?: boolean; timedOut?: boolean } = {},
): Extract<JobOutcome, { kind: 'delivery' }> {
  return {
    ...ended(job),
    kind: 'delivery',
    record: makeRecord(job, record),
    callbackHeaders: [['X-Token', 'abc']],
    billed: true,
    expiresAt: EXPIRES,
    held: false,
    ...more,
  };
}

/** A POST that was answered with `status`. */
export function makeAttempt(attempt: number, status: number, startedAt = at(0)): DeliveryAttempt {
  return { attempt, startedAt, status, durationMs: 12, error: status === 200 ? '' : 'refused' };
}

/**
 * The end of a delivery attempt, with status 200 if delivered, else 500. Retries are due at once by
 * default.
 */
export function toSettlement(
  delivery: { readonly rid: string; readonly crawlerId: string; readonly attempt: number },
  kind: DeliveryOutcome['kind'],
  more: Partial<DeliveryOutcome> = {},
): DeliveryOutcome {
  const { rid, crawlerId, attempt } = delivery;
  const log = makeAttempt(attempt, kind === 'delivered' ? 200 : 500);
  return {
    rid,
    crawlerId,
    attempt,
    kind,
    billed: attempt > 1,
    ...(kind === 'release' ? {} : { log }),
    ...(kind === 'retry' ? { dueAt: at(0) } : {}),
    ...more,
  };
}
