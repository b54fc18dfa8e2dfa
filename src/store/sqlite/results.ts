import { toWall } from '../../domain/clock.ts';
import { chargedBytes } from '../../domain/quotas.ts';
import type { CrawlRecord, StoredResult } from '../../domain/result.ts';
import { parsePageStart, ridsPage } from '../cursor.ts';
import { MAX_SUMMED_RESULTS } from '../rules.ts';
import type {
  ResultPlace,
  ResultScope,
  ResultSelection,
  ResultStore,
  ResultTotals,
  RidsPage,
} from '../store.ts';
import { addStored } from './accounts.ts';
import { insertResult } from './finish.ts';
import type { InThread } from './in-thread.ts';
import { placedBytes, removePage, toRecord } from './pages.ts';
import { following, ridsUpTo, takeResultNumbers } from './result-order.ts';
import { type Sql, type SqlRow, toDate } from './sql.ts';

function toResult(sql: Sql, row: SqlRow): StoredResult {
  return { ...toRecord(sql, row), storedAt: toDate(row.stored_at) };
}

function put(sql: Sql, scope: ResultScope, record: CrawlRecord, now: Date, expiresAt: Date): Date {
  const storedAt = toWall(sql, now);
  insertResult(sql, { scope, record, seq: takeResultNumbers(sql, 1), storedAt, expiresAt });
  addStored(sql, scope.accountId, chargedBytes(placedBytes(record)));
  return storedAt;
}

const IS_ONE = 'rid = ? AND account_id = ? AND token_type = ?';
const one = ({ accountId, tokenType }: ResultScope, rid: string) => [rid, accountId, tokenType];

function find(sql: Sql, scope: ResultScope, rid: string): SqlRow | undefined {
  return sql.get(`SELECT * FROM results WHERE ${IS_ONE}`, ...one(scope, rid));
}

function get(sql: Sql, scope: ResultScope, rid: string): StoredResult | undefined {
  const row = find(sql, scope, rid);
  return row === undefined || row.held_until !== null ? undefined : toResult(sql, row);
}

function newest(
  sql: Sql,
  scope: ResultScope,
  pushedUrl: string,
  page?: { readonly key: string; readonly since: Date },
): StoredResult | undefined {
  const row = sql.get(
    `SELECT * FROM results WHERE account_id = ? AND token_type = ? AND pushed_url = ?
      ${page === undefined ? '' : 'AND stored_at >= ? AND page_key = ?'} AND held_until IS NULL
      ORDER BY stored_at DESC, rid DESC LIMIT 1`,
    scope.accountId,
    scope.tokenType,
    pushedUrl,
    ...(page === undefined ? [] : [page.since.getTime(), page.key]),
  );
  return row === undefined ? undefined : toResult(sql, row);
}

function getMany(sql: Sql, scope: ResultScope, rids: readonly string[]): StoredResult[] {
  return rids.flatMap((rid) => {
    const row = find(sql, scope, rid);
    return row === undefined ? [] : toResult(sql, row);
  });
}

function sizes(sql: Sql, scope: ResultScope, rids: readonly string[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const rid of rids) {
    const row = sql.get(
      `SELECT size FROM results WHERE ${IS_ONE} AND held_until IS NULL`,
      ...one(scope, rid),
    );
    if (row !== undefined) found.set(rid, Number(row.size));
  }
  return found;
}

function hold(sql: Sql, scope: ResultScope, rids: readonly string[], until: Date): Set<string> {
  const isHeld = (rid: string): boolean =>
    sql.run(
      `UPDATE results SET held_until = ? WHERE ${IS_ONE} AND held_until IS NULL`,
      until.getTime(),
      ...one(scope, rid),
    ) > 0;
  return new Set(rids.filter(isHeld));
}

function release(sql: Sql, scope: ResultScope, rids: readonly string[]): void {
  for (const rid of rids) {
    sql.run(`UPDATE results SET held_until = NULL WHERE ${IS_ONE}`, ...one(scope, rid));
  }
}

/** Shows results again whose hold has ended: all of them at the start, when nobody reads. */
export function endHolds(sql: Sql, now?: Date): void {
  sql.run(
    'UPDATE results SET held_until = NULL WHERE held_until IS NOT NULL AND held_until <= ?',
    now?.getTime() ?? Number.MAX_SAFE_INTEGER,
  );
}

function remove(sql: Sql, scope: ResultScope, rids: readonly string[]): Set<string> {
  const removed = new Set<string>();
  let bytes = 0;
  for (const rid of rids) {
    const row = sql.get(
      `DELETE FROM results WHERE ${IS_ONE} RETURNING page_id, size`,
      ...one(scope, rid),
    );
    if (row === undefined) continue;
    removePage(sql, Number(row.page_id));
    removed.add(rid);
    bytes += chargedBytes(Number(row.size));
  }
  addStored(sql, scope.accountId, -bytes);
  return removed;
}

function rids(
  sql: Sql,
  scope: ResultScope,
  page: RidsPage,
): { rids: string[]; cursor: string | undefined } {
  const { order, after } = parsePageStart(page);
  const behind =
    after === undefined ? '' : `AND (stored_at, rid) ${order === 'asc' ? '>' : '<'} (?, ?)`;
  const rows = sql.all(
    `SELECT rid, stored_at FROM results WHERE account_id = ? AND token_type = ?
      AND held_until IS NULL ${behind} ORDER BY stored_at ${order}, rid ${order} LIMIT ?`,
    scope.accountId,
    scope.tokenType,
    ...(after === undefined ? [] : [after.at.getTime(), after.rid]),
    page.limit,
  );
  const found = rows.map((row) => ({ rid: String(row.rid), at: toDate(row.stored_at) }));
  return ridsPage(order, found);
}

function count(sql: Sql, scope: ResultScope): number {
  // Two indexes have both numbers; no result is read.
  const countOf = (condition: string): number =>
    Number(
      sql.get(
        `SELECT count(*) AS n FROM results WHERE account_id = ? AND token_type = ? ${condition}`,
        scope.accountId,
        scope.tokenType,
      )?.n ?? 0,
    );
  return countOf('') - countOf('AND held_until IS NOT NULL');
}

function totals(sql: Sql, { accountId, tokenType }: ResultScope): ResultTotals | undefined {
  // The index has the sizes: no result is read.
  const row = sql.get(
    `SELECT count(*) AS n, sum(size) AS bytes FROM
      (SELECT size FROM results INDEXED BY results_by_seq WHERE account_id = ? AND token_type = ?
        LIMIT ?)`,
    accountId,
    tokenType,
    MAX_SUMMED_RESULTS + 1,
  );
  const n = Number(row?.n ?? 0);
  if (n > MAX_SUMMED_RESULTS) return undefined;
  return { results: n, bytes: Number(row?.bytes ?? 0) + n * chargedBytes(0) };
}

function removeUpTo(
  sql: Sql,
  selection: ResultSelection,
  place: ResultPlace,
  limit: number,
): number {
  return remove(sql, selection, ridsUpTo(sql, selection, place, limit)).size;
}

/** Stored results. */
export const results = {
  put,
  get,
  newest,
  getMany,
  sizes,
  hold,
  release,
  remove,
  rids,
  count,
  totals,
  following,
  removeUpTo,
} satisfies InThread<ResultStore>;
