import { expect, test } from 'vitest';
import {
  type ConsoleSessions,
  createConsoleSessions,
  IDLE_MS,
  LONGEST_MS,
  TOKEN_HEADER,
} from '../../../src/console-session/console-sessions.ts';
import { createSessionSeal } from '../../../src/console-session/sealed-session.ts';
import type { AnyRequest } from '../../../src/http/node-http.ts';
import type { Authenticator } from '../../../src/service/accounts/authenticate.ts';
import { createFrozenClock } from '../../support/test-clock.ts';

const seal = createSessionSeal('secret');
const authenticator = {
  isAdmin: (token: string) => token === 'the-admin',
  authenticate: () => Promise.reject(new Error('not asked')),
} as unknown as Authenticator;

const request = (cookie: string, headers: Record<string, string> = {}): AnyRequest =>
  ({ method: 'GET', headers: { cookie, ...headers }, socket: {} }) as unknown as AnyRequest;

/** The token that a session gives to a call. */
function tokenOf(sessions: ConsoleSessions, cookie: string, more: Record<string, string> = {}) {
  const call = request(cookie, { [TOKEN_HEADER]: 'admin', ...more });
  sessions.authorize(call);
  return call.headers.authorization;
}

test('a session ends when it is not renewed, and at its longest in any case', async () => {
  const clock = createFrozenClock();
  const sessions = createConsoleSessions({ authenticator, seal, clock, isPublicTls: () => false });
  const now = clock.now().getTime();
  const sealed = seal.seal({ tokens: { admin: 'the-admin' }, since: now, used: now });
  let cookie = `other=1; ${seal.cookieName}=${sealed}`;
  expect(tokenOf(sessions, cookie)).toBe('Bearer the-admin');
  clock.advance(IDLE_MS - 1);
  expect(tokenOf(sessions, cookie)).toBe('Bearer the-admin');
  clock.advance(1);
  expect(tokenOf(sessions, cookie)).toBeUndefined();

  clock.advance(-1);
  let renewals = 0;
  for (; renewals < 100; renewals += 1) {
    const reply = await sessions.answer(request(cookie));
    const { tokens } = JSON.parse(reply.body as string) as { tokens: string[] };
    cookie = reply.headers['set-cookie']?.split(';')[0] ?? '';
    if (tokens.length === 0) break;
    clock.advance(IDLE_MS / 2);
  }
  expect(clock.now().getTime() - now).toBeGreaterThanOrEqual(LONGEST_MS);
  expect(clock.now().getTime() - now).toBeLessThan(LONGEST_MS + IDLE_MS);
});

test('a call gets a token only where it names one, brings none, and is of the own origin', () => {
  const clock = createFrozenClock();
  const sessions = createConsoleSessions({ authenticator, seal, clock, isPublicTls: () => false });
  const now = clock.now().getTime();
  const sealed = seal.seal({ tokens: { admin: 'the-admin' }, since: now, used: now });
  const cookie = `${seal.cookieName}=${sealed}`;
  const bare = request(cookie);
  sessions.authorize(bare);
  expect(bare.headers.authorization).toBeUndefined();
  expect(tokenOf(sessions, cookie, { [TOKEN_HEADER]: 'normal' })).toBeUndefined();
  expect(tokenOf(sessions, cookie, { authorization: 'Bearer own' })).toBe('Bearer own');
  expect(tokenOf(sessions, cookie, { 'sec-fetch-site': 'same-origin' })).toBe('Bearer the-admin');
  for (const site of ['cross-site', 'same-site']) {
    expect(tokenOf(sessions, cookie, { 'sec-fetch-site': site })).toBeUndefined();
  }
});

test('the place of a token in a path gets the token of an account only', () => {
  const clock = createFrozenClock();
  const sessions = createConsoleSessions({ authenticator, seal, clock, isPublicTls: () => false });
  const now = clock.now().getTime();
  const tokens = { normal: 'the-normal', admin: 'the-admin' };
  const cookie = `${seal.cookieName}=${seal.seal({ tokens, since: now, used: now })}`;
  const urlOf = (kind: string, url: string) => {
    const call = request(cookie, { [TOKEN_HEADER]: kind });
    call.url = url;
    sessions.authorize(call);
    return call.url;
  };
  expect(urlOf('normal', '/crawler/-/shop')).toBe('/crawler/the-normal/shop');
  // Its second part is the name of an account, which is in the log and in the reply.
  expect(urlOf('admin', '/accounts/-')).toBe('/accounts/-');
  expect(urlOf('constructor', '/crawler/-/shop')).toBe('/crawler/-/shop');
});

test('only what the seal has made is a session', () => {
  const session = { tokens: { normal: 'a-token' }, since: 1, used: 2 };
  const sealed = seal.seal(session);
  expect(sealed).not.toContain('token');
  expect(seal.open(sealed)).toEqual(session);
  expect(createSessionSeal('other').open(sealed)).toBeUndefined();
  for (const changed of ['', 'AAAA', sealed.slice(1), `A${sealed.slice(1)}`, 'A'.repeat(5_000)]) {
    expect(changed === sealed ? undefined : seal.open(changed)).toBeUndefined();
  }
});
