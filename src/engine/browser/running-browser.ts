import { defined } from '../../domain/defined.ts';
import type { Logger } from '../../domain/logger.ts';
import {
  type AttachedTargets,
  AUTO_ATTACH,
  AUTO_ATTACH_SHARED,
  createAttachedTargets,
  type OtherTargets,
  sendTo,
} from './attached-targets.ts';
import { type PageEnd, PageEnded } from './browser-failures.ts';
import { type MemoryByKind, watchBrowser } from './browser-watch.ts';
import type {
  CdpCommand,
  CdpConnection,
  CdpEvent,
  CdpHandlers,
  CdpParams,
  CdpResult,
} from './cdp-connection.ts';
import type { ChromiumProcess } from './chromium-process.ts';
import { joinHandlers } from './join-handlers.ts';

/** How a page is opened. */
export interface PageOptions {
  /** The proxy for all traffic of the page, `http://127.0.0.1:PORT`. */
  readonly proxyServer: string;
}

/** A page in a browser context of its own. */
export interface BrowserPage {
  /** Id of the main frame. */
  readonly frameId: string;
  readonly contextId: string;
  /** Of the browser, as `153.0.7899.0`. */
  readonly browserVersion: string;
  /** Sends a command to the page. Rejects with a `CdpError`, or {@link PageEnded}. */
  send<Name extends CdpCommand>(
    command: Name,
    params?: CdpParams<Name>,
    timeoutMs?: number,
  ): Promise<CdpResult<Name>>;
  /** Sends a command that concerns the context to the browser. Rejects as `send`. */
  sendToBrowser<Name extends CdpCommand>(
    command: Name,
    params: CdpParams<Name>,
  ): Promise<CdpResult<Name>>;
  /** Calls the handlers for its events, in place of earlier ones. */
  listen(handlers: CdpHandlers, onDropped?: (event: CdpEvent, head: string) => void): void;
  /** Sets up the workers and frames that it starts from now on. */
  setUpOthers(others: OtherTargets): void;
  /** Whether its context has had other targets than the page: a window, a worker that pages share. */
  readonly hasOpenedOthers: boolean;
  /** Whether its browser takes no new pages any more: this one is not to be used again either. */
  readonly isLast: boolean;
  /** Resolves when the page ends before it is closed. */
  readonly ended: Promise<PageEnd>;
  close(): Promise<void>;
}

/** A running browser. */
export interface RunningBrowser {
  /** Whether it takes new pages. */
  readonly isOpen: boolean;
  /** Pages that are open, in use or kept for another crawl. */
  readonly pages: number;
  /** Memory of its processes; see `BrowserWatch`. */
  readonly bytes: MemoryByKind;
  /** Rejects when the browser has ended or does not reply; it takes no more pages then. */
  open(options: PageOptions): Promise<BrowserPage>;
  readonly ended: Promise<void>;
  close(): Promise<void>;
}

/** What {@link runBrowser} manages, and the limits of it. */
export interface RunningBrowserDeps {
  readonly chromium: ChromiumProcess;
  readonly logger: Logger;
  /** The browser is retired after this many pages. */
  readonly recycleAfter: number;
  readonly maxProcessBytes: number;
  /** Time for each command of opening a page. */
  readonly openMs: number;
  /** A browser without pages ends after this; default three minutes. */
  readonly idleMs?: number;
}

const CLOSE_MS = 5_000;
const TOUCH_MS = 60_000;
/** The longest time that a command of the watch is waited for. */
const PING_MS = 600_000;

interface OpenPage {
  /** Undefined until the browser has reported it. */
  targetId: string | undefined;
  /** Undefined until the browser has attached it. */
  sessionId: string | undefined;
  hasOpenedOthers: boolean;
  readonly others: AttachedTargets;
  readonly end: (how: PageEnd) => void;
}

/**
 * Manages one browser: opens pages, closes windows that pages open, ends processes that take too
 * much memory, hang or flood it. A browser that is retired takes no new pages and ends when its last page is closed.
 */
export async function runBrowser(deps: RunningBrowserDeps): Promise<RunningBrowser> {
  const { chromium, logger, maxProcessBytes, openMs, idleMs = 180_000 } = deps;
  const { cdp, pid } = chromium;
  const pages = new Map<string, OpenPage>();
  let opened = 0;
  let isRetired = false;
  let closing: Promise<void> | undefined;
  let idleTimer: NodeJS.Timeout | undefined;

  const watch = watchBrowser({
    pid,
    maxProcessBytes,
    openPages: () => pages.size,
    ping: () => cdp.send('Browser.getVersion', undefined, { timeoutMs: PING_MS }),
    logger,
    onSharedProcessFailed: retire,
  });
  const touching = setInterval(() => void chromium.touch(), TOUCH_MS);
  touching.unref();

  cdp.listen('', {
    'Target.targetCreated': ({ targetInfo: { targetId, type, browserContextId } }) => {
      const page = pages.get(browserContextId ?? '');
      if (page === undefined) return;
      // The first page is the page itself, any other a window that it opened.
      if (type === 'page') page.targetId ??= targetId;
      if (page.targetId !== targetId) page.hasOpenedOthers = true;
    },
    'Target.attachedToTarget'(event) {
      const { targetInfo, sessionId, waitingForDebugger } = event;
      const send = sendTo(cdp, sessionId);
      const page = pages.get(targetInfo.browserContextId ?? '');
      const isPage = targetInfo.type === 'page';
      if (!isPage) page?.others.attach(event);
      if (isPage && page !== undefined && page.sessionId === undefined) {
        page.sessionId = sessionId;
        send('Target.setAutoAttach', AUTO_ATTACH);
      } else if (isPage) return void closeWindow(targetInfo.targetId, sessionId);
      if (waitingForDebugger) send('Runtime.runIfWaitingForDebugger');
    },
    'Target.detachedFromTarget'(event) {
      for (const { others } of pages.values())
        others.handlers['Target.detachedFromTarget']?.(event);
    },
    'Target.targetCrashed': ({ targetId, status }) => {
      for (const page of pages.values()) {
        if (page.targetId !== targetId) continue;
        page.end(status === 'killed' && watch.hasEndedOne() ? 'too_heavy' : 'crashed');
      }
    },
  });

  /** Closes a window that a page has opened; the page is held until the window has run. */
  async function closeWindow(targetId: string, sessionId: string): Promise<void> {
    try {
      await cdp.send('Runtime.runIfWaitingForDebugger', undefined, { sessionId });
    } catch {
      // The window closes itself, or its page does.
    }
    await cdp.send('Target.closeTarget', { targetId }).catch(ignoreClosed);
  }

  async function close(withinMs = CLOSE_MS): Promise<void> {
    isRetired = true;
    watch.stop();
    clearInterval(touching);
    clearTimeout(idleTimer);
    closing ??= chromium.close(withinMs);
    await closing;
  }

  function retire(): void {
    isRetired = true;
    if (pages.size === 0) void close();
  }

  function forget(contextId: string): void {
    pages.get(contextId)?.others.end();
    pages.delete(contextId);
    if (pages.size > 0) return;
    if (isRetired) void close();
    else idleTimer = setTimeout(retire, idleMs).unref();
  }

  void cdp.closed.then(async () => {
    if (!isRetired) logger.warn({}, 'Chromium has ended; another one is started');
    for (const page of pages.values()) page.end('browser_ended');
    pages.clear();
    await close(0);
  });

  async function open({ proxyServer }: PageOptions): Promise<BrowserPage> {
    const timeout = { timeoutMs: openMs };
    opened += 1;
    clearTimeout(idleTimer);
    if (opened >= deps.recycleAfter) isRetired = true;
    const { browserContextId: contextId } = await cdp.send(
      'Target.createBrowserContext',
      { disposeOnDetach: true, proxyServer, proxyBypassList: '<-loopback>' },
      timeout,
    );
    const { promise: ended, resolve: end } = Promise.withResolvers<PageEnd>();
    const others = createAttachedTargets(cdp);
    const opening: OpenPage = {
      targetId: undefined,
      sessionId: undefined,
      hasOpenedOthers: false,
      others,
      end,
    };
    pages.set(contextId, opening);
    try {
      const url = 'about:blank';
      const target = { url, browserContextId: contextId };
      const { targetId } = await cdp.send('Target.createTarget', target, timeout);
      const { sessionId } = opening;
      // The browser attaches a page before it says that the page has been created.
      if (sessionId === undefined) throw new Error('the browser has not attached the page');
      const ids = { contextId, targetId, sessionId };
      return createBrowserPage({
        cdp,
        browserVersion: chromium.version,
        ...ids,
        ended,
        others,
        hasOpenedOthers: () => opening.hasOpenedOthers,
        isLast: () => isRetired,
        close: () => closePage(ids),
      });
    } catch (error) {
      forget(contextId);
      throw error;
    }
  }

  async function closePage({ contextId, sessionId }: PageIds): Promise<void> {
    cdp.unlisten(sessionId);
    try {
      const context = { browserContextId: contextId };
      await cdp.send('Target.disposeBrowserContext', context, { timeoutMs: CLOSE_MS });
    } catch {
      if (!isRetired) logger.warn({}, 'a page does not close; another browser takes over');
      isRetired = true;
    }
    forget(contextId);
  }

  try {
    const types = ['page', 'service_worker', 'shared_worker'].map((type) => ({ type }));
    const discovery = { discover: true, filter: [...types, { exclude: true }] };
    await cdp.send('Target.setDiscoverTargets', discovery, { timeoutMs: openMs });
    await cdp.send('Target.setAutoAttach', AUTO_ATTACH_SHARED, { timeoutMs: openMs });
  } catch (error) {
    await close(0);
    throw error;
  }

  return {
    get isOpen() {
      return !isRetired;
    },
    get pages() {
      return pages.size;
    },
    get bytes() {
      return watch.bytes;
    },
    async open(options) {
      try {
        return await open(options);
      } catch (error) {
        // The browser hangs or has ended, so its other pages would hang, too.
        await close(0);
        throw error;
      }
    },
    ended: cdp.closed,
    close: () => close(),
  };
}

interface PageIds {
  readonly contextId: string;
  readonly targetId: string;
  readonly sessionId: string;
}

function createBrowserPage(
  deps: PageIds & {
    readonly cdp: CdpConnection;
    readonly browserVersion: string;
    readonly ended: Promise<PageEnd>;
    readonly others: AttachedTargets;
    readonly hasOpenedOthers: () => boolean;
    readonly isLast: () => boolean;
    readonly close: () => Promise<void>;
  },
): BrowserPage {
  const { cdp, contextId, targetId, sessionId, ended, others, close } = deps;
  const failed = ended.then((how) => Promise.reject(new PageEnded(how)));
  failed.catch(ignoreClosed);
  return {
    // The main frame has the id of its target.
    frameId: targetId,
    contextId,
    browserVersion: deps.browserVersion,
    get hasOpenedOthers() {
      return deps.hasOpenedOthers();
    },
    get isLast() {
      return deps.isLast();
    },
    send: (command, params, timeoutMs) =>
      Promise.race([cdp.send(command, params, defined({ sessionId, timeoutMs })), failed]),
    sendToBrowser: (command, params) => Promise.race([cdp.send(command, params), failed]),
    listen: (handlers, onDropped) =>
      cdp.listen(sessionId, joinHandlers(handlers, others.handlers), onDropped),
    setUpOthers: others.use,
    ended,
    close,
  };
}

function ignoreClosed(): void {
  // What was to be closed is closed already.
}
