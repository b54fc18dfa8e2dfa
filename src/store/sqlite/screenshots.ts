import type { ScreenshotStore } from '../store.ts';
import type { InThread } from './in-thread.ts';
import { insertRow, type Sql } from './sql.ts';

function put(sql: Sql, id: string, contentType: string, bytes: Uint8Array, expiresAt: Date): void {
  const expires_at = expiresAt.getTime();
  insertRow(sql, 'media', { id, content_type: contentType, bytes, expires_at });
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

/** Screenshots, which are kept for an hour. */
export const screenshots = { put, get } satisfies InThread<ScreenshotStore>;
