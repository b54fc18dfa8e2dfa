import type { ResultDetails } from '../../domain/result.ts';
import { CB_STATUS } from '../../domain/status.ts';
import type { FailedCrawl, FailedSelection } from '../failed-crawls.ts';
import { mapListing, partStart, partStartFrom, takePart } from '../listing-cursor.ts';
import { LISTING_SCAN, type Listing, type ListingPart } from '../listing-store.ts';
import { matching, type Sql, type SqlRow, toDate, toOptionalText } from './sql.ts';

/** Other calls wait as long for one part. The request that a row keeps may have a megabyte. */
const PART_MS = 20;

/**
 * See `ReadFailedCrawls`. The conditions are checked here, not by SQLite, which would not return before it
 * has found enough.
 */
export function failedCrawls(
  sql: Sql,
  selection: FailedSelection,
  part: ListingPart,
): Listing<FailedCrawl> {
  const { delivers, crawlerId, range } = selection;
  const [table, ended, columns] = delivers
    ? ['deliveries INDEXED BY deliveries_failed_crawls', 'created_at', 'batch_id']
    : ['results INDEXED BY results_failed_by_time', 'stored_at', RESULT_COLUMNS];
  const start = range === undefined ? partStart(part) : partStartFrom(part, range.from);
  const { where, values } = matching([
    [`cb_status <> ${CB_STATUS.success} AND crawler_id = ?`, crawlerId],
    [`${ended} < ?`, range?.to.getTime()],
    [`(${ended}, rid) > (?, ?)`, start?.at.getTime(), start?.rid],
  ]);
  const scanned = sql.each(
    `SELECT rid, ${ended} AS ended, ${columns} FROM ${table} WHERE ${where}
      ORDER BY ${ended}, rid LIMIT ${LISTING_SCAN}`,
    ...values,
  );
  const isSelected = selectedBy(selection);
  function* read(): Generator<SqlRow, void, undefined> {
    for (const found of scanned) {
      const row = isSelected(found) ? readRow(sql, delivers, String(found.rid)) : undefined;
      yield { ...found, ...row };
    }
  }
  const isRead = (row: SqlRow): boolean => row.pushed_url !== undefined;
  const place = (row: SqlRow) => ({ at: toDate(row.ended), rid: String(row.rid) });
  const limits = { ...part, maxMs: PART_MS };
  return mapListing(takePart(read(), limits, isRead, place), toFailedCrawl);
}

const RESULT_COLUMNS = 'batch_id, account_id, token_type, held_until';

/** Whether a row with these columns is selected. */
function selectedBy(selection: FailedSelection): (row: SqlRow) => boolean {
  const { delivers, accountId, tokenType, batchId } = selection;
  const rids = selection.rids && new Set(selection.rids);
  const isOfScope = (row: SqlRow): boolean =>
    delivers ||
    (row.account_id === accountId && row.token_type === tokenType && row.held_until === null);
  return (row) =>
    isOfScope(row) &&
    (batchId === undefined || row.batch_id === batchId) &&
    (rids === undefined || rids.has(String(row.rid)));
}

function readRow(sql: Sql, delivers: boolean, rid: string): SqlRow | undefined {
  return sql.get(
    `SELECT pushed_url, cb_status, original_status, extras, request
      FROM ${delivers ? 'deliveries' : 'results'} WHERE rid = ?`,
    rid,
  );
}

function toFailedCrawl(row: SqlRow): FailedCrawl {
  const { failure, metadata } = JSON.parse(String(row.extras)) as ResultDetails;
  return {
    rid: String(row.rid),
    pushedUrl: String(row.pushed_url),
    cbStatus: Number(row.cb_status),
    originalStatus: Number(row.original_status),
    failure,
    metadata,
    request: toOptionalText(row.request),
  };
}
