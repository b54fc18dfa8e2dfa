import { describe, expect, test } from 'vitest';
import { MAX_SESSIONS, type SessionCookie } from '../../../src/domain/session-cookies.ts';
import { at, type OpenStore, withStore } from './store-harness.ts';

function cookie(name: string, value = '1'): SessionCookie {
  return { name, value, domain: 'a.test', path: '/$x.y', httpOnly: true, secure: false };
}

const one = { accountId: 'one', tokenType: 'normal' } as const;
const two = { accountId: 'two', tokenType: 'normal' } as const;

const setting = (...set: SessionCookie[]) => [{ set, removed: [] }];

/** The cookies that crawls share by name. */
export function cookieSessionsContract(open: OpenStore): void {
  describe('cookie sessions', () => {
    test(
      'keep what crawls changed, for one token and name, over a restart',
      withStore(open, async (bench) => {
        const own = {
          ...cookie('a'),
          expires: 3e9,
          sameSite: 'Lax',
          origin: 'http://a.test',
        } as const;
        expect(await bench.store.cookieSessions.open(one, 's', at(0))).toEqual([]);
        await bench.store.cookieSessions.change(one, 's', setting(own, cookie('b')), at(0));
        await bench.crash();
        const { cookieSessions } = bench.store;
        expect(await cookieSessions.open(one, 's', at(1))).toEqual([own, cookie('b')]);
        expect(await cookieSessions.open(two, 's', at(1))).toEqual([]);
        expect(await cookieSessions.open(one, 't', at(1))).toEqual([]);
        const javascript = { ...one, tokenType: 'javascript' } as const;
        expect(await cookieSessions.open(javascript, 's', at(1))).toEqual([]);
        const removed = [{ set: [], removed: [own] }];
        await cookieSessions.change(one, 's', removed, at(2));
        expect(await cookieSessions.open(one, 's', at(3))).toEqual([cookie('b')]);
      }),
    );

    test(
      'lose nothing of crawls that end at the same time, each with cookies of its own',
      withStore(open, async ({ store: { cookieSessions } }) => {
        const names = Array.from({ length: 20 }, (_, n) => `c${String(n).padStart(2, '0')}`);
        await Promise.all(
          names.map((name) => cookieSessions.change(one, 's', setting(cookie(name)), at(0))),
        );
        const found = await cookieSessions.open(one, 's', at(0));
        expect(found.map(({ name }) => name).sort()).toEqual(names);
      }),
    );

    test(
      'end 300 s after their last use',
      withStore(open, async ({ store }) => {
        const { cookieSessions } = store;
        await cookieSessions.change(one, 's', setting(cookie('a')), at(0));
        expect(await cookieSessions.open(one, 's', at(299_000))).toHaveLength(1);
        expect(await cookieSessions.open(one, 's', at(598_000))).toHaveLength(1);
        await store.maintain(at(890_000));
        expect(await cookieSessions.open(one, 's', at(898_000))).toEqual([]);
        await cookieSessions.change(one, 's', setting(cookie('b')), at(898_000));
        expect(await cookieSessions.open(one, 's', at(899_000))).toEqual([cookie('b')]);
        await store.maintain(at(2_000_000));
        expect(await cookieSessions.open(one, 's', at(2_000_000))).toEqual([]);
      }),
    );

    test(
      'of an account are bounded: those that were used last stay',
      withStore(open, async ({ store: { cookieSessions } }) => {
        const change = (n: number) =>
          cookieSessions.change(one, `s${n}`, setting(cookie('a')), at(n));
        for (let n = 0; n < MAX_SESSIONS; n += 100) {
          await Promise.all(Array.from({ length: 100 }, (_, i) => change(n + i)));
        }
        const later = at(MAX_SESSIONS);
        await cookieSessions.open(one, 's0', later);
        await cookieSessions.change(two, 'other', setting(cookie('a')), at(0));
        await cookieSessions.change(one, 'last', setting(cookie('a')), later);
        expect(await cookieSessions.open(one, 's1', later)).toEqual([]);
        for (const name of ['s0', 's2', 'last']) {
          expect(await cookieSessions.open(one, name, later)).toHaveLength(1);
        }
        expect(await cookieSessions.open(two, 'other', later)).toHaveLength(1);
      }),
    );

    test(
      'go with their account',
      withStore(open, async (bench) => {
        const { accountId } = await bench.account();
        const { cookieSessions, accounts } = bench.store;
        const scope = { accountId, tokenType: 'javascript' } as const;
        await cookieSessions.change(scope, 's', setting(cookie('a')), at(0));
        await accounts.remove(accountId, at(1));
        expect(await cookieSessions.open(scope, 's', at(1))).toEqual([]);
      }),
    );
  });
}
