import type { Protocol } from 'devtools-protocol';
import type { Clock } from '../../domain/clock.ts';
import { createLruMap } from '../../domain/lru-map.ts';

const KEPT_MS = 300_000;
const MAX_SESSIONS = 1_000;

/** A cookie of a browser. */
export type BrowserCookie = Protocol.Network.Cookie;

/**
 * Cookies that browser crawls with the same `cookies_session` share, until 300 s after the last
 * crawl.
 */
export interface BrowserSessions {
  cookies(accountId: string, name: string): readonly BrowserCookie[];
  /**
   * Stores the changes of a crawl that started with the cookies `before`. Only changes, because
   * other crawls may have changed other cookies meanwhile.
   */
  keep(
    accountId: string,
    name: string,
    before: readonly BrowserCookie[],
    after: readonly BrowserCookie[],
  ): void;
}

/** Makes an empty set, in memory. */
export function createBrowserSessions(deps: { readonly clock: Clock }): BrowserSessions {
  const sessions = createLruMap<string, { cookies: readonly BrowserCookie[]; until: number }>({
    maxEntries: MAX_SESSIONS,
  });
  const now = (): number => deps.clock.now().getTime();

  function sessionCookies(key: string): readonly BrowserCookie[] {
    const session = sessions.get(key);
    return session === undefined || session.until <= now() ? [] : session.cookies;
  }

  return {
    cookies: (accountId, name) => sessionCookies(`${accountId} ${name}`),
    keep(accountId, name, before, after) {
      const key = `${accountId} ${name}`;
      const kept = new Map(sessionCookies(key).map((cookie) => [cookieKey(cookie), cookie]));
      const values = new Map(before.map((cookie) => [cookieKey(cookie), cookie.value]));
      const left = new Set(after.map(cookieKey));
      for (const cookie of before) if (!left.has(cookieKey(cookie))) kept.delete(cookieKey(cookie));
      for (const cookie of after) {
        if (values.get(cookieKey(cookie)) !== cookie.value) kept.set(cookieKey(cookie), cookie);
      }
      sessions.set(key, { cookies: [...kept.values()], until: now() + KEPT_MS });
    },
  };
}

function cookieKey({ name, domain, path }: BrowserCookie): string {
  return `${name} ${domain} ${path}`;
}
