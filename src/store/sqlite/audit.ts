import {
  AUDIT_KEPT_MS,
  type AuditActor,
  type AuditFilter,
  type AuditRecord,
  MAX_AUDIT_RECORDS,
} from '../../domain/audit.ts';
import { toWall } from '../../domain/clock.ts';
import type { AuditStore } from '../audit-store.ts';
import { mapListing, partStart, takePart } from '../listing-cursor.ts';
import type { Listing, ListingPart } from '../listing-store.ts';
import type { InThread } from './in-thread.ts';
import { deleteSome, insertRow, matching, type Sql, type SqlRow, toDate } from './sql.ts';

function add(sql: Sql, records: readonly AuditRecord[]): void {
  for (const record of records) {
    const row = {
      audit_id: record.auditId,
      account_id: record.accountId,
      at: record.at.getTime(),
      actor: record.by,
      remote: record.remote,
      request_id: record.requestId,
      method: record.method,
      crawler: record.crawler,
      changes: record.changes,
    };
    insertRow(sql, 'audit', row, 'DO NOTHING');
  }
  for (const accountId of new Set(records.map((each) => each.accountId))) {
    sql.run(
      `DELETE FROM audit WHERE account_id = ? AND (at, audit_id) <=
        (SELECT at, audit_id FROM audit WHERE account_id = ?
          ORDER BY at DESC, audit_id DESC LIMIT 1 OFFSET ?)`,
      accountId,
      accountId,
      MAX_AUDIT_RECORDS,
    );
  }
}

function list(
  sql: Sql,
  accountId: string,
  { by, method, crawler, from, to }: AuditFilter,
  part: ListingPart,
): Listing<AuditRecord> {
  const start = partStart(part);
  const { where, values } = matching([
    ['account_id = ?', accountId],
    ['actor = ?', by],
    ['method = ?', method],
    ['crawler = ?', crawler],
    ['at >= ?', from?.getTime()],
    ['at < ?', to?.getTime()],
    ['(at, audit_id) < (?, ?)', start?.at.getTime(), start?.rid],
  ]);
  const scanned = sql.each(
    `SELECT * FROM audit WHERE ${where} ORDER BY at DESC, audit_id DESC LIMIT ?`,
    ...values,
    part.limit,
  );
  const place = (row: SqlRow) => ({ at: toDate(row.at), rid: String(row.audit_id) });
  const limits = { limit: part.limit, scan: part.limit };
  return mapListing(
    takePart(scanned, limits, () => true, place),
    toAuditRecord,
  );
}

/** The record of a row. */
export function toAuditRecord(row: SqlRow): AuditRecord {
  return {
    auditId: String(row.audit_id),
    accountId: String(row.account_id),
    at: toDate(row.at),
    by: row.actor as AuditActor,
    remote: String(row.remote),
    requestId: String(row.request_id),
    method: String(row.method),
    crawler: String(row.crawler),
    changes: String(row.changes),
  };
}

/** Removes up to `limit` records past their retention. */
export function expireAudit(sql: Sql, now: Date, limit: number): number {
  const before = toWall(sql, now).getTime() - AUDIT_KEPT_MS;
  return deleteSome(sql, limit, 'audit', 'audit_id', 'at <= ?', before);
}

/** Records of what was changed. */
export const audit = { add, list } satisfies InThread<AuditStore>;
