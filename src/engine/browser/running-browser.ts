import type { Logger } from '../../domain/logger.ts';
import { type PageEnd, PageEnded } from './browser-failures.ts';
import type { CdpCommand, CdpEvent, CdpHandlers, CdpParams, CdpResult } from './cdp-connection.ts';
import type { ChromiumProcess } from './chromium-process.ts';
import { browserProcesses } from './process-watch.ts';

/** What a page is opened with. */
export interface PageOptions {
  /** `http://127.0.0.1:PORT` that all its traffic goes to. */
  readonly proxyServer: string;
}

/** A page in a context of its own. */
export interface BrowserPage {
  /** Of its main frame. */
  readonly frameId: string;
  readonly contextId: string;
  /** Sends a command to the page. Rejects with a `CdpError`, or {@link PageEnded}. */
  send<Name extends CdpCommand>(
    command: Name,
    params?: CdpParams<Name>,
    timeoutMs?: number,
  ): Promise<CdpResult<Name>>;
  /** Sends a command about its context to the browser. */
  sendToBrowser<Name extends CdpCommand>(
    command: Name,
    params: CdpParams<Name>,
  ): Promise<CdpResult<Name>>;
  /** Calls the handlers for its events, in place of those before. */
  listen(handlers: CdpHandlers, onDropped?: (event: CdpEvent, head: string) => void): void;
  /** Resolves when it ends before it is closed. */
  readonly ended: Promise<PageEnd>;
  close(): Promise<void>;
}

/** A browser that runs. */
export interface RunningBrowser {
  /** Whether it takes new pages. */
  readonly isOpen: boolean;
  /** Rejects when the browser has ended or does not answer; it takes no more pages then. */
  open(options: PageOptions): Promise<BrowserPage>;
  readonly ended: Promise<void>;
  close(): Promise<void>;
}

const CLOSE_MS = 5_000;
const WATCH_MS = 500;
const TOUCH_MS = 60_000;
/** Within this after a kill, a page that was killed was the one. */
const KILL_MS = 5_000;

interface OpenPage {
  /** Not known until the browser has told. */
  targetId: string | undefined;
  readonly end: (how: PageEnd) => void;
}

/**
 * Keeps one browser: opens pages, closes what they open beside themselves, ends processes that take
 * too much memory, and ends the browser when it is retired and its last page is closed.
 */
export async function runBrowser(deps: {
  readonly chromium: ChromiumProcess;
  readonly logger: Logger;
  readonly recycleAfter: number;
  readonly maxProcessBytes: number;
  readonly openMs: number;
}): Promise<RunningBrowser> {
  const { chromium, logger, maxProcessBytes } = deps;
  const { cdp, pid } = chromium;
  const pages = new Map<string, OpenPage>();
  let opened = 0;
  let retired = false;
  let closing: Promise<void> | undefined;
  let killedAt = Number.NEGATIVE_INFINITY;

  cdp.listen('', {
    'Target.targetCreated': ({ targetInfo: { targetId, type, browserContextId } }) => {
      const page = type === 'page' ? pages.get(browserContextId ?? '') : undefined;
      if (page === undefined) return;
      // The first one is the page itself.
      page.targetId ??= targetId;
      if (page.targetId === targetId) return;
      cdp.send('Target.closeTarget', { targetId }).catch(ignoreClosed);
    },
    'Target.targetCrashed': ({ targetId, status }) => {
      const wasKilled = status === 'killed' && performance.now() - killedAt < KILL_MS;
      for (const page of pages.values()) {
        if (page.targetId === targetId) page.end(wasKilled ? 'too_heavy' : 'crashed');
      }
    },
  });

  async function close(withinMs = CLOSE_MS): Promise<void> {
    retired = true;
    clearInterval(watching);
    closing ??= chromium.close(withinMs);
    await closing;
  }

  function retire(): void {
    retired = true;
    if (pages.size === 0) void close();
  }

  function forget(contextId: string): void {
    pages.delete(contextId);
    if (retired && pages.size === 0) void close();
  }

  let looking = false;
  let touchedAt = performance.now();
  const watching = setInterval(() => {
    if (looking) return;
    looking = true;
    void look()
      .catch(ignoreClosed)
      .finally(() => {
        looking = false;
      });
  }, WATCH_MS);
  watching.unref();

  async function look(): Promise<void> {
    if (performance.now() - touchedAt > TOUCH_MS) {
      touchedAt = performance.now();
      await chromium.touch();
    }
    const processes = await browserProcesses(pid);
    const total = processes.reduce((sum, { bytes }) => sum + bytes, 0);
    const heaviest = processes
      .filter(({ kind }) => kind === 'renderer')
      .toSorted((left, right) => right.bytes - left.bytes)[0];
    for (const each of processes) {
      const isTooMuch =
        each.bytes > maxProcessBytes ||
        // Processes that are within their limit, but too many: one page may have several.
        (each === heaviest && total > maxProcessBytes * (pages.size + 2));
      if (!isTooMuch) continue;
      const { kind, bytes } = each;
      logger.warn(
        { kind, bytes, limit: maxProcessBytes },
        'A process of Chromium took too much memory',
      );
      if (kind !== 'renderer') retire();
      if (kind === 'browser') continue;
      killedAt = performance.now();
      kill(each.pid);
    }
  }

  void cdp.closed.then(async () => {
    if (!retired) logger.warn({}, 'Chromium has ended; another is started');
    for (const page of pages.values()) page.end('browser_ended');
    pages.clear();
    await close(0);
  });

  async function open({ proxyServer }: PageOptions): Promise<BrowserPage> {
    const timeout = { timeoutMs: deps.openMs };
    opened += 1;
    if (opened >= deps.recycleAfter) retired = true;
    const { browserContextId: contextId } = await cdp.send(
      'Target.createBrowserContext',
      { disposeOnDetach: true, proxyServer, proxyBypassList: '<-loopback>' },
      timeout,
    );
    const { promise: ended, resolve: end } = Promise.withResolvers<PageEnd>();
    pages.set(contextId, { targetId: undefined, end });
    try {
      const { targetId } = await cdp.send(
        'Target.createTarget',
        { url: 'about:blank', browserContextId: contextId },
        timeout,
      );
      const { sessionId } = await cdp.send(
        'Target.attachToTarget',
        { targetId, flatten: true },
        timeout,
      );
      return pageOf(contextId, targetId, sessionId, ended);
    } catch (error) {
      forget(contextId);
      throw error;
    }
  }

  function pageOf(
    contextId: string,
    targetId: string,
    sessionId: string,
    ended: Promise<PageEnd>,
  ): BrowserPage {
    const failed = ended.then((how) => Promise.reject(new PageEnded(how)));
    failed.catch(() => undefined);
    return {
      frameId: targetId,
      contextId,
      send: (command, params, timeoutMs) =>
        Promise.race([
          cdp.send(command, params, {
            sessionId,
            ...(timeoutMs === undefined ? {} : { timeoutMs }),
          }),
          failed,
        ]),
      sendToBrowser: (command, params) => Promise.race([cdp.send(command, params), failed]),
      listen: (handlers, onDropped) => cdp.listen(sessionId, handlers, onDropped),
      ended,
      async close() {
        cdp.unlisten(sessionId);
        try {
          await cdp.send(
            'Target.disposeBrowserContext',
            { browserContextId: contextId },
            { timeoutMs: CLOSE_MS },
          );
        } catch {
          if (!retired) logger.warn({}, 'A page does not close; another browser takes over');
          retired = true;
        }
        forget(contextId);
      },
    };
  }

  try {
    await cdp.send(
      'Target.setDiscoverTargets',
      { discover: true, filter: [{ type: 'page' }, { exclude: true }] },
      { timeoutMs: deps.openMs },
    );
  } catch (error) {
    await close(0);
    throw error;
  }

  return {
    get isOpen() {
      return !retired;
    },
    async open(options) {
      try {
        return await open(options);
      } catch (error) {
        // It hangs, or has ended: pages it still has would hang, too.
        await close(0);
        throw error;
      }
    },
    ended: cdp.closed,
    close: () => close(),
  };
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has just ended.
  }
}

function ignoreClosed(): void {
  // What is to be closed is closed.
}
