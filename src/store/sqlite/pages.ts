import { parseCoding } from '../../domain/body-coding.ts';
import { discard } from '../../domain/discard.ts';
import { recordTextBytes } from '../../domain/quotas.ts';
import type { CrawlRecord, ResultDetails } from '../../domain/result.ts';
import { type Sql, type SqlRow, toBytes } from './sql.ts';

/** Least bytes of a piece of a page, but for the last. Everything else waits while one is written. */
export const PIECE_BYTES = 128 * 1024;

/** A page that was written before its record. */
export interface WrittenPage {
  readonly pageId: number;
  readonly bytes: number;
}

/** A record whose page may have been written before it; its `body` is empty then. */
export type PlacedRecord = CrawlRecord & { readonly written?: WrittenPage };

/** The bytes of the record. */
export function placedBytes(record: PlacedRecord): number {
  return (record.written?.bytes ?? record.body.byteLength) + recordTextBytes(record);
}

const INSERT_PAGE = 'INSERT INTO pages (body) VALUES (?)';

/**
 * Inserts the bytes of a page as a row of their own, so that later updates of its record do not
 * rewrite them. Returns the row's identifier.
 */
export function placePage(sql: Sql, { body, written }: PlacedRecord): number {
  if (written === undefined) return sql.insert(INSERT_PAGE, body);
  sql.run('DELETE FROM unfinished_pages WHERE page_id = ?', written.pageId);
  return written.pageId;
}

/** Removes a page. */
export function removePage(sql: Sql, pageId: number): void {
  sql.run('DELETE FROM pages WHERE page_id = ?', pageId);
  sql.run('DELETE FROM page_pieces WHERE page_id = ?', pageId);
}

/** A piece of a page; a page's first has no `pageId` yet. */
export interface PagePiece {
  readonly pageId: number | undefined;
  /** Counted from 0. */
  readonly piece: number;
  readonly body: Uint8Array<ArrayBuffer>;
}

/** Writes a piece of a page that is unfinished from then on, and frees it. Returns the page. */
function writePiece(sql: Sql, { pageId, piece, body }: PagePiece): number {
  const id = pageId ?? sql.insert(INSERT_PAGE, body);
  if (pageId === undefined) sql.run('INSERT INTO unfinished_pages (page_id) VALUES (?)', id);
  else sql.run('INSERT INTO page_pieces (page_id, piece, body) VALUES (?, ?, ?)', id, piece, body);
  discard(body);
  return id;
}

/** Removes those of the pages that are unfinished. */
function dropUnfinished(sql: Sql, pageIds: readonly number[]): void {
  for (const pageId of pageIds) {
    if (sql.run('DELETE FROM unfinished_pages WHERE page_id = ?', pageId) > 0) {
      removePage(sql, pageId);
    }
  }
}

/** Removes the pages that a process left unfinished. */
export function dropAllUnfinished(sql: Sql): void {
  const rows = sql.all('SELECT page_id FROM unfinished_pages');
  dropUnfinished(
    sql,
    rows.map((row) => Number(row.page_id)),
  );
}

/** What the database's thread does for pages that are written before their records. */
export const pages = { writePiece, dropUnfinished };

/** The statement that reads a page: a row for each of its pieces, in order. */
export const PAGE_PIECES = `SELECT body FROM
  (SELECT 0 AS piece, body FROM pages WHERE page_id = ?1
    UNION ALL SELECT piece, body FROM page_pieces WHERE page_id = ?1) ORDER BY piece`;

function readPage(sql: Sql, pageId: number): Uint8Array {
  const first = toBytes(sql.get('SELECT body FROM pages WHERE page_id = ?', pageId)?.body);
  if (first.byteLength < PIECE_BYTES) return first;
  return Buffer.concat(sql.all(PAGE_PIECES, pageId).map((row) => toBytes(row.body)));
}

/** What a row of results or deliveries says of its crawl, without the page. */
export function toCrawlFields(row: SqlRow): Omit<CrawlRecord, 'body'> {
  return {
    rid: String(row.rid),
    url: String(row.url),
    pushedUrl: String(row.pushed_url),
    cbStatus: Number(row.cb_status),
    originalStatus: Number(row.original_status),
    contentType: String(row.content_type),
    coding: parseCoding(row.coding),
    details: JSON.parse(String(row.extras)) as ResultDetails,
  };
}

/** The record of a row of results or deliveries. */
export function toRecord(sql: Sql, row: SqlRow): CrawlRecord {
  return { ...toCrawlFields(row), body: readPage(sql, Number(row.page_id)) };
}
