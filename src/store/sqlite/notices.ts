import type { QueuedNotice } from '../../domain/notice.ts';
import { dateOf, marks, type Sql, type SqlRow } from './sql.ts';

/** A notice of its row. */
export function toNotice(row: SqlRow): QueuedNotice {
  return {
    noticeId: String(row.notice_id),
    accountId: String(row.account_id),
    subject: String(row.subject),
    text: String(row.text),
    createdAt: dateOf(row.created_at),
    dueAt: dateOf(row.due_at),
    attempts: Number(row.attempts),
  };
}

function add(sql: Sql, notice: QueuedNotice): void {
  sql.run(
    `INSERT INTO notices (notice_id, account_id, subject, text, created_at, due_at, attempts)
      VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
    notice.noticeId,
    notice.accountId,
    notice.subject,
    notice.text,
    notice.createdAt.getTime(),
    notice.dueAt.getTime(),
    notice.attempts,
  );
}

function claim(sql: Sql, now: Date, leaseMs: number, limit: number): QueuedNotice[] {
  return sql
    .all(
      `UPDATE notices SET due_at = ?, attempts = attempts + 1 WHERE notice_id IN
        (SELECT notice_id FROM notices WHERE due_at <= ? ORDER BY due_at, notice_id LIMIT ?) RETURNING *`,
      now.getTime() + leaseMs,
      now.getTime(),
      limit,
    )
    .map(toNotice);
}

function remove(sql: Sql, noticeIds: readonly string[]): void {
  sql.run(`DELETE FROM notices WHERE notice_id IN (${marks(noticeIds)})`, ...noticeIds);
}

function postpone(sql: Sql, noticeIds: readonly string[], dueAt: Date): void {
  sql.run(
    `UPDATE notices SET due_at = ? WHERE notice_id IN (${marks(noticeIds)})`,
    dueAt.getTime(),
    ...noticeIds,
  );
}

/** Messages to owners of accounts that are not sent yet. */
export const notices = { add, claim, remove, postpone };
