import { BATCH_KEPT_MS, type Batch } from '../../domain/batch.ts';
import { toWall } from '../../domain/clock.ts';
import { DAY_MS } from '../../domain/durations.ts';
import { chargedBytes } from '../../domain/quotas.ts';
import type { BatchEvent, BatchStore, Listing, ListingPart } from '../store.ts';
import { createCounts } from './counts.ts';
import { insertDelivery } from './finish.ts';
import type { InThread } from './in-thread.ts';
import { purgeCount } from './lease.ts';
import { placedBytes } from './pages.ts';
import { removeJobs } from './remove-jobs.ts';
import { type Sql, type SqlRow, toDate, toOptionalDate } from './sql.ts';

function toBatch(sql: Sql, row: SqlRow, now: Date): Batch {
  const batchId = String(row.batch_id);
  const crawlerId = String(row.crawler_id);
  const live = sql.all(
    `SELECT state, count(*) AS n, sum(not_before > ?) AS later FROM jobs
      WHERE batch_id = ? AND (state = 'running' OR gen = ?) GROUP BY state`,
    now.getTime(),
    batchId,
    purgeCount(sql, crawlerId) ?? -1,
  );
  const inState = (state: string) => live.find((each) => each.state === state);
  return {
    batchId,
    crawlerId,
    name: String(row.name),
    createdAt: toDate(row.created_at),
    lastPushedAt: toDate(row.last_pushed_at),
    lastEndedAt: toOptionalDate(row.last_ended_at),
    closedAt: toOptionalDate(row.closed_at),
    completedAt: toOptionalDate(row.completed_at),
    accepted: Number(row.accepted),
    waiting: Number(inState('waiting')?.n ?? 0),
    scheduled: Number(inState('waiting')?.later ?? 0),
    retrying: Number(inState('retrying')?.n ?? 0),
    running: Number(inState('running')?.n ?? 0),
    completed: Number(row.completed),
    failures: JSON.parse(String(row.failures)) as Record<string, number>,
  };
}

function get(sql: Sql, crawlerId: string, name: string, now: Date): Batch | undefined {
  const row = sql.get('SELECT * FROM batches WHERE crawler_id = ? AND name = ?', crawlerId, name);
  return row === undefined ? undefined : toBatch(sql, row, now);
}

function list(sql: Sql, crawlerId: string, part: ListingPart, now: Date): Listing<Batch> {
  const { limit, cursor = 'g' } = part;
  const found = sql.all(
    `SELECT * FROM batches WHERE crawler_id = ? AND batch_id < ?
      ORDER BY batch_id DESC LIMIT ?`,
    crawlerId,
    cursor,
    limit,
  );
  const rows = found.map((row) => toBatch(sql, row, now));
  return { rows, cursor: rows.length < limit ? undefined : rows.at(-1)?.batchId };
}

function close(sql: Sql, crawlerId: string, name: string, now: Date): Batch | undefined {
  sql.run(
    'UPDATE batches SET closed_at = ? WHERE crawler_id = ? AND name = ? AND closed_at IS NULL',
    toWall(sql, now).getTime(),
    crawlerId,
    name,
  );
  return get(sql, crawlerId, name, now);
}

function cancel(
  sql: Sql,
  { batchId, crawlerId }: Pick<Batch, 'batchId' | 'crawlerId'>,
  limit: number,
  now: Date,
): number {
  const selection = `SELECT rid FROM jobs
    WHERE batch_id = ? AND state IN ('waiting', 'retrying') AND gen = ? LIMIT ?`;
  const values = [batchId, purgeCount(sql, crawlerId) ?? -1, limit];
  return removeJobs(sql, { crawlerId, selection, values, end: 'purged', now }).length;
}

const HAS_JOBS = 'EXISTS (SELECT 1 FROM jobs j WHERE j.batch_id = b.batch_id)';

function done(sql: Sql, limit: number, now: Date): Batch[] {
  const rows = sql.all(
    `SELECT * FROM batches b WHERE closed_at IS NOT NULL AND completed_at IS NULL
      AND NOT ${HAS_JOBS} ORDER BY batch_id LIMIT ?`,
    limit,
  );
  return rows.map((row) => toBatch(sql, row, now));
}

function complete(sql: Sql, batch: Batch, event: BatchEvent | undefined, now: Date): boolean {
  const { batchId, crawlerId } = batch;
  const keptMs = toWall(sql, now).getTime();
  if (purgeCount(sql, crawlerId) === undefined) return false;
  const won = sql.run(
    `UPDATE batches AS b SET completed_at = ?, expires_at = ? WHERE batch_id = ?
      AND closed_at IS NOT NULL AND completed_at IS NULL AND NOT ${HAS_JOBS}`,
    keptMs,
    now.getTime() + BATCH_KEPT_MS,
    batchId,
  );
  if (won === 0) return false;
  if (event === undefined) return true;
  const { record, expiresAt } = event;
  insertDelivery(
    sql,
    { record, crawlerId, callbackHeaders: [], expiresAt, batchId },
    now,
    undefined,
  );
  const counts = createCounts();
  counts.of(crawlerId).add('deliveriesPending', 1);
  counts.of(crawlerId).addStored(chargedBytes(placedBytes(record)));
  counts.write(sql, now);
  return true;
}

/**
 * Removes batches past their retention, and closes open ones that were not pushed to for as long.
 * Returns how many.
 */
export function expireBatches(sql: Sql, now: Date, limit: number): number {
  const rows = sql.all(
    'SELECT batch_id, completed_at FROM batches WHERE expires_at <= ? LIMIT ?',
    now.getTime(),
    limit,
  );
  for (const row of rows) {
    const batchId = String(row.batch_id);
    if (row.completed_at !== null) sql.run('DELETE FROM batches WHERE batch_id = ?', batchId);
    else {
      sql.run(
        `UPDATE batches SET expires_at = ?, closed_at = coalesce(closed_at, ?) WHERE batch_id = ?`,
        now.getTime() + DAY_MS,
        toWall(sql, now).getTime(),
        batchId,
      );
    }
  }
  return rows.length;
}

/** Batches and what they count. */
export const batches = {
  get,
  list,
  close,
  cancel,
  done,
  complete,
} satisfies InThread<BatchStore>;
