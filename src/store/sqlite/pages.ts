import type { Sql } from './sql.ts';

/**
 * Keeps the bytes of a page in a row of their own, so that what is written about it later does not write it again. Returns its
 * identifier.
 */
export function insertPage(sql: Sql, body: Uint8Array): number {
  const row = sql.get('INSERT INTO pages (body) VALUES (?) RETURNING page_id', body);
  return Number(row?.page_id);
}

/** The bytes of a page. */
export function pageOf(sql: Sql, pageId: number): Uint8Array {
  const body = sql.get('SELECT body FROM pages WHERE page_id = ?', pageId)?.body;
  return body instanceof Uint8Array ? body : new Uint8Array(0);
}
