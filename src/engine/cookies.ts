import { Cookie, CookieJar, MemoryCookieStore } from 'tough-cookie';
import type { Clock } from '../domain/clock.ts';
import { createLruMap } from '../domain/lru-map.ts';

/** The cookies of one crawl, or of the crawls of one session. */
export interface Cookies {
  /** The `Cookie` header's value for a URL; empty for none. */
  headerFor(url: string): string;
  /**
   * Takes the `Set-Cookie` values of an answer from `url`; those that do not belong to it are
   * dropped.
   */
  receive(url: string, setCookies: readonly string[]): void;
  /**
   * Takes `a=1; b=2` as cookies of the URL's origin alone: another port of its host, or plain HTTP
   * after https, does not get them. One that the site sets anew is the site's own from then on.
   */
  give(url: string, text: string): void;
}

/**
 * RFC 6265 asks for at least 50 cookies of 4,096 bytes for each domain; browsers keep somewhat
 * more.
 */
const MAX_COOKIE_CHARACTERS = 4_096;
const MAX_COOKIES_PER_ANSWER = 60;
const MAX_COOKIES = 300;
/** Servers refuse longer request headers, most from 8 or 16 KiB on. */
const MAX_HEADER_CHARACTERS = 8_192;

/** Marks a cookie that the client gave; a site cannot, because it sends no line breaks. */
const GIVEN = 'given\n';

function givenTo(url: string): string {
  return GIVEN + (URL.parse(url)?.origin ?? '');
}

/** Makes an empty set; it is bounded, because what fills it is whatever a site sends. */
export function createCookies(): Cookies {
  // Most crawls meet no cookie, so the jar is made when the first comes.
  let jar: CookieJar | undefined;
  let taken = 0;

  function take(cookie: string | Cookie, url: string): void {
    if (taken >= MAX_COOKIES) return;
    jar ??= new CookieJar(new MemoryCookieStore(), { looseMode: true });
    try {
      const kept = jar.setCookieSync(cookie, url, { ignoreError: true, loose: true });
      if (kept !== undefined) taken += 1;
    } catch {
      // Hosts such as a bare `local` can have no cookies, and the jar throws for them whatever it
      // was told to ignore.
    }
  }

  function cookiesFor(url: string): readonly Cookie[] {
    try {
      return jar?.getCookiesSync(url) ?? [];
    } catch {
      // The same hosts.
      return [];
    }
  }

  return {
    headerFor(url) {
      let header = '';
      const mark = givenTo(url);
      for (const cookie of cookiesFor(url)) {
        const given = cookie.extensions?.find((each) => each.startsWith(GIVEN));
        if (given !== undefined && given !== mark) continue;
        const pair = cookie.cookieString();
        if (header.length + pair.length + 2 > MAX_HEADER_CHARACTERS) break;
        header += header === '' ? pair : `; ${pair}`;
      }
      return header;
    },
    receive(url, setCookies) {
      for (const text of setCookies.slice(0, MAX_COOKIES_PER_ANSWER)) {
        if (text.length <= MAX_COOKIE_CHARACTERS) take(text, url);
      }
    },
    give(url, text) {
      for (const part of text.split(';').slice(0, MAX_COOKIES_PER_ANSWER)) {
        const [name, ...value] = part.trim().split('=');
        if (name === undefined || name === '' || part.length > MAX_COOKIE_CHARACTERS) continue;
        const extensions = [givenTo(url)];
        take(new Cookie({ key: name, value: value.join('='), path: '/', extensions }), url);
      }
    },
  };
}

/** Cookie sets that outlive a crawl. */
export interface CookieSessions {
  /** The set of an account's session; new when there is none, or when its last use is 300 s ago. */
  open(accountId: string, session: string): Cookies;
}

/** How long a session lasts after its last use. */
const SESSION_MS = 300_000;
const MAX_SESSIONS = 5_000;

/**
 * Makes an empty collection, in this process's memory. Of more than 5,000 sessions the least
 * recently used are dropped.
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
