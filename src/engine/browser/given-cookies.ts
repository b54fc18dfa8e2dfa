import type { HeaderPair } from '../../domain/job.ts';
import { cookieKey, type SessionCookie } from '../../domain/session-cookies.ts';
import type { BrowserPage } from './running-browser.ts';

/**
 * Cookies that a client gave for one origin. For a browser cookies belong to a host, so they are
 * withheld from other ports and schemes of it.
 */
export interface GivenCookies {
  /** Adds cookies that have an `origin`. */
  add(cookies: readonly SessionCookie[]): void;
  /** Whether there are any for another origin of the URL's host. */
  areWithheldFrom(url: string): boolean;
  /** The headers of a request without them. */
  withhold(headers: readonly HeaderPair[]): HeaderPair[];
  /** Takes them out of the page, before a document of another origin could read them. */
  remove(): Promise<void>;
  /** The cookies of a page, with those that are given marked, and those that were taken out. */
  mark(cookies: readonly SessionCookie[]): SessionCookie[];
}

/** Makes a set without cookies for a page. */
export function createGivenCookies(page: BrowserPage): GivenCookies {
  const given = new Map<string, SessionCookie>();
  const removed = new Map<string, SessionCookie>();

  /** The given cookie that this one is; a site that sets it itself gives it another value. */
  const asGiven = (cookie: SessionCookie): SessionCookie | undefined => {
    const found = given.get(cookieKey(cookie));
    return found?.value === cookie.value ? found : undefined;
  };

  return {
    add(cookies) {
      for (const cookie of cookies) given.set(cookieKey(cookie), cookie);
    },
    areWithheldFrom(url) {
      if (given.size === 0) return false;
      const { origin, hostname } = URL.parse(url) ?? {};
      return given.values().some((each) => each.domain === hostname && each.origin !== origin);
    },
    withhold(headers) {
      const pairs = new Set(given.values().map(({ name, value }) => `${name}=${value}`));
      return headers.flatMap(([name, value]): HeaderPair[] => {
        if (name.toLowerCase() !== 'cookie') return [[name, value]];
        const left = value.split('; ').filter((pair) => !pairs.has(pair));
        return left.length === 0 ? [] : [[name, left.join('; ')]];
      });
    },
    async remove() {
      for (const cookie of given.values()) {
        const { name, domain, path } = cookie;
        removed.set(cookieKey(cookie), cookie);
        await page.send('Network.deleteCookies', { name, domain, path });
      }
    },
    mark(cookies) {
      const marked = cookies.map((each) => asGiven(each) ?? each);
      const there = new Set(marked.map(cookieKey));
      return [...marked, ...removed.values().filter((each) => !there.has(cookieKey(each)))];
    },
  };
}
