import type { Protocol } from 'devtools-protocol';
import { defined } from '../../domain/defined.ts';
import type { SessionCookie } from '../../domain/session-cookies.ts';
import { CdpError } from './cdp-connection.ts';
import type { BrowserPage } from './running-browser.ts';

/**
 * Adds the cookies of a session, and those of `set_cookies` for the host of `start`, to the context
 * of a page. A cookie that the browser refuses (a prefix that demands https, a value that is too
 * long) is skipped, as it would be if a site set it.
 */
export async function addCookies(
  page: BrowserPage,
  start: URL,
  session: readonly SessionCookie[],
  given: string | undefined,
): Promise<void> {
  const own = (given ?? '').split(';').flatMap((pair) => {
    const [name = '', ...value] = pair.split('=');
    if (name.trim() === '') return [];
    return [{ name: name.trim(), value: value.join('=').trim(), url: start.href }];
  });
  const kept = session.map(toCookieParam);
  await Promise.all([...kept, ...own].map((cookie) => addCookie(page, cookie)));
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
  const { name, value, domain, path, expires, httpOnly, secure, sameSite } = cookie;
  return { name, value, domain, path, httpOnly, secure, ...defined({ expires, sameSite }) };
}

function toSessionCookie(cookie: Protocol.Network.Cookie): SessionCookie {
  const { name, value, domain, path, httpOnly, secure, sameSite, session, expires } = cookie;
  const lasting = session ? {} : { expires };
  return { name, value, domain, path, httpOnly, secure, ...lasting, ...defined({ sameSite }) };
}
