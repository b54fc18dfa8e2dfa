import { chargedBytes } from '../../domain/quotas.ts';
import type { ScreenshotStore, StoredScreenshot } from '../store.ts';
import { addStored } from './accounts.ts';
import type { InThread } from './in-thread.ts';
import { insertRow, type Sql } from './sql.ts';

function put(sql: Sql, { id, accountId, contentType, bytes, expiresAt }: StoredScreenshot): void {
  insertRow(sql, 'media', {
    id,
    account_id: accountId,
    content_type: contentType,
    bytes,
    expires_at: expiresAt.getTime(),
  });
  addStored(sql, accountId, chargedBytes(bytes.byteLength));
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

/** Removes a bounded number of expired screenshots. Returns how many it removed. */
export function sweepScreenshots(sql: Sql, now: Date, limit: number): number {
  const removed = sql.all(
    `DELETE FROM media WHERE id IN (SELECT id FROM media WHERE expires_at <= ? LIMIT ?)
      RETURNING account_id, length(bytes) AS size`,
    now.getTime(),
    limit,
  );
  for (const { account_id: accountId, size } of removed) {
    addStored(sql, String(accountId), -chargedBytes(Number(size)));
  }
  return removed.length;
}

/** Screenshots, which are kept for an hour. */
export const screenshots = { put, get } satisfies InThread<ScreenshotStore>;
