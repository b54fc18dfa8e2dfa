import type { CrawlRecord } from '../../domain/result.ts';
import { parseDetails } from '../stored-details.ts';
import type { Sql, SqlRow } from './sql.ts';

/**
 * Inserts the bytes of a page as a row of their own, so that later updates of its record do not
 * rewrite them. Returns the row's identifier.
 */
export function insertPage(sql: Sql, body: Uint8Array): number {
  const row = sql.get('INSERT INTO pages (body) VALUES (?) RETURNING page_id', body);
  return Number(row?.page_id);
}

function readPage(sql: Sql, pageId: number): Uint8Array {
  const body = sql.get('SELECT body FROM pages WHERE page_id = ?', pageId)?.body;
  return body instanceof Uint8Array ? body : new Uint8Array(0);
}

/** The record of a row of results or deliveries. */
export function toRecord(sql: Sql, row: SqlRow): CrawlRecord {
  return {
    rid: String(row.rid),
    url: String(row.url),
    pushedUrl: String(row.pushed_url),
    cbStatus: Number(row.cb_status),
    originalStatus: Number(row.original_status),
    contentType: String(row.content_type),
    details: parseDetails(String(row.extras)),
    body: readPage(sql, Number(row.page_id)),
  };
}
