import { Cookie, CookieJar, MemoryCookieStore } from 'tough-cookie';
import type { Clock } from '../domain/clock.ts';
import { createLruMap } from '../domain/lru-map.ts';

/** The cookies of one crawl, or of the crawls of one session. */
export interface Cookies {
  /** The `Cookie` header's value for a URL; empty for none. */
  headerFor(url: string): string;
  /** Stores the `Set-Cookie` values of a response from `url`; those for other sites are dropped. */
  receive(url: string, setCookies: readonly string[]): void;
  /**
   * Stores `a=1; b=2` as cookies for the URL's origin alone: another port of its host, or http
   * instead of https, does not receive them. A cookie that the site sets itself replaces a given
   * one of the same name.
   */
  give(url: string, text: string): void;
}

/**
 * RFC 6265 demands room for at least 50 cookies of 4,096 bytes for each domain; browsers keep a few
 * more.
 */
const MAX_COOKIE_CHARACTERS = 4_096;
const MAX_COOKIES_PER_RESPONSE = 60;
const MAX_COOKIES = 300;
/** Most servers refuse request headers from 8 or 16 KiB on. */
const MAX_HEADER_CHARACTERS = 8_192;

/**
 * Marks a cookie that the client gave. A site cannot set this mark, because headers have no line
 * breaks.
 */
const GIVEN = 'given\n';

function givenMark(url: string): string {
  return GIVEN + (URL.parse(url)?.origin ?? '');
}

/** Makes an empty set. It is bounded, because sites decide what is put into it. */
export function createCookies(): Cookies {
  // Most crawls see no cookie, so the jar is made with the first one.
  let jar: CookieJar | undefined;
  let stored = 0;

  function store(cookie: string | Cookie, url: string): void {
    if (stored >= MAX_COOKIES) return;
    jar ??= new CookieJar(new MemoryCookieStore(), { looseMode: true });
    try {
      const kept = jar.setCookieSync(cookie, url, { ignoreError: true, loose: true });
      if (kept !== undefined) stored += 1;
    } catch {
      // Hosts such as a bare `local` can have no cookies; the jar throws for them in spite of
      // `ignoreError`.
    }
  }

  function matching(url: string): readonly Cookie[] {
    try {
      return jar?.getCookiesSync(url) ?? [];
    } catch {
      // As in `store`.
      return [];
    }
  }

  return {
    headerFor(url) {
      let header = '';
      const mark = givenMark(url);
      for (const cookie of matching(url)) {
        const given = cookie.extensions?.find((each) => each.startsWith(GIVEN));
        if (given !== undefined && given !== mark) continue;
        const pair = cookie.cookieString();
        if (header.length + pair.length + 2 > MAX_HEADER_CHARACTERS) break;
        header += header === '' ? pair : `; ${pair}`;
      }
      return header;
    },
    receive(url, setCookies) {
      for (const text of setCookies.slice(0, MAX_COOKIES_PER_RESPONSE)) {
        if (text.length <= MAX_COOKIE_CHARACTERS) store(text, url);
      }
    },
    give(url, text) {
      for (const part of text.split(';').slice(0, MAX_COOKIES_PER_RESPONSE)) {
        const [name, ...value] = part.trim().split('=');
        if (name === undefined || name === '' || part.length > MAX_COOKIE_CHARACTERS) continue;
        const extensions = [givenMark(url)];
        store(new Cookie({ key: name, value: value.join('='), path: '/', extensions }), url);
      }
    },
  };
}

/** Cookie sets that outlive a crawl. */
export interface CookieSessions {
  /**
   * The cookies of an account's session; new ones when there is no session or its last use was 300
   * s ago.
   */
  open(accountId: string, session: string): Cookies;
}

/** How long a session lasts after its last use. */
const SESSION_MS = 300_000;
const MAX_SESSIONS = 5_000;

/**
 * Makes an empty collection, in the memory of this process. Of more than 5,000 sessions the least
 * recently used ones are dropped.
 */
export function createCookieSessions(deps: { readonly clock: Clock }): CookieSessions {
  const sessions = createLruMap<string, { readonly cookies: Cookies; readonly usedAt: number }>({
    maxEntries: MAX_SESSIONS,
  });
  return {
    open(accountId, session) {
      const now = deps.clock.now().getTime();
      const key = `${accountId} ${session}`;
      const known = sessions.get(key);
      const cookies =
        known !== undefined && known.usedAt + SESSION_MS > now ? known.cookies : createCookies();
      sessions.set(key, { cookies, usedAt: now });
      // The entries are in the order of their last use, so the expired ones come first.
      for (const [oldest, { usedAt }] of sessions.entries()) {
        if (usedAt + SESSION_MS > now) break;
        sessions.delete(oldest);
      }
      return cookies;
    },
  };
}
