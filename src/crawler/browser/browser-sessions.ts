import type { Cookie } from 'playwright-core';
import type { Clock } from '../../domain/clock.ts';

const KEPT_MS = 300_000;
const MAX_SESSIONS = 1_000;

/** Cookies that browser crawls with the same `cookies_session` share, until 300 s after the last. */
export interface BrowserSessions {
  cookies(accountId: string, name: string): readonly Cookie[];
  keep(accountId: string, name: string, cookies: readonly Cookie[]): void;
}

/** Makes an empty set, in memory. */
export function createBrowserSessions(deps: { readonly clock: Clock }): BrowserSessions {
  const sessions = new Map<string, { cookies: readonly Cookie[]; until: number }>();
  const now = (): number => deps.clock.now().getTime();
  return {
    cookies(accountId, name) {
      const session = sessions.get(`${accountId} ${name}`);
      return session === undefined || session.until <= now() ? [] : session.cookies;
    },
    keep(accountId, name, cookies) {
      const key = `${accountId} ${name}`;
      sessions.delete(key);
      sessions.set(key, { cookies, until: now() + KEPT_MS });
      const oldest = sessions.keys().next();
      if (sessions.size > MAX_SESSIONS && oldest.done !== true) sessions.delete(oldest.value);
    },
  };
}
