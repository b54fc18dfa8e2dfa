import { describe, expect, test } from 'vitest';
import type { QueuedNotice } from '../../../src/domain/notice.ts';
import { at, newId, type OpenStore, withStore } from './store-harness.ts';

const LEASE_MS = 1_000;

function makeNotice(overrides: Partial<QueuedNotice> = {}): QueuedNotice {
  return {
    noticeId: newId(),
    accountId: newId(),
    subject: 'A crawler is paused',
    text: 'Its callback URL does not answer.',
    createdAt: at(0),
    dueAt: at(0),
    attempts: 0,
    ...overrides,
  };
}

/** The outbox. */
export function noticesContract(open: OpenStore): void {
  describe('notices', () => {
    test(
      'are given to one caller each when they are due, earliest first, and come back as they were',
      withStore(open, async ({ store }) => {
        const notices = [30, 10, 20].map((ms) => makeNotice({ dueAt: at(ms) }));
        for (const notice of notices) await store.notices.add(notice);
        expect(await store.notices.claim(at(9), LEASE_MS, 10)).toEqual([]);
        const [one, ...others] = await store.notices.claim(at(25), LEASE_MS, 1);
        expect(others).toEqual([]);
        expect(one).toEqual({ ...notices[1], dueAt: at(25 + LEASE_MS), attempts: 1 });
        const shares = await Promise.all(
          Array.from({ length: 8 }, () => store.notices.claim(at(40), LEASE_MS, 1)),
        );
        const ids = shares.flat().map(({ noticeId }) => noticeId);
        expect(new Set(ids).size).toBe(ids.length);
        expect(ids).not.toContain(one?.noticeId);
      }),
    );

    test(
      'are added once, due again when their claim lapses or is postponed, and gone when removed',
      withStore(open, async (bench) => {
        const notice = makeNotice();
        await bench.store.notices.add(notice);
        await bench.store.notices.add({ ...notice, text: 'another' });
        expect(await bench.store.notices.claim(at(0), LEASE_MS, 10)).toMatchObject([
          { text: notice.text, attempts: 1 },
        ]);
        expect(await bench.store.notices.claim(at(LEASE_MS - 1), LEASE_MS, 10)).toEqual([]);
        await bench.crash();
        const { notices } = bench.store;
        expect(await notices.claim(at(LEASE_MS), LEASE_MS, 10)).toMatchObject([{ attempts: 2 }]);
        await notices.postpone([notice.noticeId], at(50_000));
        expect(await notices.claim(at(49_999), LEASE_MS, 10)).toEqual([]);
        expect(await notices.claim(at(50_000), LEASE_MS, 10)).toHaveLength(1);
        await notices.remove([notice.noticeId]);
        expect(await notices.claim(at(90_000), LEASE_MS, 10)).toEqual([]);
      }),
    );
  });
}
