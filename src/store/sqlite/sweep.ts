import { chargedBytes } from '../../domain/quotas.ts';
import { addStored } from './accounts.ts';
import { purgeCount } from './lease.ts';
import { removePage } from './pages.ts';
import { deleteSome, insertRow, type Sql } from './sql.ts';
import { sweepKeys } from './unique-keys.ts';

// A sweep is one write, for which everything else waits. This many rows of a large table take some 20 ms.
const ROWS_PER_STEP = 500;
const PAGES_PER_STEP = 100;

/** Notes that a crawler or its queue is gone, and sweeps up the first of its rows. */
export function beginSweep(sql: Sql, crawlerId: string, accountId: string): void {
  insertRow(sql, 'sweeps', { crawler_id: crawlerId, account_id: accountId }, 'DO NOTHING');
  sweepOnce(sql, crawlerId, accountId);
}

/** Sweeps up some rows of purged queues and removed crawlers; false when none are left. */
export function sweep(sql: Sql): boolean {
  const row = sql.get('SELECT * FROM sweeps LIMIT 1');
  if (row === undefined) return false;
  sweepOnce(sql, String(row.crawler_id), String(row.account_id));
  return sql.get('SELECT 1 FROM sweeps LIMIT 1') !== undefined;
}

function sweepOnce(sql: Sql, crawlerId: string, accountId: string): void {
  const purges = purgeCount(sql, crawlerId);
  const more =
    purges === undefined
      ? sweepRemoved(sql, crawlerId, accountId)
      : sweepPurged(sql, crawlerId, purges);
  if (!more) sql.run('DELETE FROM sweeps WHERE crawler_id = ?', crawlerId);
}

function sweepPurged(sql: Sql, crawlerId: string, purges: number): boolean {
  const isOld = "crawler_id = ? AND gen < ? AND state <> 'running'";
  const removed = deleteSome(sql, ROWS_PER_STEP, 'jobs', 'rid', isOld, crawlerId, purges);
  const keys = sweepKeys(sql, crawlerId, purges, ROWS_PER_STEP);
  return removed === ROWS_PER_STEP || keys === ROWS_PER_STEP;
}

/** Removes rows of a crawler that is gone, and returns whether there may be more. */
function sweepRemoved(sql: Sql, crawlerId: string, accountId: string): boolean {
  const own = 'crawler_id = ?';
  const states = ["state <> 'running'", "state = 'running'"];
  for (const state of states) {
    const jobs = deleteSome(sql, ROWS_PER_STEP, 'jobs', 'rid', `${own} AND ${state}`, crawlerId);
    if (jobs === ROWS_PER_STEP) return true;
  }
  const pages = sql.all(
    `DELETE FROM deliveries WHERE rid IN
      (SELECT rid FROM deliveries WHERE crawler_id = ? LIMIT ?) RETURNING page_id, size`,
    crawlerId,
    PAGES_PER_STEP,
  );
  for (const { page_id } of pages) {
    removePage(sql, Number(page_id));
  }
  const bytes = pages.reduce((sum, { size }) => sum + chargedBytes(Number(size)), 0);
  addStored(sql, accountId, -bytes);
  if (pages.length === PAGES_PER_STEP) return true;
  for (const table of ['history', 'samples', 'known_hosts', 'batches']) {
    sql.run(`DELETE FROM ${table} WHERE ${own}`, crawlerId);
  }
  const requests = deleteSome(sql, ROWS_PER_STEP, 'push_requests', 'rowid', own, crawlerId);
  const keys = sweepKeys(sql, crawlerId, Number.MAX_SAFE_INTEGER, ROWS_PER_STEP);
  return requests === ROWS_PER_STEP || keys === ROWS_PER_STEP;
}
