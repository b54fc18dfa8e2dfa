import { DAY_MS } from './durations.ts';
import { invalidField } from './errors.ts';
import type { CrawlRecord } from './result.ts';
import { resultEnd } from './tally.ts';

/** URLs of one crawler that belong together. Its numbers agree with each other. */
export interface Batch {
  /** 24 hexadecimal digits, as those of a `rid`: its event is delivered under it. */
  readonly batchId: string;
  readonly crawlerId: string;
  readonly name: string;
  readonly createdAt: Date;
  readonly lastPushedAt: Date;
  readonly lastEndedAt: Date | undefined;
  /** Since when it takes no further URLs. */
  readonly closedAt: Date | undefined;
  /** When it was found to be closed and without a URL that waits or is crawled. */
  readonly completedAt: Date | undefined;
  readonly accepted: number;
  /** Waiting, whenever they are due. */
  readonly waiting: number;
  /** Those of the waiting ones whose `notBefore` is still to come. */
  readonly scheduled: number;
  readonly retrying: number;
  readonly running: number;
  /** Crawls that ended well. */
  readonly completed: number;
  /** The others by the reason of their failure. */
  readonly failures: Readonly<Record<string, number>>;
}

/** How many crawls of a batch failed. */
export function failedOf({ failures }: Pick<Batch, 'failures'>): number {
  return Object.values(failures).reduce((sum, n) => sum + n, 0);
}

/** The URLs of a batch that wait or are crawled. */
export function leftOf({ waiting, retrying, running }: Batch): number {
  return waiting + retrying + running;
}

/** URLs that left the queue without a result: deleted, purged or cancelled. */
export function removedOf(batch: Batch): number {
  return Math.max(0, batch.accepted - batch.completed - failedOf(batch) - leftOf(batch));
}

/** The ends of crawls that are added to a batch. */
export interface BatchEnds {
  completed: number;
  readonly failures: Record<string, number>;
}

/** Adds the end of one crawl. */
export function addEnd(
  ends: BatchEnds,
  { cbStatus, details }: Pick<CrawlRecord, 'cbStatus' | 'details'>,
): void {
  if (resultEnd(cbStatus) === 'completed') {
    ends.completed += 1;
    return;
  }
  const reason = details.failure ?? 'other';
  ends.failures[reason] = (ends.failures[reason] ?? 0) + 1;
}

/** How long a batch is kept after its end. An open one is closed as long after its last push. */
export const BATCH_KEPT_DAYS = 30;
export const BATCH_KEPT_MS = BATCH_KEPT_DAYS * DAY_MS;

/** Batches that one crawler can have. */
export const MAX_BATCHES = 10_000;

/** Parses the name of a batch. Undefined for an empty text; throws `invalid` naming `batch`. */
export function parseBatchName(text: string): string | undefined {
  if (text === '') return undefined;
  if (/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(text)) return text;
  throw invalidField(
    'batch',
    'batch must be 1 to 64 of A-Z a-z 0-9 _ . - and start with a letter or digit.',
  );
}
