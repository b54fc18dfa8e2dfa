import type { Protocol } from 'devtools-protocol';
import { defined } from '../../domain/defined.ts';
import type { SessionCookie } from '../../domain/session-cookies.ts';
import { CdpError } from './cdp-connection.ts';
import type { BrowserPage } from './running-browser.ts';

/** The cookies of `set_cookies`, which are for the origin of `start`. */
export function parseGivenCookies(start: URL, given = ''): SessionCookie[] {
  const { hostname: domain, origin, protocol } = start;
  const secure = protocol === 'https:';
  return given.split(';').flatMap((pair) => {
    const [name = '', ...value] = pair.split('=').map((part) => part.trim());
    if (name === '') return [];
    return [{ name, value: value.join('='), domain, path: '/', httpOnly: false, secure, origin }];
  });
}

/**
 * Adds cookies to the context of a page. A cookie that the browser refuses (a prefix that demands
 * https, a value that is too long) is skipped, as it would be if a site set it.
 */
export async function addCookies(
  page: BrowserPage,
  cookies: readonly SessionCookie[],
): Promise<void> {
  await Promise.all(cookies.map((cookie) => addCookie(page, toCookieParam(cookie))));
}

async function addCookie(page: BrowserPage, cookie: Protocol.Network.CookieParam): Promise<void> {
  try {
    const browserContextId = page.contextId;
    await page.sendToBrowser('Storage.setCookies', { cookies: [cookie], browserContextId });
  } catch (error) {
    if (!(error instanceof CdpError) || error.kind !== 'refused') throw error;
  }
}

/** All cookies in the context of a page. */
export async function readCookies(page: BrowserPage): Promise<readonly SessionCookie[]> {
  const { cookies } = await page.sendToBrowser('Storage.getCookies', {
    browserContextId: page.contextId,
  });
  return cookies.map(toSessionCookie);
}

function toCookieParam(cookie: SessionCookie): Protocol.Network.CookieParam {
  const { name, value, domain, path, expires, httpOnly, secure, sameSite, origin } = cookie;
  if (origin !== undefined) return { name, value, url: origin, path, secure };
  return { name, value, domain, path, httpOnly, secure, ...defined({ expires, sameSite }) };
}

function toSessionCookie(cookie: Protocol.Network.Cookie): SessionCookie {
  const { name, value, domain, path, httpOnly, secure, sameSite, session, expires } = cookie;
  const lasting = session ? {} : { expires };
  return { name, value, domain, path, httpOnly, secure, ...lasting, ...defined({ sameSite }) };
}
