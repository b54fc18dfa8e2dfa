import { DomainError, type ErrorKind } from './errors.ts';
import type { Job } from './job.ts';
import type { CrawlRecord } from './result.ts';

/** What an account may use of what all accounts share; 0 means no limit. */
export interface AccountLimits {
  /** Crawlers of both token types. */
  readonly crawlers: number;
  /** Concurrency of all its crawlers together. */
  readonly concurrency: number;
  /** Bytes of stored results, and of pages that are kept for their delivery or its replay. */
  readonly storageBytes: number;
  /** Bytes of queued URLs with their bodies and headers. */
  readonly queueBytes: number;
  /** Calls other than pushes, in each process. */
  readonly requestsPerSecond: number;
  /** Monitoring's POSTs to its callback URLs, in each process. */
  readonly probesPerMinute: number;
  /** Deliveries made again by replay. */
  readonly replaysPerHour: number;
}

/** How much of its limits an account uses, for the limits that count what exists. */
export interface AccountUsage {
  /** Crawlers that its owner has created. */
  readonly crawlers: number;
  /** Their concurrency together. */
  readonly concurrency: number;
  readonly storedBytes: number;
  readonly queuedBytes: number;
  /** Waiting and retrying URLs of its crawlers. */
  readonly queued: number;
}

/** The limits of an account: its own ones, else those of the service. */
export function effectiveLimits(
  own: Partial<AccountLimits>,
  defaults: AccountLimits,
): AccountLimits {
  return { ...defaults, ...own };
}

/** Whether `wanted` more would exceed the limit. */
export function exceedsLimit(limit: number, used: number, wanted: number): boolean {
  return limit > 0 && used + wanted > limit;
}

interface Quota {
  /** `<name>_quota_exceeded` is the reason of its refusals. */
  readonly name: string;
  /** What it counts, for a person. */
  readonly counts: string;
  readonly advice: string;
}

const QUOTAS: Readonly<Record<keyof AccountLimits, Quota>> = {
  crawlers: {
    name: 'crawlers',
    counts: 'crawlers',
    advice: 'delete crawlers that are no longer needed',
  },
  concurrency: {
    name: 'concurrency',
    counts: 'concurrent crawls of all crawlers together',
    advice: 'lower the concurrency of other crawlers',
  },
  storageBytes: {
    name: 'storage_bytes',
    counts: 'bytes of stored results and pages kept for delivery',
    advice: 'delete stored results, or wait until some expire',
  },
  queueBytes: {
    name: 'queue_bytes',
    counts: 'bytes of queued URLs, bodies and headers',
    advice: 'wait until the queues have drained, or purge some',
  },
  requestsPerSecond: {
    name: 'requests_per_second',
    counts: 'calls a second other than pushes',
    advice: 'slow down',
  },
  probesPerMinute: {
    name: 'probes_per_minute',
    counts: 'monitoring probes a minute',
    advice: 'use fewer callback URLs',
  },
  replaysPerHour: {
    name: 'replays_per_hour',
    counts: 'replayed deliveries an hour',
    advice: 'replay fewer deliveries at once, or later',
  },
};

/**
 * The error of a call that would exceed a quota. Its message contains the quota, its limit and what
 * is used.
 */
export function quotaExceeded(
  quota: keyof AccountLimits,
  limit: number,
  used: number,
  options: {
    /** `exhausted` when waiting helps; `invalid` when the account's owner has to do something. */
    readonly kind: Extract<ErrorKind, 'exhausted' | 'invalid'>;
    readonly field?: string;
    readonly retryAfterMs?: number;
  },
): DomainError {
  const { name, counts, advice } = QUOTAS[quota];
  const { kind, ...rest } = options;
  return new DomainError(
    kind,
    `${name}_quota_exceeded`,
    `The account's quota ${name} is ${limit} ${counts}, of which ${used} are in use: ${advice}.`,
    { ...rest, metadata: { quota: name, limit, used } },
  );
}

/** What a record takes in storage in addition to its page: its row and index entries. */
const RECORD_BYTES = 1_024;

/** Bytes of addresses, metadata and headers that {@link RECORD_BYTES} covers. */
const COVERED_BYTES = 512;

/** The parts of a record that take room and have no fixed length, its page excepted. */
type RecordTexts = Pick<CrawlRecord, 'url' | 'pushedUrl' | 'details' | 'request'>;

/** Bytes of a record: of its page, and those of {@link recordTextBytes}. */
export function recordBytes(record: RecordTexts & Pick<CrawlRecord, 'body'>): number {
  return record.body.byteLength + recordTextBytes(record);
}

/**
 * Bytes of the request of a failed crawl, and of addresses, metadata and headers of the target that
 * are longer than usual.
 */
export function recordTextBytes({ url, pushedUrl, details, request = '' }: RecordTexts): number {
  const { metadata = '', originalHeaders = {} } = details;
  let bytes = byteCount(url) + byteCount(pushedUrl) + byteCount(metadata);
  for (const name in originalHeaders) {
    bytes += byteCount(name) + byteCount(originalHeaders[name] ?? '');
  }
  return byteCount(request) + Math.max(0, bytes - COVERED_BYTES);
}

function byteCount(text: string): number {
  return Buffer.byteLength(text);
}

/** Bytes that a stored record is charged with; `size` is that of the record. */
export function chargedBytes(size: number): number {
  return size + RECORD_BYTES;
}

/** Bytes that a record is charged with. */
export function chargedRecordBytes(record: Parameters<typeof recordBytes>[0]): number {
  return chargedBytes(recordBytes(record));
}

/** Bytes that a queued job is charged with. */
export function chargedJobBytes(job: Job): number {
  const { url, body, parameters, callbackHeaders, metadata } = job;
  let bytes = Buffer.byteLength(url) + jsonBytes(parameters) + jsonBytes(callbackHeaders);
  if (body !== undefined) bytes += body.byteLength;
  if (metadata !== undefined) bytes += Buffer.byteLength(metadata);
  return bytes;
}

function jsonBytes(value: object): number {
  return Buffer.byteLength(JSON.stringify(value));
}
