import type { HistoryDay } from '../../domain/stats.ts';
import { dayOf } from '../../domain/stats.ts';
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
  | 'held_bytes';

type AccountColumn = 'queued' | 'queued_bytes' | 'stored_bytes';

/** When something last happened. */
type Moment = 'last_push_at' | 'last_crawl_at' | 'last_delivery_at';

type DayField = Exclude<keyof HistoryDay, 'date' | 'byCbStatus'>;

/** A day's counts as stored: absent is zero. */
export type DayCounts = Partial<Record<DayField, number>> & { byCbStatus?: Record<string, number> };

/** Changes of counters and history, gathered over a batch and written once for each crawler. */
export interface Counts {
  add(crawlerId: string, column: Column, by: number): void;
  /** Adds to the waiting and retrying URLs of an account. */
  addQueued(accountId: string, by: number): void;
  /** Adds to the bytes an account has queued or stored. */
  addBytes(accountId: string, column: 'queued_bytes' | 'stored_bytes', by: number): void;
  addDay(crawlerId: string, field: DayField, by: number): void;
  addStatus(crawlerId: string, cbStatus: number): void;
  /** Notes that it happened at the moment that is written. */
  happened(crawlerId: string, moment: Moment): void;
  write(sql: Sql, now: Date): void;
}

/** Starts gathering. */
export function createCounts(): Counts {
  const columns = new Map<string, Map<Column, number>>();
  const accounts = new Map<string, Map<AccountColumn, number>>();
  const moments = new Map<string, Set<Moment>>();
  const days = new Map<string, DayCounts>();

  function dayCounts(crawlerId: string): DayCounts {
    let counts = days.get(crawlerId);
    if (counts === undefined) days.set(crawlerId, (counts = {}));
    return counts;
  }

  function addAccount(accountId: string, column: AccountColumn, by: number): void {
    let changes = accounts.get(accountId);
    if (changes === undefined) accounts.set(accountId, (changes = new Map()));
    changes.set(column, (changes.get(column) ?? 0) + by);
  }

  return {
    add(crawlerId, column, by) {
      let changes = columns.get(crawlerId);
      if (changes === undefined) columns.set(crawlerId, (changes = new Map()));
      changes.set(column, (changes.get(column) ?? 0) + by);
    },
    addQueued: (accountId, by) => addAccount(accountId, 'queued', by),
    addBytes: addAccount,
    addDay(crawlerId, field, by) {
      const counts = dayCounts(crawlerId);
      counts[field] = (counts[field] ?? 0) + by;
    },
    addStatus(crawlerId, cbStatus) {
      const counts = dayCounts(crawlerId);
      counts.byCbStatus ??= {};
      counts.byCbStatus[cbStatus] = (counts.byCbStatus[cbStatus] ?? 0) + 1;
    },
    happened(crawlerId, moment) {
      const known = moments.get(crawlerId);
      if (known === undefined) moments.set(crawlerId, new Set([moment]));
      else known.add(moment);
    },
    write(sql, now) {
      for (const crawlerId of new Set([...columns.keys(), ...moments.keys()])) {
        const changes = columns.get(crawlerId) ?? new Map<Column, number>();
        const happened = [...(moments.get(crawlerId) ?? [])];
        const sets = [
          ...[...changes.keys()].map((column) => `${column} = ${column} + ?`),
          ...happened.map((moment) => `${moment} = ?`),
        ].join(', ');
        const values = [...changes.values(), ...happened.map(() => now.getTime())];
        sql.run(`UPDATE dispatch SET ${sets} WHERE crawler_id = ?`, ...values, crawlerId);
      }
      for (const [accountId, all] of accounts) {
        const changes = [...all].filter(([, by]) => by !== 0);
        if (changes.length === 0) continue;
        const sets = changes.map(([column]) => `${column} = ${column} + ?`).join(', ');
        const values = changes.map(([, by]) => by);
        sql.run(`UPDATE accounts SET ${sets} WHERE account_id = ?`, ...values, accountId);
      }
      const day = dayOf(now);
      for (const [crawlerId, counts] of days) writeDay(sql, crawlerId, day, counts);
    },
  };
}

function writeDay(sql: Sql, crawlerId: string, day: string, more: DayCounts): void {
  const before = sql.get(
    'SELECT counts FROM history WHERE crawler_id = ? AND day = ?',
    crawlerId,
    day,
  );
  const counts = before === undefined ? {} : (JSON.parse(String(before.counts)) as DayCounts);
  for (const [field, by] of Object.entries(more)) {
    if (typeof by === 'number') {
      const name = field as DayField;
      counts[name] = (counts[name] ?? 0) + by;
    }
  }
  for (const [status, by] of Object.entries(more.byCbStatus ?? {})) {
    counts.byCbStatus ??= {};
    counts.byCbStatus[status] = (counts.byCbStatus[status] ?? 0) + by;
  }
  const row = { crawler_id: crawlerId, day, counts: JSON.stringify(counts) };
  insertRow(sql, 'history', row, 'DO UPDATE SET counts = excluded.counts');
}
