import { MAX_STREAK_ERROR, SUCCESS, type TryKind } from '../../domain/attention.ts';
import { addEnd, type BatchEnds } from '../../domain/batch.ts';
import { toWall } from '../../domain/clock.ts';
import { timeBucket } from '../../domain/crawl-time-buckets.ts';
import type { CrawlerMoments } from '../../domain/crawler.ts';
import { getOrInsert } from '../../domain/get-or-insert.ts';
import type { CrawlRecord } from '../../domain/result.ts';
import { addDays, type DayCounts, type DayField, toDay } from '../../domain/stats.ts';
import type { FailedTry, Tally } from '../../domain/tally.ts';
import { addBatchEnds } from './batch-counts.ts';
import { insertRow, type Sql, type SqlValue } from './sql.ts';

type Column =
  | 'waiting'
  | 'running'
  | 'retrying'
  | 'pushed'
  | 'completed'
  | 'failed'
  | 'deleted'
  | 'purged'
  | 'deliveries_pending'
  | 'delivered'
  | 'held_bytes';

type AccountColumn = 'queued' | 'queued_bytes' | 'stored_bytes';

/** When something last happened; the column is `last_<moment>_at`. */
type Moment = keyof CrawlerMoments;

/** Changes of a day's numbers. */
type DayChanges = Partial<Record<DayField, number>> & {
  readonly byCbStatus: Record<string, number>;
  readonly times: Record<string, number>;
};

/** Tries that failed, and why the latest did. */
type FailedTries = Partial<Record<TryKind, { readonly count: number; readonly error: string }>>;

/** Changes of counters and history, collected over a batch and written once for each crawler. */
export interface Counts {
  add(crawlerId: string, column: Column, by: number): void;
  /** Adds to the waiting and retrying URLs of an account. */
  addQueued(accountId: string, by: number): void;
  /** Adds to the bytes an account has queued or stored. */
  addBytes(accountId: string, column: 'queued_bytes' | 'stored_bytes', by: number): void;
  addDay(crawlerId: string, field: DayField, by: number): void;
  /** Adds what one event counts as. */
  addTally(crawlerId: string, tally: Tally): void;
  /** Adds to the tries in a row that failed. */
  addFailed(crawlerId: string, failed: FailedTry): void;
  /** Adds the end of a crawl to its batch. */
  addBatchEnd(batchId: string, record: Pick<CrawlRecord, 'cbStatus' | 'details'>): void;
  /** Sets the moment to the one that is written. */
  happened(crawlerId: string, moment: Moment): void;
  write(sql: Sql, now: Date): void;
}

/** Starts to collect changes. */
export function createCounts(): Counts {
  const columns = new Map<string, Map<Column, number>>();
  const accounts = new Map<string, Map<AccountColumn, number>>();
  const moments = new Map<string, Set<Moment>>();
  const days = new Map<string, DayChanges>();
  const batches = new Map<string, BatchEnds>();
  const failures = new Map<string, FailedTries>();

  function add(crawlerId: string, column: Column, by: number): void {
    const changes = getOrInsert(columns, crawlerId, () => new Map());
    changes.set(column, (changes.get(column) ?? 0) + by);
  }

  function dayChanges(crawlerId: string): DayChanges {
    return getOrInsert(days, crawlerId, () => ({ byCbStatus: {}, times: {} }));
  }

  function addDay(crawlerId: string, field: DayField, by: number): void {
    const changes = dayChanges(crawlerId);
    changes[field] = (changes[field] ?? 0) + by;
  }

  function happened(crawlerId: string, moment: Moment): void {
    getOrInsert(moments, crawlerId, () => new Set()).add(moment);
  }

  function addFailed(crawlerId: string, { kind, error }: FailedTry): void {
    const tries = getOrInsert(failures, crawlerId, () => ({}));
    tries[kind] = { count: (tries[kind]?.count ?? 0) + 1, error };
  }

  function addAccount(accountId: string, column: AccountColumn, by: number): void {
    const changes = getOrInsert(accounts, accountId, () => new Map());
    changes.set(column, (changes.get(column) ?? 0) + by);
  }

  return {
    add,
    addQueued: (accountId, by) => addAccount(accountId, 'queued', by),
    addBytes: addAccount,
    addDay,
    addTally(crawlerId, { counter, day, cbStatus, tookMs, moments = [], failed }) {
      if (counter !== undefined) add(crawlerId, counter, 1);
      for (const field of day) addDay(crawlerId, field, 1);
      if (cbStatus !== undefined) {
        const { byCbStatus } = dayChanges(crawlerId);
        byCbStatus[cbStatus] = (byCbStatus[cbStatus] ?? 0) + 1;
      }
      if (tookMs !== undefined) {
        const { times } = dayChanges(crawlerId);
        const bucket = timeBucket(tookMs);
        times[bucket] = (times[bucket] ?? 0) + 1;
      }
      for (const moment of moments) happened(crawlerId, moment);
      if (failed !== undefined) addFailed(crawlerId, failed);
    },
    addFailed,
    addBatchEnd(batchId, record) {
      const ends = batches.get(batchId) ?? { completed: 0, failures: {} };
      batches.set(batchId, ends);
      addEnd(ends, record);
    },
    happened,
    write(sql, now) {
      const kept = toWall(sql, now);
      for (const crawlerId of new Set([...columns.keys(), ...moments.keys(), ...failures.keys()])) {
        const changes = columns.get(crawlerId) ?? new Map<Column, number>();
        const happened = moments.get(crawlerId) ?? new Set<Moment>();
        const streaks = streakChanges(failures.get(crawlerId) ?? {}, happened, kept);
        const sets = [
          ...[...changes.keys()].map((column) => `${column} = ${column} + ?`),
          ...[...happened].map((moment) => `last_${moment}_at = ?`),
          ...streaks.sets,
        ].join(', ');
        const values = [
          ...changes.values(),
          ...[...happened].map(() => kept.getTime()),
          ...streaks.values,
        ];
        sql.run(`UPDATE dispatch SET ${sets} WHERE crawler_id = ?`, ...values, crawlerId);
      }
      for (const [accountId, all] of accounts) {
        const changes = [...all].filter(([, by]) => by !== 0);
        if (changes.length === 0) continue;
        const sets = changes.map(([column]) => `${column} = ${column} + ?`).join(', ');
        const values = changes.map(([, by]) => by);
        sql.run(`UPDATE accounts SET ${sets} WHERE account_id = ?`, ...values, accountId);
      }
      const day = toDay(kept);
      for (const [crawlerId, counts] of days) writeDay(sql, crawlerId, day, counts);
      for (const [batchId, ends] of batches) addBatchEnds(sql, batchId, ends, kept);
    },
  };
}

/** A success ends a streak, whatever else failed in the same batch. */
function streakChanges(failed: FailedTries, happened: ReadonlySet<Moment>, at: Date) {
  const sets: string[] = [];
  const values: SqlValue[] = [];
  for (const kind of Object.keys(SUCCESS) as TryKind[]) {
    const tries = failed[kind];
    if (happened.has(SUCCESS[kind])) sets.push(`${kind}_failures = 0`);
    else if (tries !== undefined) {
      sets.push(
        `${kind}_failing_since = iif(${kind}_failures = 0, ?, ${kind}_failing_since)`,
        `${kind}_failures = ${kind}_failures + ?`,
        `${kind}_failed_at = ?`,
        `${kind}_error = ?`,
      );
      const error = tries.error.slice(0, MAX_STREAK_ERROR);
      values.push(at.getTime(), tries.count, at.getTime(), error);
    }
  }
  return { sets, values };
}

function writeDay(sql: Sql, crawlerId: string, day: string, more: DayCounts): void {
  const before = sql.get(
    'SELECT counts FROM history WHERE crawler_id = ? AND day = ?',
    crawlerId,
    day,
  );
  const known = before === undefined ? {} : (JSON.parse(String(before.counts)) as DayCounts);
  const counts = JSON.stringify(addDays([known, more]));
  const row = { crawler_id: crawlerId, day, counts };
  insertRow(sql, 'history', row, 'DO UPDATE SET counts = excluded.counts');
}
