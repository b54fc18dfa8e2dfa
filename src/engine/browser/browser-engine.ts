import type { ServiceClock } from '../../domain/clock.ts';
import type { Logger } from '../../domain/logger.ts';
import { raceAbort } from '../../domain/race-abort.ts';
import type { FailureReason } from '../../domain/status.ts';
import { parseHttpUrl } from '../../domain/target-url.ts';
import type { AddressGuard } from '../../net/address-guard.ts';
import type { FailureReports } from '../../net/failure-reports.ts';
import { startFilteringProxy } from '../../net/filtering-proxy.ts';
import type { Lookup } from '../../net/lookup.ts';
import type { CrawlEngine, CrawlTask, Page } from '../engine.ts';
import { asFailedPage, failedPage, failedResponse, withDetail } from '../failed-page.ts';
import type { CrawlerIdentity } from '../http/user-agents.ts';
import { BrowserBusy, BrowserUnavailable, PageEnded } from './browser-failures.ts';
import type { BrowserPool, BrowserTurn } from './browser-pool.ts';
import { CdpError } from './cdp-connection.ts';
import { pageKind } from './page-kind.ts';
import { createPageLender, type PageLoan } from './page-lender.ts';
import { createPageVisit, type VisitInput } from './page-visit.ts';

/** What the engine crawls with, and its limits. */
export interface BrowserEngineDeps extends FailureReports {
  readonly pool: BrowserPool;
  /** Pages that are open at once, as many as the pool has turns. */
  readonly maxPages: number;
  readonly guard: AddressGuard;
  readonly lookup: Lookup;
  /** URL of the proxy that leads to Tor. */
  readonly torProxy?: string | undefined;
  /** What proxies are asked to connect to; default `address`. */
  readonly proxyTarget?: 'address' | 'name';
  readonly clock: ServiceClock;
  readonly limits: {
    /** For the wait for a free page, and again for the crawl from then on. */
    readonly timeoutMs: number;
    /**
     * For the page, and for everything that it sends; what it loads together may be three times
     * that.
     */
    readonly maxBodyBytes: number;
  };
  /** Default `named`. */
  readonly identity?: CrawlerIdentity;
  readonly logger: Logger;
}

/** All that a page loads together may be this many times the size of the page. */
const TOTAL_BYTES_FACTOR = 3;
/** A crawl that waited in vain for a free page is tried again after this. */
const BUSY_MS = 1_000;

/**
 * Makes the engine that crawls in Chromium, in pages that each have a context and a filtering proxy
 * of their own. Crawls of one kind may use the same page, one after the other; see `page-kind.ts`.
 */
export function createBrowserEngine(deps: BrowserEngineDeps): CrawlEngine {
  const { pool, clock, limits, logger, identity = 'named' } = deps;
  const lender = createPageLender({ pool, maxPages: deps.maxPages });

  async function crawl(task: CrawlTask, signal: AbortSignal): Promise<Page> {
    const start = parseHttpUrl(task.request.url);
    return start === undefined ? failedPage(task, 'invalid_url') : visit(task, start, signal);
  }

  async function visit(task: CrawlTask, start: URL, signal: AbortSignal): Promise<Page> {
    const { proxy: upstream } = task;
    using turn = await pool.acquire(task, limits.timeoutMs, signal);
    const inTime = AbortSignal.any([signal, AbortSignal.timeout(limits.timeoutMs)]);
    const kind = pageKind(task, start);
    const lend = (): Promise<PageLoan> =>
      lender.lend(kind, start.origin, () =>
        startFilteringProxy({
          ...deps,
          upstream,
          maxBytes: limits.maxBodyBytes * TOTAL_BYTES_FACTOR,
          maxSentBytes: limits.maxBodyBytes,
          maxAnswerBytes: limits.maxBodyBytes,
          claimant: { accountId: task.accountId, crawlerId: task.crawlerId },
        }),
      );
    for (;;) {
      const loan = await lend();
      try {
        const page = await visitPage({ task, start, loan }, turn, inTime);
        signal.throwIfAborted();
        // A page that was dying when it was lent says that there was no response.
        const isUnanswered = page.originalStatus === 0 && page.failure?.transient === true;
        if (!loan.isUsed || !isUnanswered || inTime.aborted) return page;
      } catch (error) {
        // It may have ended because of what others did with it.
        const isLost = error instanceof PageEnded || error instanceof CdpError;
        if (!loan.isUsed || !isLost || inTime.aborted) throw error;
      }
    }
  }

  async function visitPage(
    input: Pick<VisitInput, 'task' | 'start'> & { readonly loan: PageLoan },
    turn: BrowserTurn,
    inTime: AbortSignal,
  ): Promise<Page> {
    const { task, loan } = input;
    const { proxy } = loan;
    // Aborted when the page is cut off, and in any case when the visit is over.
    const over = new AbortController();
    using stack = new DisposableStack();
    let canKeep = false;
    stack.defer(() => turn.keepUntil(loan.giveBack(canKeep)));
    stack.defer(() => over.abort());
    if (task.proxy !== undefined) {
      stack.defer(() => {
        const { received, sent } = proxy.traffic;
        task.onTraffic?.({ received, sent, own: received + sent });
      });
    }
    const ended = AbortSignal.any([inTime, over.signal]);
    const exceededSize = (): boolean =>
      proxy.isExhausted || proxy.wasCutOff(pageVisit.document?.url ?? '');
    const pageVisit = createPageVisit({ clock, limits, identity }, { ...input, ended });
    proxy.begin(() => {
      if (exceededSize()) over.abort();
    });
    const running = loan.page.then((page) => pageVisit.run(page));
    const page = await raceAbort(running, ended).catch((error: unknown) => {
      if (ended.aborted || exceededSize()) return undefined;
      throw error;
    });
    // Whatever the page ended with, that it was cut off is the cause.
    const steps = pageVisit.steps();
    if (exceededSize()) {
      const { document } = pageVisit;
      const tooLarge =
        document === undefined
          ? failedPage(task, 'body_too_large')
          : failedResponse(task, 'body_too_large', document);
      return { ...tooLarge, steps };
    }
    canKeep = pageVisit.isCaptured && page !== undefined && page.failure === undefined;
    const ofProxy = page?.failure?.reason.startsWith('proxy_') === true;
    const whole = page ?? failedPage(task, 'timeout');
    return { ...withDetail(whole, ofProxy ? proxy.upstreamDetail : undefined), steps };
  }

  return {
    crawl: (task, signal) =>
      asFailedPage(task, signal, logger, () =>
        crawl(task, signal).catch((error: unknown) => toFailedPage(task, error)),
      ),
    async close() {
      await lender.close();
      await pool.close();
    },
  };
}

function toFailedPage(task: CrawlTask, error: unknown): Page {
  if (error instanceof BrowserBusy) return failedPage(task, 'browser_busy', BUSY_MS);
  if (error instanceof BrowserUnavailable) {
    return failedPage(task, 'browser_unavailable', error.retryAfterMs);
  }
  if (error instanceof PageEnded) {
    return failedPage(task, error.how === 'too_heavy' ? 'page_too_heavy' : 'page_crashed');
  }
  if (error instanceof CdpError && error.kind !== 'refused') {
    return failedPage(task, COMMAND_FAILURES[error.kind]);
  }
  throw error;
}

/** The reason of a crawl that ended because a command of the browser failed. */
const COMMAND_FAILURES = {
  closed: 'page_crashed',
  timeout: 'timeout',
  too_large: 'body_too_large',
} as const satisfies Record<string, FailureReason>;
