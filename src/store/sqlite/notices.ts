import type { QueuedNotice } from '../../domain/notice.ts';
import { EPISODE_GAP_MS } from '../rules.ts';
import type { Episode, NoticeStore } from '../store.ts';
import type { InThread } from './in-thread.ts';
import { insertRow, placeholders, type Sql, type SqlRow, toDate } from './sql.ts';

/** The notice of a row. */
export function toNotice(row: SqlRow): QueuedNotice {
  return {
    noticeId: String(row.notice_id),
    accountId: String(row.account_id),
    subject: String(row.subject),
    text: String(row.text),
    createdAt: toDate(row.created_at),
    dueAt: toDate(row.due_at),
    attempts: Number(row.attempts),
  };
}

function add(sql: Sql, notice: QueuedNotice): void {
  const row = {
    notice_id: notice.noticeId,
    account_id: notice.accountId,
    subject: notice.subject,
    text: notice.text,
    created_at: notice.createdAt.getTime(),
    due_at: notice.dueAt.getTime(),
    attempts: notice.attempts,
  };
  insertRow(sql, 'notices', row, 'DO NOTHING');
}

function claim(sql: Sql, now: Date, leaseMs: number, limit: number): QueuedNotice[] {
  return sql
    .all(
      `UPDATE notices SET due_at = ?, attempts = attempts + 1 WHERE notice_id IN
        (SELECT notice_id FROM notices WHERE due_at <= ? ORDER BY due_at, notice_id LIMIT ?)
        RETURNING *`,
      now.getTime() + leaseMs,
      now.getTime(),
      limit,
    )
    .map(toNotice);
}

function remove(sql: Sql, noticeIds: readonly string[]): void {
  sql.run(`DELETE FROM notices WHERE notice_id IN (${placeholders(noticeIds)})`, ...noticeIds);
}

function postpone(sql: Sql, noticeIds: readonly string[], dueAt: Date): void {
  sql.run(
    `UPDATE notices SET due_at = ? WHERE notice_id IN (${placeholders(noticeIds)})`,
    dueAt.getTime(),
    ...noticeIds,
  );
}

function lasting(sql: Sql, keys: readonly string[], now: Date): Episode[] {
  const nowMs = now.getTime();
  const over = 'seen_at < ? - iif(told = 1, ?, ?)';
  sql.run(`DELETE FROM episodes WHERE ${over}`, nowMs, EPISODE_GAP_MS.told, EPISODE_GAP_MS.untold);
  return keys.map((key) => {
    insertRow(
      sql,
      'episodes',
      { key, since: nowMs, seen_at: nowMs },
      '(key) DO UPDATE SET seen_at = excluded.seen_at',
    );
    const row = sql.get('SELECT since, told FROM episodes WHERE key = ?', key);
    return { key, since: toDate(row?.since ?? nowMs), told: row?.told === 1 };
  });
}

function told(sql: Sql, keys: readonly string[]): void {
  sql.run(`UPDATE episodes SET told = 1 WHERE key IN (${placeholders(keys)})`, ...keys);
}

/** Notices to owners of accounts that are not sent yet. */
export const notices = {
  add,
  claim,
  remove,
  postpone,
  lasting,
  told,
} satisfies InThread<NoticeStore>;
