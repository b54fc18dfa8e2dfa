import { BATCH_KEPT_MS, type BatchEnds, MAX_BATCHES } from '../../domain/batch.ts';
import { toWall } from '../../domain/clock.ts';
import { createRid } from '../../domain/rid.ts';
import type { PushOutcome } from '../store.ts';
import { insertRow, type Sql } from './sql.ts';

/** The batches of a crawler that pushes name. */
export function openBatches(sql: Sql, crawlerId: string, now: Date) {
  const opened = new Map<string, { readonly batchId: string; accepted: number }>();
  const keptMs = toWall(sql, now).getTime();

  function create(name: string) {
    const count = sql.get('SELECT count(*) AS n FROM batches WHERE crawler_id = ?', crawlerId);
    if (Number(count?.n) >= MAX_BATCHES) return { refused: 'too_many_batches' } as const;
    const batch = { batchId: createRid(toWall(sql, now)), accepted: 0 };
    insertRow(sql, 'batches', {
      batch_id: batch.batchId,
      crawler_id: crawlerId,
      name,
      created_at: keptMs,
      last_pushed_at: keptMs,
      expires_at: now.getTime() + BATCH_KEPT_MS,
    });
    return batch;
  }

  return {
    /** The batch of a job that is about to be inserted. */
    open(name: string): { readonly batchId: string } | Extract<PushOutcome, { refused: string }> {
      let batch = opened.get(name);
      if (batch === undefined) {
        const row = sql.get(
          'SELECT batch_id, closed_at FROM batches WHERE crawler_id = ? AND name = ?',
          crawlerId,
          name,
        );
        if (row !== undefined && row.closed_at !== null) return { refused: 'batch_closed' };
        const found =
          row === undefined ? create(name) : { batchId: String(row.batch_id), accepted: 0 };
        if ('refused' in found) return found;
        batch = found;
        opened.set(name, batch);
      }
      batch.accepted += 1;
      return batch;
    },
    /** Counts the jobs. */
    write(): void {
      for (const { batchId, accepted } of opened.values()) {
        sql.run(
          `UPDATE batches SET accepted = accepted + ?, last_pushed_at = ?, expires_at = ?
            WHERE batch_id = ?`,
          accepted,
          keptMs,
          now.getTime() + BATCH_KEPT_MS,
          batchId,
        );
      }
    },
  };
}

/** Adds the ends of crawls to their batch. */
export function addBatchEnds(sql: Sql, batchId: string, ends: BatchEnds, at: Date): void {
  const before = sql.get('SELECT failures FROM batches WHERE batch_id = ?', batchId);
  if (before === undefined) return;
  const failures = JSON.parse(String(before.failures)) as Record<string, number>;
  for (const [reason, n] of Object.entries(ends.failures)) {
    failures[reason] = (failures[reason] ?? 0) + n;
  }
  sql.run(
    'UPDATE batches SET completed = completed + ?, failures = ?, last_ended_at = ? WHERE batch_id = ?',
    ends.completed,
    JSON.stringify(failures),
    at.getTime(),
    batchId,
  );
}
