import type { Clock } from '../../domain/clock.ts';
import type { Logger } from '../../domain/logger.ts';
import type { FailureReason } from '../../domain/status.ts';
import type { AddressGuard } from '../../net/address-guard.ts';
import { type FilteringProxyDeps, startFilteringProxy } from '../../net/filtering-proxy.ts';
import type { HttpClient } from '../../net/http-client.ts';
import type { Lookup } from '../../net/lookup.ts';
import { resolveTarget } from '../crawl-target.ts';
import type { CrawlEngine, CrawlTask, Page } from '../engine.ts';
import { asFailedPage, failedPage, failedResponse } from '../failed-page.ts';
import { createPoliteness } from '../politeness/politeness.ts';
import { BrowserBusy, BrowserUnavailable, PageEnded } from './browser-failures.ts';
import type { BrowserPool } from './browser-pool.ts';
import { createBrowserSessions } from './browser-sessions.ts';
import { CdpError } from './cdp-connection.ts';
import { createPageVisits } from './page-visit.ts';

/** What the engine works with. */
export interface BrowserEngineDeps {
  readonly pool: BrowserPool;
  /** Reads robots.txt. */
  readonly client: Pick<HttpClient, 'request'>;
  readonly guard: AddressGuard;
  readonly lookup: Lookup;
  /** What proxies are asked to connect to; default `address`. */
  readonly proxyTarget?: 'address' | 'name';
  /** Told of every connection that a page was refused for where it led. */
  readonly onRefused?: FilteringProxyDeps['onRefused'];
  readonly clock: Clock;
  readonly limits: {
    /** Of a whole crawl, from when it has its turn at the browser; and of the wait for that. */
    readonly timeoutMs: number;
    /** Of the page, and of all it sends; all it loads together may be three times that. */
    readonly maxBodyBytes: number;
  };
  /** Proxy URLs by ISO country, and `tor`. */
  readonly proxies: Readonly<Record<string, string>>;
  readonly logger: Logger;
}

const PARTS_OF_A_PAGE = 3;
/** Whoever waited in vain for a page comes back after this. */
const BUSY_MS = 1_000;

/**
 * Makes the engine that crawls in Chromium: each crawl in a context and behind a guarding proxy of
 * its own.
 */
export function createBrowserEngine(deps: BrowserEngineDeps): CrawlEngine {
  const { pool, clock, limits, proxies, logger } = deps;
  const visits = createPageVisits({ clock, limits, sessions: createBrowserSessions({ clock }) });
  const politeness = createPoliteness({ client: deps.client, clock });

  async function crawl(task: CrawlTask, signal: AbortSignal): Promise<Page> {
    const target = resolveTarget(task.request, proxies);
    if ('refused' in target) return failedPage(task, target.refused);
    const { start, proxy: upstream } = target;
    const admission = await politeness.acquire(task, start, upstream, signal);
    if ('refused' in admission) return failedPage(task, admission.refused, admission.retryAfterMs);
    let page: Page | undefined;
    try {
      page = await visit(task, start, upstream, signal);
      return page;
    } finally {
      admission.release(task.politeness === undefined ? 0 : page?.failure?.retryAfterMs);
    }
  }

  async function visit(
    task: CrawlTask,
    start: URL,
    upstream: string | undefined,
    signal: AbortSignal,
  ): Promise<Page> {
    using turn = await pool.enter(task, limits.timeoutMs, signal);
    await using proxy = await startFilteringProxy({
      guard: deps.guard,
      lookup: deps.lookup,
      maxBytes: limits.maxBodyBytes * PARTS_OF_A_PAGE,
      maxSentBytes: limits.maxBodyBytes,
      maxAnswerBytes: limits.maxBodyBytes,
      torProxy: proxies['tor'],
      proxyTarget: deps.proxyTarget,
      onRefused: deps.onRefused,
      claimant: { accountId: task.accountId, crawlerId: task.crawlerId },
      onCutOff: () => {
        if (isCut()) cut.abort();
      },
      ...(upstream === undefined ? {} : { upstream }),
    });
    const cut = new AbortController();
    const deadline = AbortSignal.any([signal, cut.signal, AbortSignal.timeout(limits.timeoutMs)]);
    const isCut = (): boolean => proxy.isExhausted || proxy.wasCutOff(visited.document?.url ?? '');
    const visited = visits.begin(task, start, proxy);
    const seen = await withinTime(deadline, async () =>
      visited.run(await turn.open({ proxyServer: proxy.url })),
    ).catch((error: unknown) => {
      if (isCut()) return undefined;
      throw error;
    });
    signal.throwIfAborted();
    // Whatever a page that was cut off ends with, this is why.
    if (isCut()) {
      const { document } = visited;
      return document === undefined
        ? failedPage(task, 'body_too_large')
        : failedResponse(task, 'body_too_large', document);
    }
    return seen ?? failedPage(task, 'timeout');
  }

  return {
    crawl: (task, signal) =>
      asFailedPage(task, signal, logger, () =>
        crawl(task, signal).catch((error: unknown) => toFailure(task, error)),
      ),
    close: () => pool.close(),
  };
}

function toFailure(task: CrawlTask, error: unknown): Page {
  if (error instanceof BrowserBusy) return failedPage(task, 'browser_busy', BUSY_MS);
  if (error instanceof BrowserUnavailable) {
    return failedPage(task, 'browser_unavailable', error.retryAfterMs);
  }
  if (error instanceof PageEnded) {
    return failedPage(task, error.how === 'too_heavy' ? 'page_too_heavy' : 'page_crashed');
  }
  if (error instanceof CdpError && error.kind !== 'refused') {
    return failedPage(task, BY_KIND[error.kind]);
  }
  throw error;
}

/** What it is for a crawl when the browser did not answer one of its commands. */
const BY_KIND = {
  closed: 'page_crashed',
  timeout: 'timeout',
  too_large: 'body_too_large',
} as const satisfies Record<string, FailureReason>;

/** The work's end; undefined when the signal comes first. */
async function withinTime<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const onAbort = (): void => resolve(undefined);
  signal.addEventListener('abort', onAbort, { once: true });
  const working = work();
  // After the signal nobody waits for it; closing the page makes it fail.
  working.catch(() => undefined);
  try {
    return await Promise.race([working, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
