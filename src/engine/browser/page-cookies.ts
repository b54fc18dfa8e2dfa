import type { Protocol } from 'devtools-protocol';
import type { BrowserCookie } from './browser-sessions.ts';
import { CdpError } from './cdp-connection.ts';
import type { BrowserPage } from './running-browser.ts';

/**
 * Gives a page's context the cookies of a session and those of `set_cookies` for the host of
 * `start`. One that the browser does not take (a prefix that demands https, a value too long) is
 * left out, as it would be of a site's.
 */
export async function giveCookies(
  page: BrowserPage,
  start: URL,
  session: readonly BrowserCookie[],
  given: string | undefined,
): Promise<void> {
  const kept = session.map(cookieParam);
  const own = (given ?? '').split(';').flatMap((pair) => {
    const [name = '', ...value] = pair.split('=');
    if (name.trim() === '') return [];
    return [{ name: name.trim(), value: value.join('=').trim(), url: start.href }];
  });
  await Promise.all([...kept, ...own].map((cookie) => giveCookie(page, cookie)));
}

async function giveCookie(page: BrowserPage, cookie: Protocol.Network.CookieParam): Promise<void> {
  try {
    const browserContextId = page.contextId;
    await page.sendToBrowser('Storage.setCookies', { cookies: [cookie], browserContextId });
  } catch (error) {
    if (!(error instanceof CdpError) || error.kind !== 'refused') throw error;
  }
}

/** All cookies of a page's context. */
export async function cookiesOf(page: BrowserPage): Promise<readonly BrowserCookie[]> {
  const { cookies } = await page.sendToBrowser('Storage.getCookies', {
    browserContextId: page.contextId,
  });
  return cookies;
}

function cookieParam(cookie: BrowserCookie): Protocol.Network.CookieParam {
  const { name, value, domain, path, expires, httpOnly, secure, sameSite } = cookie;
  return {
    name,
    value,
    domain,
    path,
    httpOnly,
    secure,
    ...(cookie.session ? {} : { expires }),
    ...(sameSite === undefined ? {} : { sameSite }),
  };
}
