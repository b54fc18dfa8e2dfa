import { createLruMap } from '../../domain/lru-map.ts';
import type { FilteringProxy } from '../../net/filtering-proxy.ts';
import type { BrowserPool } from './browser-pool.ts';
import type { CdpHandlers } from './cdp-connection.ts';
import { joinHandlers } from './join-handlers.ts';
import { resetPage } from './page-reset.ts';
import { createPageTraces, type PageTraces } from './page-traces.ts';
import type { BrowserPage } from './running-browser.ts';

/** A page for one crawl, with the proxy that it uses. */
export interface PageLoan {
  readonly proxy: FilteringProxy;
  /** Rejects as `BrowserPool.open` does. */
  readonly page: Promise<BrowserPage>;
  /** Whether earlier crawls have used it; it is set up then. */
  readonly isUsed: boolean;
  /** Present when later crawls may use the page. */
  readonly traces: PageTraces | undefined;
  /** Handlers that the crawl has to call in addition to its own. */
  readonly handlers: CdpHandlers;
  /**
   * Resolves when the page is closed or, with `canKeep`, ready for another crawl. `canKeep`: the
   * crawl has ended well.
   */
  giveBack(canKeep: boolean): Promise<void>;
}

/** Lends pages to crawls, some of them several times. */
export interface PageLender {
  /**
   * Lends a page of a kind (see `page-kind.ts`), which is opened unless one is there; undefined
   * for one that nobody else has used or will use.
   */
  lend(
    kind: string | undefined,
    origin: string,
    startProxy: () => Promise<FilteringProxy>,
  ): Promise<PageLoan>;
  close(): Promise<void>;
}

/** What pages are lent from, and the limits of it. */
export interface PageLenderDeps {
  readonly pool: Pick<BrowserPool, 'open'>;
  /** Pages that are open at once, in use or not; only those in use may be more. */
  readonly maxPages: number;
  /** How long a page is unused before it is closed; default 30 s. */
  readonly idleMs?: number;
  /** Default 50. */
  readonly maxUses?: number;
}

/** A page that is older is not lent again. */
const MAX_AGE_MS = 600_000;
/** A page is kept only for kinds of which another crawl came within this number of last kinds. */
const RECENT_KINDS = 500;

interface Kept {
  readonly kind: string;
  readonly origin: string;
  readonly proxy: FilteringProxy;
  readonly page: BrowserPage;
  readonly traces: PageTraces;
  readonly handlers: CdpHandlers;
  readonly uses: number;
  /** On the scale of `performance.now()`. */
  readonly openedAt: number;
  readonly idleTimer: NodeJS.Timeout;
}

/** Makes a lender that has no pages. */
export function createPageLender(deps: PageLenderDeps): PageLender {
  const { pool, maxPages, idleMs = 30_000, maxUses = 50 } = deps;
  /** Pages that nobody uses, the one that was used last at the end. */
  const kept = new Set<Kept>();
  const recent = createLruMap<string, true>({ maxEntries: RECENT_KINDS });
  let lent = 0;
  let isClosed = false;

  function take(kind: string): Kept | undefined {
    const found = Array.from(kept).findLast((each) => each.kind === kind && !each.page.isLast);
    if (found !== undefined) forget(found);
    return found;
  }

  function forget(each: Kept): void {
    clearTimeout(each.idleTimer);
    kept.delete(each);
  }

  async function discard(each: Kept): Promise<void> {
    forget(each);
    await closeAll(each.page, each.proxy);
  }

  function makeRoom(): void {
    for (const oldest of kept) {
      if (kept.size + lent <= maxPages) return;
      void discard(oldest);
    }
  }

  function keep(page: Omit<Kept, 'idleTimer'>): void {
    const idleTimer = setTimeout(() => void discard(each), idleMs).unref();
    const each: Kept = { ...page, idleTimer };
    kept.add(each);
    void page.page.ended.then(() => (kept.has(each) ? discard(each) : undefined));
    makeRoom();
  }

  async function lendNew(
    kind: string | undefined,
    origin: string,
    startProxy: () => Promise<FilteringProxy>,
  ): Promise<PageLoan> {
    const canKeep = kind !== undefined && recent.get(kind) === true;
    if (kind !== undefined) recent.set(kind, true);
    lent += 1;
    makeRoom();
    try {
      const proxy = await startProxy();
      const page = pool.open({ proxyServer: proxy.url });
      page.catch(ignoreFailure);
      const traces = canKeep ? createPageTraces(origin) : undefined;
      const handlers = traces?.handlers ?? {};
      const use = { uses: 0, openedAt: performance.now() };
      return createLoan({ kind: kind ?? '', origin, proxy, page, traces, handlers, ...use });
    } catch (error) {
      lent -= 1;
      throw error;
    }
  }

  function createLoan(
    loan: Pick<Kept, 'kind' | 'origin' | 'uses' | 'openedAt'> &
      Pick<PageLoan, 'proxy' | 'page' | 'traces' | 'handlers'>,
  ): PageLoan {
    const { proxy, traces } = loan;
    async function giveBack(canKeep: boolean): Promise<void> {
      proxy.end();
      const page = await loan.page.catch(() => undefined);
      const uses = loan.uses + 1;
      const isYoung = uses < maxUses && performance.now() - loan.openedAt < MAX_AGE_MS;
      const canReset = page !== undefined && traces !== undefined && canKeep && isYoung;
      const handlers = canReset ? await reset(page, traces, loan.origin) : undefined;
      lent -= 1;
      if (canReset && handlers !== undefined && !isClosed) {
        return keep({ ...loan, page, traces, handlers, uses });
      }
      await closeAll(page, proxy);
    }
    return {
      proxy,
      page: loan.page,
      isUsed: loan.uses > 0,
      traces,
      handlers: loan.handlers,
      giveBack,
    };
  }

  return {
    async lend(kind, origin, startProxy) {
      const found = kind === undefined ? undefined : take(kind);
      if (found === undefined) return lendNew(kind, origin, startProxy);
      lent += 1;
      return createLoan({ ...found, page: Promise.resolve(found.page) });
    },
    async close() {
      isClosed = true;
      await Promise.all(Array.from(kept, discard));
    },
  };
}

/** Makes the page as if nobody had used it; undefined when that cannot be said of it. */
async function reset(
  page: BrowserPage,
  traces: PageTraces,
  origin: string,
): Promise<CdpHandlers | undefined> {
  const isDoubtful = (): boolean => traces.isDoubtful || page.hasOpenedOthers || page.isLast;
  if (isDoubtful()) return undefined;
  const emptyCache = traces.isCacheDirty;
  try {
    const handlers = await resetPage(page, origin, { emptyCache });
    traces.nextCrawl(emptyCache);
    return isDoubtful() ? undefined : joinHandlers(traces.handlers, handlers);
  } catch {
    // Whatever it was: a page that cannot be emptied is closed.
    return undefined;
  }
}

async function closeAll(page: BrowserPage | undefined, proxy: FilteringProxy): Promise<void> {
  await page?.close().catch(ignoreFailure);
  await proxy[Symbol.asyncDispose]();
}

function ignoreFailure(): void {
  // It is reported to the crawl.
}
