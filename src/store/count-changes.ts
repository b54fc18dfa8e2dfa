import { MAX_STREAK_ERROR, SUCCESS, type TryKind } from '../domain/attention.ts';
import { addEnd, type BatchEnds } from '../domain/batch.ts';
import { timeBucket } from '../domain/crawl-time-buckets.ts';
import type { CrawlerMoments } from '../domain/crawler.ts';
import { defined } from '../domain/defined.ts';
import { getOrInsert } from '../domain/get-or-insert.ts';
import type { QueuedJob } from '../domain/job.ts';
import type { AccountUsage } from '../domain/quotas.ts';
import type { DayCounts, DayField } from '../domain/stats.ts';
import { type FailedTry, resultEnd, type Tally, tallyDelivery, tallyEnd } from '../domain/tally.ts';
import type { DeliveryOutcome } from './delivery-store.ts';
import type { JobOutcome } from './queue-store.ts';

/** The numbers that are kept of a crawler. */
export const counters = [
  'waiting',
  'retrying',
  'running',
  /** Bytes that waiting and retrying jobs count for as queued, and those of running ones. */
  'queuedBytes',
  'runningBytes',
  'completed',
  'failed',
  'deleted',
  'purged',
  'deliveriesPending',
  'delivered',
] as const;

/** The name of such a number. */
export type Counter = (typeof counters)[number];

/** Changes of what an account counts. */
export type AccountChange = Pick<AccountUsage, 'queued' | 'queuedBytes' | 'storedBytes'>;

/** What happened to a streak of failed tries. */
export interface StreakChange {
  readonly kind: TryKind;
  /** The tries that failed, and why the latest did; undefined if a success has ended the streak. */
  readonly failed: { readonly count: number; readonly error: string } | undefined;
}

/**
 * What one write changes in the counters of a crawler, in a day of its history, in its batches and in
 * what its account counts.
 */
export interface CountChanges {
  add(counter: Counter, by: number): void;
  /** Adds to what the account stores. */
  addStored(bytes: number): void;
  addDay(field: DayField, by: number): void;
  /** Adds what one event counts as. */
  addTally(tally: Tally): void;
  /** Adds a try that failed for a transient reason. */
  addRetry(outcome: Extract<JobOutcome, { kind: 'retry' }>): void;
  /** Adds the end of a job whose result is kept, and takes `keptBytes` of the account's storage. */
  addResult(
    job: JobSize & { readonly batchId?: string | undefined },
    outcome: Extract<JobOutcome, { kind: 'stored' | 'delivery' }>,
    keptBytes: number,
  ): void;
  /** Adds the end of a delivery attempt. */
  addSettled(outcome: DeliveryOutcome): void;
  /** Sets the moment to that of the write. */
  happened(moment: keyof CrawlerMoments): void;
  /** Moves a job from its state to another; undefined for one that was or is not there. */
  move(size: number, from: QueuedJob['state'] | undefined, to?: QueuedJob['state']): void;
  /** A job is removed. */
  remove(job: JobSize, end: 'deleted' | 'purged'): void;
  readonly sums: ReadonlyMap<Counter, number>;
  readonly account: AccountChange;
  /** Undefined if no number of the day has changed. */
  readonly day: DayCounts | undefined;
  readonly moments: ReadonlySet<keyof CrawlerMoments>;
  /** A success ends a streak, whatever else failed in the same write. */
  readonly streaks: readonly StreakChange[];
  readonly batchEnds: ReadonlyMap<string, BatchEnds>;
}

/** A job as it is counted. */
export interface JobSize {
  readonly state: QueuedJob['state'];
  readonly size: number;
}

/** Starts to gather the changes of one write. */
export function createCountChanges(): CountChanges {
  const sums = new Map<Counter, number>();
  const fields: Record<string, number> = {};
  const byCbStatus: Record<string, number> = {};
  const times: Record<string, number> = {};
  const moments = new Set<keyof CrawlerMoments>();
  const failures = new Map<TryKind, { readonly count: number; readonly error: string }>();
  const batchEnds = new Map<string, BatchEnds>();
  let storedBytes = 0;
  let hasDay = false;

  function addTo(counts: Record<string, number>, name: string | number, by: number): void {
    counts[name] = (counts[name] ?? 0) + by;
    hasDay = true;
  }

  /** Adds to the tries in a row that failed. */
  function addFailed({ kind, error }: FailedTry): void {
    const count = (failures.get(kind)?.count ?? 0) + 1;
    failures.set(kind, { count, error: error.slice(0, MAX_STREAK_ERROR) });
  }

  const changes: CountChanges = {
    add: (counter, by) => void sums.set(counter, (sums.get(counter) ?? 0) + by),
    addStored: (bytes) => void (storedBytes += bytes),
    addDay: (field, by) => addTo(fields, field, by),
    addTally({ counter, day, cbStatus, tookMs, moments: happened = [], failed }) {
      if (counter !== undefined) changes.add(counter, 1);
      for (const field of day) changes.addDay(field, 1);
      if (cbStatus !== undefined) addTo(byCbStatus, cbStatus, 1);
      if (tookMs !== undefined) addTo(times, timeBucket(tookMs), 1);
      for (const moment of happened) changes.happened(moment);
      if (failed !== undefined) addFailed(failed);
    },
    addRetry({ tookMs, climbed, failure: error = '' }) {
      const failed = { kind: 'crawl', error } as const;
      const day = climbed === undefined ? (['retries'] as const) : (['retries', 'climbs'] as const);
      changes.addTally({ day, ...defined({ tookMs }), failed });
    },
    addResult({ state, size, batchId }, { kind, record, billed, timedOut, tookMs }, keptBytes) {
      const { cbStatus, details } = record;
      const { failure } = details;
      if (batchId !== undefined) {
        const ends = getOrInsert(batchEnds, batchId, () => ({ completed: 0, failures: {} }));
        addEnd(ends, record);
      }
      changes.move(size, state);
      changes.addStored(keptBytes);
      const end = resultEnd(cbStatus);
      changes.addTally(tallyEnd({ end, cbStatus, billed, timedOut, failure, tookMs }));
      if (kind === 'delivery') changes.add('deliveriesPending', 1);
    },
    addSettled(outcome) {
      changes.addTally(tallyDelivery(outcome));
      const { kind } = outcome;
      if (kind === 'delivered' || kind === 'failed') changes.add('deliveriesPending', -1);
    },
    happened: (moment) => void moments.add(moment),
    move(size, from, to) {
      for (const [state, by] of [
        [from, -1],
        [to, 1],
      ] as const) {
        if (state === undefined) continue;
        changes.add(state, by);
        changes.add(state === 'running' ? 'runningBytes' : 'queuedBytes', by * size);
      }
    },
    remove({ state, size }, end) {
      changes.move(size, state);
      changes.addTally(tallyEnd({ end }));
    },
    sums,
    get account() {
      const of = (name: Counter): number => sums.get(name) ?? 0;
      return {
        queued: of('waiting') + of('retrying'),
        queuedBytes: of('queuedBytes') + of('runningBytes'),
        storedBytes,
      };
    },
    get day() {
      if (!hasDay) return undefined;
      return { ...fields, byCbStatus, times } as DayCounts;
    },
    moments,
    get streaks() {
      return (Object.keys(SUCCESS) as TryKind[]).flatMap((kind): StreakChange[] => {
        if (moments.has(SUCCESS[kind])) return [{ kind, failed: undefined }];
        const failed = failures.get(kind);
        return failed === undefined ? [] : [{ kind, failed }];
      });
    },
    batchEnds,
  };
  return changes;
}
