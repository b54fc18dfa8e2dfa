import { defined } from '../../domain/defined.ts';
import type { Logger } from '../../domain/logger.ts';
import type { Claimant, FairPool } from '../../fairness/fair-pool.ts';
import type { CrawlerIdentity } from '../http/user-agents.ts';
import { BrowserBusy, BrowserUnavailable } from './browser-failures.ts';
import type { MemoryByKind } from './browser-watch.ts';
import { createChromiumStarter } from './chromium-starter.ts';
import {
  type BrowserPage,
  type PageOptions,
  type RunningBrowser,
  runBrowser,
} from './running-browser.ts';
import type { SandboxMode } from './sandbox.ts';

/** How the browser is run. */
export interface BrowserPoolDeps {
  /** `CHROMIUM_PATH`; empty for the Chromium of the packages. */
  readonly chromiumPath: string;
  /** `CHROMIUM_SANDBOX`. */
  readonly sandbox: SandboxMode;
  /** As in `ChromiumOptions`; default `named`. */
  readonly identity?: CrawlerIdentity;
  /** As in `ChromiumOptions`; default true. */
  readonly webgl?: boolean;
  /** A grant is held for each open page. */
  readonly turns: FairPool;
  readonly logger: Logger;
  /** A new browser takes over after this many pages; default 200. */
  readonly recycleAfter?: number;
  /**
   * A process of the browser that takes more memory than this is ended, and its page with it;
   * default 1 GiB.
   */
  readonly maxProcessBytes?: number;
  /** A browser that takes longer to open a page is replaced; default 15 s. */
  readonly openMs?: number;
  /** As in `RunningBrowserDeps`. */
  readonly idleMs?: number;
}

/** What the browsers of a process take now; zeros while none runs. */
export interface BrowserActivity {
  /** Pages that are open, in use or kept for another crawl. */
  readonly pages: number;
  /** Zeros except on Linux. */
  readonly memoryBytes: MemoryByKind;
}

/** The right to have one page open, until it is disposed of. */
export interface BrowserTurn extends Disposable {
  /** Keeps the turn, after it is disposed of, until a page that it was for is out of the way. */
  keepUntil(isAway: Promise<unknown>): void;
}

/**
 * The pages of one browser, which is started on demand and replaced after many pages, when it has
 * ended, or when it does not reply.
 */
export interface BrowserPool {
  /**
   * Waits for a turn; accounts, and the crawlers of an account, take turns. Rejects with the
   * signal's reason, or with {@link BrowserBusy} after `maxWaitMs`.
   */
  acquire(claimant: Claimant, maxWaitMs: number, signal: AbortSignal): Promise<BrowserTurn>;
  /** Opens a page, for a crawl that has a turn. Rejects with {@link BrowserUnavailable}. */
  open(options: PageOptions): Promise<BrowserPage>;
  activity(): BrowserActivity;
  close(): Promise<void>;
}

const MAX_BACKOFF_MS = 60_000;
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
      const browser = await runBrowser({
        chromium,
        logger,
        recycleAfter,
        maxProcessBytes,
        openMs,
        ...defined({ idleMs: deps.idleMs }),
      });
      all.add(browser);
      void browser.ended.then(() => all.delete(browser));
      return browser;
    } catch (cause) {
      const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** failedStarts, MAX_BACKOFF_MS);
      failedStarts += 1;
      nextStartAt = performance.now() + backoffMs;
      logger.error(
        { err: cause, retryAfterMs: backoffMs },
        'no Chromium for JavaScript crawls; see CHROMIUM_PATH',
      );
      throw new BrowserUnavailable('Chromium cannot be started', backoffMs, { cause });
    }
  }

  async function openBrowser(): Promise<RunningBrowser> {
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
      return await (await openBrowser()).open(options);
    } catch (error) {
      if (error instanceof BrowserUnavailable) throw error;
      // That browser has ended or hangs and was closed; a new one is tried once.
      logger.warn({ err: error }, 'Chromium does not open a page; another is started');
      return (await openBrowser()).open(options);
    }
  }

  return {
    async acquire(claimant, maxWaitMs, signal) {
      const busy = AbortSignal.timeout(maxWaitMs);
      const grant = await turns
        .acquire(claimant, 1, AbortSignal.any([signal, busy]))
        .catch((error: unknown) => {
          signal.throwIfAborted();
          if (busy.aborted) throw new BrowserBusy('No browser page became free in time');
          throw error;
        });
      let isAway: Promise<unknown> = Promise.resolve();
      return {
        keepUntil(promise) {
          isAway = Promise.allSettled([isAway, promise]);
        },
        [Symbol.dispose]() {
          void isAway.finally(() => grant.release());
        },
      };
    },
    open,
    activity() {
      const memoryBytes = { browser: 0, renderer: 0, other: 0 };
      let pages = 0;
      for (const browser of all) {
        pages += browser.pages;
        memoryBytes.browser += browser.bytes.browser;
        memoryBytes.renderer += browser.bytes.renderer;
        memoryBytes.other += browser.bytes.other;
      }
      return { pages, memoryBytes };
    },
    async close() {
      closed = true;
      await current?.catch(() => undefined);
      await Promise.all([...all].map((each) => each.close()));
    },
  };
}
