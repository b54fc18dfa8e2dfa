import { HOUR_MS } from '../../domain/durations.ts';
import { chargedBytes } from '../../domain/quotas.ts';
import { isPending } from '../kept-delivery.ts';
import { addStored } from './accounts.ts';
import { expireAudit } from './audit.ts';
import { expireBatches } from './batches.ts';
import { sweepSessions } from './cookie-sessions.ts';
import { removePage } from './pages.ts';
import { endHolds } from './results.ts';
import { takeSamples } from './samples.ts';
import { sweepScreenshots } from './screenshots.ts';
import { deleteSome, type Sql, type SqlValue } from './sql.ts';
import { expireKeys } from './unique-keys.ts';

// A step is one write, for which everything else waits. This many rows take some milliseconds; as
// many pages of 8 MiB take 50.
const BATCH = 100;
// Operations that were in progress when an account was removed, such as an inline crawl to be
// stored, have ended after this.
const LAST_WRITES_MS = HOUR_MS;

function sweepWithPages(sql: Sql, table: 'results' | 'deliveries', now: Date): number {
  const gone = sql.all(
    `DELETE FROM ${table} WHERE rid IN
      (SELECT rid FROM ${table} WHERE expires_at <= ? ORDER BY expires_at LIMIT ?) RETURNING *`,
    now.getTime(),
    BATCH,
  );
  for (const row of gone) {
    removePage(sql, Number(row.page_id));
    const accountId = row.account_id ?? accountOf(sql, String(row.crawler_id));
    addStored(sql, String(accountId), -chargedBytes(Number(row.size)));
    if (table === 'deliveries' && isPending(row)) {
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
      removePage(sql, Number(page_id));
    }
    swept += gone.length;
    if (swept >= BATCH) break;
    if (Number(row.removed_at) <= now.getTime() - LAST_WRITES_MS) {
      sql.run('DELETE FROM removed_accounts WHERE account_id = ?', String(row.account_id));
    }
  }
  return swept;
}

// Free pages that stay in the file for what comes next: a tenth of it, and 4 MB.
const KEPT_FREE = { part: 0.1, pages: 1_000 } as const;
const VACUUM_PAGES = 500;

/**
 * Moves free pages to the end of the file and cuts them off, some at a time; true while there are
 * more. A database of before, which was not made for it, keeps them until it is restored from a
 * backup.
 */
function giveBackPages(sql: Sql): boolean {
  const value = (pragma: string): number =>
    Number(Object.values(sql.get(`PRAGMA ${pragma}`) ?? {})[0] ?? 0);
  if (value('auto_vacuum') === 0) return false;
  const excess = (): number =>
    value('freelist_count') - Math.max(value('page_count') * KEPT_FREE.part, KEPT_FREE.pages);
  const before = excess();
  if (before <= 0) return false;
  sql.exec(`PRAGMA incremental_vacuum(${Math.ceil(Math.min(VACUUM_PAGES, before))})`);
  const left = excess();
  return left > 0 && left < before;
}

/**
 * Removes a bounded number of rows past their retention. Counters change in the same transaction as
 * their rows, so they are never wrong. Returns whether there may be more to do.
 */
export function maintain(sql: Sql, now: Date): boolean {
  endHolds(sql, now);
  const counts = [
    sweepWithPages(sql, 'results', now),
    sweepWithPages(sql, 'deliveries', now),
    sweepRemoved(sql, now),
    deleteSome(sql, BATCH, 'push_requests', 'rowid', 'expires_at <= ?', now.getTime()),
    expireKeys(sql, now, BATCH),
    expireBatches(sql, now, BATCH),
    expireAudit(sql, now, BATCH),
    sweepScreenshots(sql, now, BATCH),
    sweepSessions(sql, now, BATCH),
  ];
  const isMoreDue = counts.some((each) => each === BATCH) || takeSamples(sql, now);
  // What is still to be removed frees further pages.
  return isMoreDue || giveBackPages(sql);
}
