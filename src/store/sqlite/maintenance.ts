import { chargedBytes } from '../../domain/quotas.ts';
import { addStored } from './accounts.ts';
import { sweepScreenshots } from './screenshots.ts';
import type { Sql, SqlValue } from './sql.ts';

// A step is one write, for which everything else waits. This many rows take some milliseconds.
const BATCH = 500;
// Operations that were in progress when an account was removed, such as an inline crawl to be
// stored, have ended after this.
const LAST_WRITES_MS = 3_600_000;

interface Step {
  readonly expired: number;
  /** Whether there may be more to do. */
  readonly more: boolean;
}

function sweepWithPages(sql: Sql, table: 'results' | 'deliveries', now: Date): number {
  const gone = sql.all(
    `DELETE FROM ${table} WHERE rid IN
      (SELECT rid FROM ${table} WHERE expires_at <= ? ORDER BY expires_at LIMIT ?) RETURNING *`,
    now.getTime(),
    BATCH,
  );
  for (const row of gone) {
    sql.run('DELETE FROM pages WHERE page_id = ?', Number(row.page_id));
    const accountId = row.account_id ?? accountOf(sql, String(row.crawler_id));
    addStored(sql, String(accountId), -chargedBytes(Number(row.size)));
    if (table === 'deliveries' && (row.state === 'due' || row.state === 'sending')) {
      sql.run(
        'UPDATE dispatch SET deliveries_pending = deliveries_pending - 1 WHERE crawler_id = ?',
        String(row.crawler_id),
      );
    }
  }
  return gone.length;
}

function accountOf(sql: Sql, crawlerId: string): SqlValue {
  const row =
    sql.get('SELECT account_id FROM crawlers WHERE crawler_id = ?', crawlerId) ??
    sql.get('SELECT account_id FROM sweeps WHERE crawler_id = ?', crawlerId);
  return row?.account_id ?? '';
}

/**
 * Removes results of removed accounts. An account is forgotten once nothing can be stored for it
 * any more.
 */
function sweepRemoved(sql: Sql, now: Date): number {
  let swept = 0;
  for (const row of sql.all('SELECT * FROM removed_accounts')) {
    const gone = sql.all(
      `DELETE FROM results WHERE rid IN
        (SELECT rid FROM results WHERE account_id = ? LIMIT ?) RETURNING page_id`,
      String(row.account_id),
      BATCH - swept,
    );
    for (const { page_id } of gone) {
      sql.run('DELETE FROM pages WHERE page_id = ?', Number(page_id));
    }
    swept += gone.length;
    if (swept >= BATCH) break;
    if (Number(row.removed_at) <= now.getTime() - LAST_WRITES_MS) {
      sql.run('DELETE FROM removed_accounts WHERE account_id = ?', String(row.account_id));
    }
  }
  return swept;
}

function sweepRequests(sql: Sql, now: Date): number {
  return sql.run(
    `DELETE FROM push_requests WHERE (crawler_id, request_id) IN
      (SELECT crawler_id, request_id FROM push_requests WHERE expires_at <= ? LIMIT ?)`,
    now.getTime(),
    BATCH,
  );
}

/**
 * Removes a bounded number of rows past their retention. Counters change in the same transaction as
 * their rows, so they are never wrong.
 */
export function maintain(sql: Sql, now: Date): Step {
  const counts = [
    sweepWithPages(sql, 'results', now),
    sweepWithPages(sql, 'deliveries', now),
    sweepRemoved(sql, now),
    sweepRequests(sql, now),
    sweepScreenshots(sql, now, BATCH),
  ];
  const expired = counts.reduce((sum, each) => sum + each, 0);
  return { expired, more: counts.some((each) => each === BATCH) };
}
