import type { MaintenanceReport } from '../store.ts';
import type { Sql } from './sql.ts';

// A sweep is one write that everything else waits for; this many rows take some milliseconds.
const BATCH = 500;

function sweepWithPages(sql: Sql, table: 'results' | 'deliveries', now: Date): number {
  const gone = sql.all(
    `DELETE FROM ${table} WHERE rid IN (SELECT rid FROM ${table} WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)
      RETURNING *`,
    now.getTime(),
    BATCH,
  );
  for (const row of gone) {
    sql.run('DELETE FROM pages WHERE page_id = ?', Number(row.page_id));
    if (table === 'deliveries' && (row.state === 'due' || row.state === 'sending')) {
      sql.run(
        'UPDATE dispatch SET deliveries_pending = deliveries_pending - 1 WHERE crawler_id = ?',
        String(row.crawler_id),
      );
    }
  }
  return gone.length;
}

function sweep(sql: Sql, table: 'push_requests' | 'media', now: Date): number {
  return sql.run(`DELETE FROM ${table} WHERE expires_at <= ?`, now.getTime());
}

/** Removes a bounded number of what is past its retention. Counters move with their rows here, so none is ever wrong. */
export function maintain(sql: Sql, now: Date): MaintenanceReport {
  const expired =
    sweepWithPages(sql, 'results', now) +
    sweepWithPages(sql, 'deliveries', now) +
    sweep(sql, 'push_requests', now) +
    sweep(sql, 'media', now);
  return { expired, repaired: 0 };
}
