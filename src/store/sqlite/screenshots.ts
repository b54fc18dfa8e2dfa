import type { Sql } from './sql.ts';

function put(sql: Sql, id: string, contentType: string, bytes: Uint8Array, expiresAt: Date): void {
  sql.run(
    'INSERT INTO media (id, content_type, bytes, expires_at) VALUES (?, ?, ?, ?)',
    id,
    contentType,
    bytes,
    expiresAt.getTime(),
  );
}

function get(
  sql: Sql,
  id: string,
  now: Date,
): { contentType: string; bytes: Uint8Array } | undefined {
  const row = sql.get(
    'SELECT content_type, bytes FROM media WHERE id = ? AND expires_at > ?',
    id,
    now.getTime(),
  );
  if (!(row?.bytes instanceof Uint8Array)) return undefined;
  return { contentType: String(row.content_type), bytes: row.bytes };
}

/** Pictures that live for an hour. */
export const screenshots = { put, get };
