import { MAX_AUDIT_RECORDS } from '../../domain/audit.ts';
import { defined } from '../../domain/defined.ts';
import type { AuditStore } from '../audit-store.ts';
import type { AuditDocument, Collections } from './collections.ts';
import { readPart } from './read-part.ts';

const NEWEST = { at: -1, _id: -1 } as const;

/** Records of what was changed. The server removes them past their retention. */
export function createAudit({ audit }: Pick<Collections, 'audit'>): AuditStore {
  async function removeOldest(accountId: string): Promise<void> {
    const which = { projection: { at: 1 }, sort: NEWEST, skip: MAX_AUDIT_RECORDS } as const;
    const last = await audit.findOne({ accountId }, which);
    if (last === null) return;
    const { at, _id } = last;
    const older = [{ at: { $lt: at } }, { at, _id: { $lte: _id } }];
    await audit.deleteMany({ accountId, $or: older });
  }

  return {
    async add(records) {
      if (records.length === 0) return;
      await audit.bulkWrite(
        records.map(({ auditId: _id, ...record }) => ({
          updateOne: { filter: { _id }, update: { $setOnInsert: record }, upsert: true },
        })),
        { ordered: false },
      );
      for (const accountId of new Set(records.map((each) => each.accountId))) {
        await removeOldest(accountId);
      }
    },

    async list(accountId, { from, to, ...filter }, part) {
      const range = defined({ $gte: from, $lt: to });
      const at = Object.keys(range).length === 0 ? {} : { at: range };
      return readPart(audit, { accountId, ...filter, ...at }, part, {
        field: 'at',
        direction: -1,
        toRow: ({ _id: auditId, ...record }: AuditDocument) => ({ auditId, ...record }),
      });
    },
  };
}
