import { setTimeout } from 'node:timers/promises';
import { CdpError, type CdpHandlers, ignoreGone } from './cdp-connection.ts';
import { readCookies } from './page-cookies.ts';
import { evaluate } from './page-reader.ts';
import { abortRequest } from './paused-request.ts';
import type { BrowserPage } from './running-browser.ts';

/** A page that takes longer than this to become empty is closed. */
const RESET_MS = 3_000;

/**
 * Removes what a crawl of `origin` has left in a page and its context, so that another can use it.
 * It removes the document with all that runs in it, history and window name, cookies, every kind of
 * storage, and with `emptyCache` the caches. The network must not be reachable for the page during
 * the reset. Rejects when something cannot be removed, or is there again. Returns handlers for
 * events of the next crawl.
 */
export async function resetPage(
  page: BrowserPage,
  origin: string,
  { emptyCache }: { readonly emptyCache: boolean },
): Promise<CdpHandlers> {
  await showBlank(page);
  const { contextId: browserContextId } = page;
  await Promise.all([
    evaluate(page, 'window.name = ""', RESET_MS),
    page.send('Page.resetNavigationHistory', undefined, RESET_MS),
    page.sendToBrowser('Storage.clearCookies', { browserContextId }),
    page.send('Storage.clearDataForOrigin', { origin, storageTypes: 'all' }, RESET_MS),
    emptyCache ? emptyCaches(page) : undefined,
  ]);
  const cookies = await readCookies(page);
  if (cookies.length > 0) throw new CdpError('refused', 'cookies are there again');
  return clearSessionStorage(page, origin);
}

/**
 * Clears the session storage at the start of the next document of the origin: it belongs to the
 * tab, and only a document can do that.
 */
async function clearSessionStorage(page: BrowserPage, origin: string): Promise<CdpHandlers> {
  const { identifier } = await page.send(
    'Page.addScriptToEvaluateOnNewDocument',
    { source: 'if (window === top) sessionStorage.clear()', worldName: 'crawler' },
    RESET_MS,
  );
  let isCleared = false;
  return {
    'Page.frameNavigated'({ frame }) {
      if (isCleared || frame.id !== page.frameId) return;
      if (URL.parse(frame.url)?.origin !== origin) return;
      isCleared = true;
      page.send('Page.removeScriptToEvaluateOnNewDocument', { identifier }).catch(ignoreGone);
    },
  };
}

/** Replaces the document, so that none of its scripts run any more. */
async function showBlank(page: BrowserPage): Promise<void> {
  const { promise: loaded, resolve } = Promise.withResolvers<void>();
  let blank: string | undefined;
  const loads = new Set<string>();
  page.listen({
    'Page.lifecycleEvent'({ frameId, loaderId, name }) {
      if (frameId !== page.frameId || name !== 'load') return;
      loads.add(loaderId);
      if (loaderId === blank) resolve();
    },
    'Page.javascriptDialogOpening'() {
      page.send('Page.handleJavaScriptDialog', { accept: true }).catch(ignoreGone);
    },
    'Fetch.requestPaused'(event) {
      abortRequest(page, event).catch(ignoreGone);
    },
  });
  const { loaderId } = await page.send('Page.navigate', { url: 'about:blank' }, RESET_MS);
  blank = loaderId;
  if (blank !== undefined && loads.has(blank)) return;
  await Promise.race([loaded, page.ended, setTimeout(RESET_MS, undefined, { ref: false })]);
  if (blank === undefined || !loads.has(blank)) {
    throw new CdpError('timeout', 'the page does not become empty');
  }
}

/** Empties the cache of the context, and that in the memory of the page's process. */
async function emptyCaches(page: BrowserPage): Promise<void> {
  await Promise.all([
    page.send('Network.clearBrowserCache', undefined, RESET_MS),
    page.send('Network.setCacheDisabled', { cacheDisabled: true }, RESET_MS),
    page.send('Network.setCacheDisabled', { cacheDisabled: false }, RESET_MS),
  ]);
}
