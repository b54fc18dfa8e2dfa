import { toWall } from '../../domain/clock.ts';
import {
  type CookieChanges,
  MAX_SESSIONS,
  mergeCookies,
  SESSION_MS,
  type SessionCookie,
} from '../../domain/session-cookies.ts';
import type { CookieSessionStore, ResultScope } from '../store.ts';
import type { InThread } from './in-thread.ts';
import { deleteSome, insertRow, type Sql } from './sql.ts';

function read(sql: Sql, scope: ResultScope, name: string, now: Date): SessionCookie[] | undefined {
  const row = sql.get(
    'SELECT cookies FROM cookie_sessions WHERE account_id = ? AND token_type = ? AND name = ? AND used_at > ?',
    scope.accountId,
    scope.tokenType,
    name,
    now.getTime() - SESSION_MS,
  );
  return row === undefined ? undefined : JSON.parse(String(row.cookies));
}

function open(sql: Sql, scope: ResultScope, name: string, now: Date): SessionCookie[] {
  const cookies = read(sql, scope, name, now);
  if (cookies === undefined) return [];
  sql.run(
    'UPDATE cookie_sessions SET used_at = max(used_at, ?) WHERE account_id = ? AND token_type = ? AND name = ?',
    now.getTime(),
    scope.accountId,
    scope.tokenType,
    name,
  );
  return mergeCookies(cookies, [], toWall(sql, now));
}

function change(
  sql: Sql,
  scope: ResultScope,
  name: string,
  changes: readonly CookieChanges[],
  now: Date,
): void {
  const before = read(sql, scope, name, now);
  insertRow(
    sql,
    'cookie_sessions',
    {
      account_id: scope.accountId,
      token_type: scope.tokenType,
      name,
      cookies: JSON.stringify(mergeCookies(before ?? [], changes, toWall(sql, now))),
      used_at: now.getTime(),
    },
    '(account_id, token_type, name) DO UPDATE SET cookies = excluded.cookies, used_at = max(used_at, excluded.used_at)',
  );
  if (before !== undefined) return;
  sql.run(
    `DELETE FROM cookie_sessions WHERE rowid IN (SELECT rowid FROM cookie_sessions
      WHERE account_id = ? ORDER BY used_at DESC LIMIT -1 OFFSET ?)`,
    scope.accountId,
    MAX_SESSIONS,
  );
}

/** Removes a bounded number of sessions past their time. Returns how many it removed. */
export function sweepSessions(sql: Sql, now: Date, limit: number): number {
  const before = now.getTime() - SESSION_MS;
  return deleteSome(sql, limit, 'cookie_sessions', 'rowid', 'used_at <= ?', before);
}

/** The cookies of sessions. */
export const cookieSessions = { open, change } satisfies InThread<CookieSessionStore>;
