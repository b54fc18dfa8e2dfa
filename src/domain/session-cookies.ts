/** A cookie that the crawls of a session share. */
export interface SessionCookie {
  readonly name: string;
  readonly value: string;
  /** The host; with a dot before it, its subdomains receive the cookie, too. */
  readonly domain: string;
  readonly path: string;
  /** Seconds since 1970; undefined for a cookie that lasts as long as the session. */
  readonly expires?: number | undefined;
  readonly httpOnly: boolean;
  readonly secure: boolean;
  readonly sameSite?: 'Strict' | 'Lax' | 'None' | undefined;
  /** The only origin that receives it; undefined for a cookie that a site has set. */
  readonly origin?: string | undefined;
}

/** What tells a cookie from others. */
export type CookieKey = Pick<SessionCookie, 'name' | 'domain' | 'path'>;

/** What a crawl changed in its session. */
export interface CookieChanges {
  readonly set: readonly SessionCookie[];
  readonly removed: readonly CookieKey[];
}

/** How long a session lasts after its last use. */
export const SESSION_MS = 300_000;
/** Of more sessions of an account, those that were used last are kept. */
export const MAX_SESSIONS = 1_000;
/** Of more cookies in a session, or of more text, those that were set last are kept. */
const MAX_COOKIES = 300;
const MAX_CHARACTERS = 65_536;
/** What a cookie counts for in addition to its texts. */
const COOKIE_OVERHEAD = 50;
/** Sites extend a cookie with each response; it is stored again when that is worth a write. */
const SAME_EXPIRY_SECONDS = 60;

/**
 * The cookies after the changes of some crawls, one after the other, at the time `now`. Of each
 * cookie the last change counts; cookies that no crawl changed stay.
 */
export function mergeCookies(
  before: readonly SessionCookie[],
  changes: readonly CookieChanges[],
  now: Date,
): SessionCookie[] {
  const cookies = keyed(before);
  for (const { removed, set } of changes) {
    for (const cookie of removed) cookies.delete(cookieKey(cookie));
    for (const cookie of set) {
      const key = cookieKey(cookie);
      // Deleted first, so that it is the last of them.
      cookies.delete(key);
      cookies.set(key, cookie);
    }
  }
  const seconds = now.getTime() / 1_000;
  let left = MAX_CHARACTERS;
  return Array.from(cookies.values())
    .filter(({ expires }) => expires === undefined || expires > seconds)
    .slice(-MAX_COOKIES)
    .reverse()
    .filter((cookie) => {
      const { name, value, domain, path } = cookie;
      left -= name.length + value.length + domain.length + path.length + COOKIE_OVERHEAD;
      return left >= 0;
    })
    .reverse();
}

/** What changed from the cookies of one moment to those of another; undefined for nothing. */
export function cookieChanges(
  before: readonly SessionCookie[],
  after: readonly SessionCookie[],
): CookieChanges | undefined {
  const old = keyed(before);
  const left = keyed(after);
  const removed = before.filter((cookie) => !left.has(cookieKey(cookie)));
  const set = after.filter((cookie) => !isSame(old.get(cookieKey(cookie)), cookie));
  return set.length === 0 && removed.length === 0 ? undefined : { set, removed };
}

function keyed(cookies: readonly SessionCookie[]): Map<string, SessionCookie> {
  return new Map(cookies.map((cookie) => [cookieKey(cookie), cookie]));
}

/** A key by which cookies can be looked up. */
export function cookieKey({ name, domain, path }: CookieKey): string {
  return JSON.stringify([name, domain, path]);
}

function isSame(old: SessionCookie | undefined, cookie: SessionCookie): boolean {
  if (old === undefined || old.value !== cookie.value || old.secure !== cookie.secure) return false;
  const { expires: before = Infinity } = old;
  const { expires: after = Infinity } = cookie;
  return before === after || Math.abs(before - after) < SAME_EXPIRY_SECONDS;
}
