import { CB_STATUS } from '../../domain/status.ts';
import type { FailedCrawl, FailedSelection } from '../failed-crawls.ts';
import { mapListing, partStart, partStartFrom, takePart } from '../listing-cursor.ts';
import { LISTING_SCAN, type Listing, type ListingPart } from '../listing-store.ts';
import { parseDetails } from '../stored-details.ts';
import { matching, type Sql, type SqlRow, toDate, toOptionalText } from './sql.ts';

/** See `ReadFailedCrawls`. */
export function failedCrawls(
  sql: Sql,
  selection: FailedSelection,
  part: ListingPart,
): Listing<FailedCrawl> {
  const { delivers, crawlerId, batchId, range, rids } = selection;
  const [table, ended] = delivers
    ? ['deliveries', 'created_at']
    : ['results INDEXED BY results_failed_by_time', 'stored_at'];
  const { accountId, tokenType } = selection;
  const start = range === undefined ? partStart(part) : partStartFrom(part, range.from);
  const { where, values } = matching([
    [`cb_status <> ${CB_STATUS.success} AND crawler_id = ?`, crawlerId],
    delivers
      ? ['TRUE']
      : ['account_id = ? AND token_type = ? AND held_until IS NULL', accountId, tokenType],
    ['batch_id = ?', batchId],
    [`${ended} < ?`, range?.to.getTime()],
    ['rid IN (SELECT value FROM json_each(?))', rids && JSON.stringify(rids)],
    [`(${ended}, rid) > (?, ?)`, start?.at.getTime(), start?.rid],
  ]);
  const scanned = sql.each(
    `SELECT rid, ${ended} AS ended, pushed_url, cb_status, original_status, extras, request
      FROM ${table} WHERE ${where} ORDER BY ${ended}, rid LIMIT ${LISTING_SCAN}`,
    ...values,
  );
  const place = (row: SqlRow) => ({ at: toDate(row.ended), rid: String(row.rid) });
  return mapListing(
    takePart(scanned, part, () => true, place),
    toFailedCrawl,
  );
}

function toFailedCrawl(row: SqlRow): FailedCrawl {
  const { failure, metadata } = parseDetails(String(row.extras));
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
