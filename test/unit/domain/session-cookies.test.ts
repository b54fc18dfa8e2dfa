import { describe, expect, test } from 'vitest';
import {
  cookieChanges,
  mergeCookies,
  type SessionCookie,
} from '../../../src/domain/session-cookies.ts';

const now = new Date(1_000_000);

function cookie(name: string, more: Partial<SessionCookie> = {}): SessionCookie {
  return {
    name,
    value: '1',
    domain: 'a.test',
    path: '/',
    httpOnly: false,
    secure: false,
    ...more,
  };
}

const namesOf = (cookies: readonly SessionCookie[]) => cookies.map(({ name }) => name);

describe('the cookies of a session', () => {
  test('are told apart by name, domain and path; the last change of each counts', () => {
    const before = [cookie('a'), cookie('a', { path: '/x' }), cookie('a', { domain: '.a.test' })];
    const first = { set: [cookie('a', { value: '2' })], removed: [cookie('a', { path: '/x' })] };
    const second = { set: [cookie('a', { value: '3' }), cookie('b')], removed: [] };
    const values = mergeCookies(before, [first, second], now).map(({ domain, name, value }) => [
      domain,
      name,
      value,
    ]);
    expect(values).toEqual([
      ['.a.test', 'a', '1'],
      ['a.test', 'a', '3'],
      ['a.test', 'b', '1'],
    ]);
  });

  test('are gone when their time is over', () => {
    const set = [cookie('past', { expires: 999 }), cookie('future', { expires: 1_001 })];
    expect(namesOf(mergeCookies([], [{ set, removed: [] }], now))).toEqual(['future']);
  });

  test('are bounded in number and in text: the newest stay', () => {
    const many = Array.from({ length: 400 }, (_, n) => cookie(`c${n}`));
    const kept = namesOf(mergeCookies([], [{ set: many, removed: [] }], now));
    expect([kept.length, kept.at(-1)]).toEqual([300, 'c399']);
    const large = Array.from({ length: 40 }, (_, n) =>
      cookie(`c${n}`, { value: 'x'.repeat(4_000) }),
    );
    const few = namesOf(mergeCookies([], [{ set: large, removed: [] }], now));
    expect([few.length, few.at(-1)]).toEqual([16, 'c39']);
  });
});

describe('the changes of a crawl', () => {
  test('are empty when all stayed, or when cookies were only extended by a little', () => {
    const lasting = cookie('a', { expires: 5_000 });
    expect(cookieChanges([lasting, cookie('b')], [lasting, cookie('b')])).toBeUndefined();
    expect(cookieChanges([lasting], [{ ...lasting, expires: 5_030 }])).toBeUndefined();
  });

  test('are new values, cookies extended by more, and cookies that are gone', () => {
    const lasting = cookie('a', { expires: 5_000 });
    const later = { ...lasting, expires: 9_000 };
    const other = cookie('b', { value: '2' });
    expect(cookieChanges([lasting, cookie('b'), cookie('c')], [later, other])).toEqual({
      set: [later, other],
      removed: [cookie('c')],
    });
  });
});
