import { describe, expect, test } from 'vitest';
import { AUDIT_KEPT_MS, type AuditRecord, MAX_AUDIT_RECORDS } from '../../../src/domain/audit.ts';
import type { ListingPart } from '../../../src/store/store.ts';
import { at, newId, type OpenStore, withStore } from './store-harness.ts';

function makeRecord(overrides: Partial<AuditRecord> = {}): AuditRecord {
  return {
    auditId: newId(),
    accountId: 'a',
    at: at(0),
    by: 'normal',
    remote: '192.0.2.1',
    requestId: 'r',
    method: 'UpdateCrawler',
    crawler: 'shop',
    changes: '{"concurrency":7}',
    ...overrides,
  };
}

/** Records of what was changed. */
export function auditContract(open: OpenStore): void {
  describe('audit records', () => {
    test(
      'come newest first, by who, what, crawler and time, in parts; once each, also after a crash',
      withStore(open, async (bench) => {
        const { audit } = bench.store;
        const records = [
          makeRecord(),
          makeRecord({ at: at(1), by: 'operator', method: 'RotateToken', crawler: '' }),
          makeRecord({ at: at(2), by: 'javascript' }),
          makeRecord({ at: at(2), crawler: 'news' }),
        ];
        await audit.add(records);
        await audit.add([{ ...records[0], method: 'x' } as AuditRecord]);
        await audit.add([makeRecord({ accountId: 'b' })]);
        await bench.crash();
        const list = async (filter: object, part: ListingPart = { limit: 9 }) =>
          bench.store.audit.list('a', filter, part);
        const { rows, cursor } = await list({});
        expect(cursor).toBeUndefined();
        expect(rows.slice(2)).toEqual([records[1], records[0]]);
        expect(new Set(rows.slice(0, 2))).toEqual(new Set(records.slice(2)));
        const ids = async (filter: object) =>
          (await list(filter)).rows.map(({ auditId }) => auditId);
        const id = (n: number) => records[n]?.auditId;
        expect(await ids({ by: 'operator' })).toEqual([id(1)]);
        expect(await ids({ method: 'RotateToken' })).toEqual([id(1)]);
        expect(await ids({ crawler: 'news' })).toEqual([id(3)]);
        expect(await ids({ from: at(1), to: at(2) })).toEqual([id(1)]);
        const first = await list({}, { limit: 3 });
        const second = await list({}, { limit: 3, cursor: first.cursor ?? '' });
        expect([...first.rows, ...second.rows]).toEqual(rows);
        await expect(list({}, { limit: 3, cursor: 'x' })).rejects.toThrow('page_token');
      }),
    );

    test(
      'are the latest of each account',
      withStore(open, async ({ store: { audit } }) => {
        await audit.add([makeRecord({ accountId: 'b' })]);
        const many = Array.from({ length: MAX_AUDIT_RECORDS + 3 }, (_, n) =>
          makeRecord({ at: at(n) }),
        );
        await audit.add(many);
        expect((await audit.list('a', { to: at(3) }, { limit: 9 })).rows).toEqual([]);
        expect((await audit.list('a', { to: at(4) }, { limit: 9 })).rows).toEqual([many[3]]);
        expect((await audit.list('b', {}, { limit: 9 })).rows).toHaveLength(1);
      }),
    );

    test(
      'are kept for ninety days',
      withStore(open, async ({ store }) => {
        // MongoDB expires them by its own clock, so this is of now.
        const now = Date.now();
        const kept = makeRecord({ at: new Date(now) });
        await store.audit.add([kept]);
        await store.maintain(new Date(now + AUDIT_KEPT_MS - 60_000));
        expect((await store.audit.list('a', {}, { limit: 9 })).rows).toEqual([kept]);
      }),
    );
  });
}
