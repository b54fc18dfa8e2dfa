import { toWall } from '../../domain/clock.ts';
import { getOrInsert } from '../../domain/get-or-insert.ts';
import { addDays, type DayCounts, toDay } from '../../domain/stats.ts';
import {
  type AccountChange,
  type CountChanges,
  type Counter,
  createCountChanges,
} from '../count-changes.ts';
import { addBatchEnds } from './batch-counts.ts';
import { insertRow, type Sql, type SqlValue } from './sql.ts';

/** Changes of counters and history, collected over a batch and written once for each crawler. */
export interface Counts {
  of(crawlerId: string): CountChanges;
  write(sql: Sql, now: Date): void;
}

/** The columns of `dispatch` that are not named like their counter; null for one without. */
const COLUMNS: Readonly<Partial<Record<Counter, string | null>>> = {
  deliveriesPending: 'deliveries_pending',
  queuedBytes: 'held_bytes',
  runningBytes: null,
};

/** Starts to collect changes. */
export function createCounts(): Counts {
  const crawlers = new Map<string, CountChanges>();
  return {
    of: (crawlerId) => getOrInsert(crawlers, crawlerId, createCountChanges),
    write(sql, now) {
      const kept = toWall(sql, now);
      for (const [crawlerId, changes] of crawlers) {
        const { account, day, batchEnds } = changes;
        writeCounters(sql, crawlerId, changes, kept);
        writeAccount(sql, crawlerId, account);
        if (day !== undefined) writeDay(sql, crawlerId, toDay(kept), day);
        for (const [batchId, ends] of batchEnds) addBatchEnds(sql, batchId, ends, kept);
      }
    },
  };
}

function writeCounters(
  sql: Sql,
  crawlerId: string,
  { sums, moments, streaks }: CountChanges,
  at: Date,
): void {
  const sets: string[] = [];
  const values: SqlValue[] = [];
  for (const [counter, by] of sums) {
    const { [counter]: column = counter } = COLUMNS;
    if (column === null) continue;
    sets.push(`${column} = ${column} + ?`);
    values.push(by);
  }
  for (const moment of moments) {
    sets.push(`last_${moment}_at = ?`);
    values.push(at.getTime());
  }
  for (const { kind, failed } of streaks) {
    if (failed === undefined) {
      sets.push(`${kind}_failures = 0`);
      continue;
    }
    sets.push(
      `${kind}_failing_since = iif(${kind}_failures = 0, ?, ${kind}_failing_since)`,
      `${kind}_failures = ${kind}_failures + ?`,
      `${kind}_failed_at = ?`,
      `${kind}_error = ?`,
    );
    values.push(at.getTime(), failed.count, at.getTime(), failed.error);
  }
  if (sets.length === 0) return;
  sql.run(`UPDATE dispatch SET ${sets.join(', ')} WHERE crawler_id = ?`, ...values, crawlerId);
}

function writeAccount(
  sql: Sql,
  crawlerId: string,
  { queued, queuedBytes, storedBytes }: AccountChange,
): void {
  if (queued === 0 && queuedBytes === 0 && storedBytes === 0) return;
  sql.run(
    `UPDATE accounts SET queued = queued + ?, queued_bytes = queued_bytes + ?,
      stored_bytes = stored_bytes + ?
      WHERE account_id = (SELECT account_id FROM crawlers WHERE crawler_id = ?)`,
    queued,
    queuedBytes,
    storedBytes,
    crawlerId,
  );
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
