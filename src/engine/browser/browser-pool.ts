import type { Logger } from '../../domain/logger.ts';
import type { Claimant, FairPool } from '../../fairness/fair-pool.ts';
import { BrowserBusy, BrowserUnavailable } from './browser-failures.ts';
import { createChromiumStarter, type SandboxWish } from './chromium-starter.ts';
import {
  type BrowserPage,
  type PageOptions,
  type RunningBrowser,
  runBrowser,
} from './running-browser.ts';

/** What the browser is run with. */
export interface BrowserPoolDeps {
  /** `CHROMIUM_PATH`; empty for the one of the packages. */
  readonly chromiumPath: string;
  /** `CHROMIUM_SANDBOX`. */
  readonly sandbox: SandboxWish;
  /** One for each page that is open. */
  readonly turns: FairPool;
  readonly logger: Logger;
  /** After how many pages a new browser takes over. Default 200. */
  readonly recycleAfter?: number;
  /**
   * A process of the browser that takes more memory than this is ended, and its page with it.
   * Default 1 GiB.
   */
  readonly maxProcessBytes?: number;
  /** A browser that takes longer to open a page is given up. Default 15 s. */
  readonly openMs?: number;
}

/** A turn at the browser: the right to one page. */
export interface BrowserTurn extends Disposable {
  /** Opens the page; disposing of the turn closes it. Rejects with {@link BrowserUnavailable}. */
  open(options: PageOptions): Promise<BrowserPage>;
}

/**
 * Pages of one browser that is started on demand, and replaced after many pages, when it has ended,
 * or does not answer.
 */
export interface BrowserPool {
  /**
   * Waits for a turn, shared fairly among accounts, then crawlers. Rejects with the signal's
   * reason, or with {@link BrowserBusy} after `longestMs`.
   */
  enter(claimant: Claimant, longestMs: number, signal: AbortSignal): Promise<BrowserTurn>;
  close(): Promise<void>;
}

const LONGEST_BACKOFF_MS = 60_000;
const FIRST_BACKOFF_MS = 1_000;

/** Makes a pool; no browser runs before the first page. */
export function createBrowserPool(deps: BrowserPoolDeps): BrowserPool {
  const {
    logger,
    recycleAfter = 200,
    maxProcessBytes = 1024 * 1024 * 1024,
    openMs = 15_000,
    turns,
  } = deps;
  const starter = createChromiumStarter(deps);
  const all = new Set<RunningBrowser>();
  let current: Promise<RunningBrowser> | undefined;
  let closed = false;
  let failedStarts = 0;
  let nextStartAt = 0;

  async function start(): Promise<RunningBrowser> {
    const waitMs = nextStartAt - performance.now();
    if (waitMs > 0) throw new BrowserUnavailable('Chromium could not be started', waitMs);
    try {
      const chromium = await starter.start();
      failedStarts = 0;
      const browser = await runBrowser({ chromium, logger, recycleAfter, maxProcessBytes, openMs });
      all.add(browser);
      void browser.ended.then(() => all.delete(browser));
      return browser;
    } catch (cause) {
      const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** failedStarts, LONGEST_BACKOFF_MS);
      failedStarts += 1;
      nextStartAt = performance.now() + backoffMs;
      logger.error(
        { err: cause, retryAfterMs: backoffMs },
        'No Chromium for JavaScript crawls; see CHROMIUM_PATH',
      );
      throw new BrowserUnavailable('Chromium cannot be started', backoffMs, { cause });
    }
  }

  async function browser(): Promise<RunningBrowser> {
    for (;;) {
      if (closed) throw new BrowserUnavailable('The service is stopping', FIRST_BACKOFF_MS);
      current ??= start();
      const starting = current;
      try {
        const running = await starting;
        if (running.isOpen) return running;
      } catch (error) {
        if (current === starting) current = undefined;
        throw error;
      }
      if (current === starting) current = undefined;
    }
  }

  async function open(options: PageOptions): Promise<BrowserPage> {
    try {
      return await (await browser()).open(options);
    } catch (error) {
      if (error instanceof BrowserUnavailable) throw error;
      // That browser has ended or hangs, and was given up: a new one is asked once.
      logger.warn({ err: error }, 'Chromium does not open a page; another is started');
      return (await browser()).open(options);
    }
  }

  return {
    async enter(claimant, longestMs, signal) {
      const busy = AbortSignal.timeout(longestMs);
      const grant = await turns
        .acquire(claimant, 1, AbortSignal.any([signal, busy]))
        .catch((error: unknown) => {
          signal.throwIfAborted();
          if (busy.aborted) throw new BrowserBusy('No browser page became free in time');
          throw error;
        });
      let page: Promise<BrowserPage> | undefined;
      return {
        open: (options) => (page ??= open(options)),
        // The crawl does not wait for its page to close, only the next one does: a page may hang.
        [Symbol.dispose]() {
          if (page === undefined) return grant.release();
          void page
            .then((opened) => opened.close())
            .catch(() => undefined)
            .finally(() => grant.release());
        },
      };
    },
    async close() {
      closed = true;
      await current?.catch(() => undefined);
      await Promise.all([...all].map((each) => each.close()));
    },
  };
}
