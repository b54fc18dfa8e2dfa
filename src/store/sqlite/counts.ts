import { addEnd, type BatchEnds } from '../../domain/batch.ts';
import { toWall } from '../../domain/clock.ts';
import type { CrawlerMoments } from '../../domain/crawler.ts';
import type { CrawlRecord } from '../../domain/result.ts';
import { addDays, type DayCounts, type DayField, toDay } from '../../domain/stats.ts';
import type { Tally } from '../../domain/tally.ts';
import { addBatchEnds } from './batch-counts.ts';
import { insertRow, type Sql } from './sql.ts';

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
};

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

  function add(crawlerId: string, column: Column, by: number): void {
    let changes = columns.get(crawlerId);
    if (changes === undefined) columns.set(crawlerId, (changes = new Map()));
    changes.set(column, (changes.get(column) ?? 0) + by);
  }

  function dayChanges(crawlerId: string): DayChanges {
    let changes = days.get(crawlerId);
    if (changes === undefined) days.set(crawlerId, (changes = { byCbStatus: {} }));
    return changes;
  }

  function addDay(crawlerId: string, field: DayField, by: number): void {
    const changes = dayChanges(crawlerId);
    changes[field] = (changes[field] ?? 0) + by;
  }

  function happened(crawlerId: string, moment: Moment): void {
    const known = moments.get(crawlerId);
    if (known === undefined) moments.set(crawlerId, new Set([moment]));
    else known.add(moment);
  }

  function addAccount(accountId: string, column: AccountColumn, by: number): void {
    let changes = accounts.get(accountId);
    if (changes === undefined) accounts.set(accountId, (changes = new Map()));
    changes.set(column, (changes.get(column) ?? 0) + by);
  }

  return {
    add,
    addQueued: (accountId, by) => addAccount(accountId, 'queued', by),
    addBytes: addAccount,
    addDay,
    addTally(crawlerId, { counter, day, cbStatus, moment }) {
      if (counter !== undefined) add(crawlerId, counter, 1);
      for (const field of day) addDay(crawlerId, field, 1);
      if (cbStatus !== undefined) {
        const { byCbStatus } = dayChanges(crawlerId);
        byCbStatus[cbStatus] = (byCbStatus[cbStatus] ?? 0) + 1;
      }
      if (moment !== undefined) happened(crawlerId, moment);
    },
    addBatchEnd(batchId, record) {
      const ends = batches.get(batchId) ?? { completed: 0, failures: {} };
      batches.set(batchId, ends);
      addEnd(ends, record);
    },
    happened,
    write(sql, now) {
      const kept = toWall(sql, now);
      for (const crawlerId of new Set([...columns.keys(), ...moments.keys()])) {
        const changes = columns.get(crawlerId) ?? new Map<Column, number>();
        const happened = [...(moments.get(crawlerId) ?? [])];
        const sets = [
          ...[...changes.keys()].map((column) => `${column} = ${column} + ?`),
          ...happened.map((moment) => `last_${moment}_at = ?`),
        ].join(', ');
        const values = [...changes.values(), ...happened.map(() => kept.getTime())];
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
