import { Cookie, CookieJar, MemoryCookieStore } from 'tough-cookie';
import { defined } from '../domain/defined.ts';
import type { SessionCookie } from '../domain/session-cookies.ts';

/** The cookies of one crawl. */
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
  /** All of them, for the session of the crawl. */
  all(): readonly SessionCookie[];
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

/**
 * Makes a set of the cookies of a session, by default an empty one. It is bounded, because sites
 * decide what is put into it.
 */
export function createCookies(session: readonly SessionCookie[] = []): Cookies {
  // Most crawls see no cookie, so the jar is made with the first one.
  let jar: { readonly cookies: CookieJar; readonly store: MemoryCookieStore } | undefined;
  let stored = 0;

  function openJar(): NonNullable<typeof jar> {
    if (jar !== undefined) return jar;
    const store = new MemoryCookieStore();
    jar = { cookies: new CookieJar(store, { looseMode: true }), store };
    return jar;
  }

  function store(cookie: string | Cookie, url: string): void {
    if (stored >= MAX_COOKIES) return;
    const { cookies } = openJar();
    try {
      const kept = cookies.setCookieSync(cookie, url, { ignoreError: true, loose: true });
      if (kept !== undefined) stored += 1;
    } catch {
      // Hosts such as a bare `local` can have no cookies; the jar throws for them in spite of
      // `ignoreError`.
    }
  }

  function matching(url: string): readonly Cookie[] {
    try {
      return jar?.cookies.getCookiesSync(url) ?? [];
    } catch {
      // As in `store`.
      return [];
    }
  }

  for (const cookie of session) openJar().store.putCookie(toJarCookie(cookie), ignoreStored);

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
    all() {
      let all: readonly Cookie[] = [];
      jar?.store.getAllCookies((_error, found) => {
        all = found ?? [];
      });
      return all.map(toSessionCookie);
    },
  };
}

function toJarCookie(cookie: SessionCookie): Cookie {
  const { name, value, domain, path, expires, httpOnly, secure, sameSite, origin } = cookie;
  const isHostOnly = !domain.startsWith('.');
  return new Cookie({
    key: name,
    value,
    domain: isHostOnly ? domain : domain.slice(1),
    hostOnly: isHostOnly,
    path,
    expires: expires === undefined ? 'Infinity' : new Date(expires * 1_000),
    httpOnly,
    secure,
    extensions: origin === undefined ? null : [GIVEN + origin],
    ...defined({ sameSite: sameSite?.toLowerCase() }),
  });
}

const SAME_SITE = new Map([
  ['strict', 'Strict'],
  ['lax', 'Lax'],
  ['none', 'None'],
] as const);

function toSessionCookie(cookie: Cookie): SessionCookie {
  const { key: name, value, path, httpOnly, secure, sameSite, extensions } = cookie;
  const given = extensions?.find((each) => each.startsWith(GIVEN));
  const created = cookie.creation instanceof Date ? cookie.creation : undefined;
  const expires = cookie.expiryTime(created) ?? Infinity;
  return {
    name,
    value,
    domain: `${cookie.hostOnly === false ? '.' : ''}${cookie.domain ?? ''}`,
    path: path ?? '/',
    httpOnly,
    secure,
    ...defined({
      expires: expires === Infinity ? undefined : Math.round(expires / 1_000),
      sameSite: SAME_SITE.get(sameSite as 'lax'),
      origin: given?.slice(GIVEN.length),
    }),
  };
}

function ignoreStored(): void {
  // The store is in memory: nothing can fail.
}
