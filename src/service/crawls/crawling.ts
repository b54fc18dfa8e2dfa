import type { Clock } from '../../domain/clock.ts';
import { defined } from '../../domain/defined.ts';
import { HOUR_MS } from '../../domain/durations.ts';
import { isDirect } from '../../domain/proxy-pools.ts';
import { createRid } from '../../domain/rid.ts';
import { sessionKey } from '../../domain/session-key.ts';
import type { FailureReason } from '../../domain/status.ts';
import { parseHttpUrl } from '../../domain/target-url.ts';
import type { CrawlEngine, CrawlTask, Page } from '../../engine/engine.ts';
import { failedPage } from '../../engine/failed-page.ts';
import type { RobotsGate } from '../../engine/politeness/robots-gate.ts';
import type { ScreenshotStore } from '../../store/store.ts';
import { buildResult } from '../../threads/build-result.ts';
import type { Crawled, CrawlOrder, CrawlThreads } from '../../threads/crawl-threads.ts';
import type { CookieSessions } from './cookie-sessions.ts';
import type { WayOut } from './pool-ways.ts';
import type { ProxyVerdict } from './proxy-health.ts';
import type { UsablePools } from './usable-pools.ts';
import type { WaysOut } from './ways-out.ts';

/** How long a screenshot can be fetched. */
const SCREENSHOT_MS = HOUR_MS;
/** Further proxies that one crawl tries when they fail before the target is asked. */
const MAX_PROXY_TRIES = 4;
/** Before a crawl is tried again that found only proxies that fail. */
const BUSY_MS = 1_000;

/** A crawl, and what robots.txt said if it was asked. */
export interface PoliteCrawl extends Crawled {
  readonly robotsDelayMs?: number;
  /** Whether the page is a stored one, and nothing was requested. */
  readonly isStored?: true;
  /** The part that the proxy had in how the crawl ended, which then tells nothing about the host. */
  readonly ofProxy?: Extract<ProxyVerdict, 'lost' | 'blocked'>;
  /** Bytes of the crawl that have passed through proxies. */
  readonly proxyBytes?: number;
  /** No proxy of the pool may be used before; in milliseconds of the service time. */
  readonly proxyOpensAtMs?: number;
  /** Then: whether the reason is that the host has blocked all of them. */
  readonly isBlockedEverywhere?: boolean;
}

/** Crawls pages and builds their results, as robots.txt allows and in whatever engine the token asks for. */
export interface Crawling {
  /**
   * Crawls a page; its failures are results, too. Rejects with `ThreadLost` when the thread of the
   * crawl ended, and with the signal's reason when aborted.
   */
  crawl(order: CrawlOrder, signal: AbortSignal): Promise<PoliteCrawl>;
  /** The result of a page that was not crawled: its job waited too long, or cannot be crawled. */
  result(page: Page, order: CrawlOrder): Promise<Crawled>;
}

/** What crawling works with. */
export interface CrawlingDeps {
  /** Plain HTTP, and every result. */
  readonly threads: Pick<CrawlThreads, 'crawl' | 'build'>;
  /** Crawls of the JavaScript token. */
  readonly browser: CrawlEngine;
  readonly robots: RobotsGate;
  readonly waysOut: Pick<WaysOut, 'choose'>;
  readonly usablePools: Pick<UsablePools, 'of'>;
  readonly screenshots: Pick<ScreenshotStore, 'put'>;
  readonly sessions: CookieSessions;
  readonly clock: Clock;
  /** Base of `screenshot_url`, without a slash at its end. */
  readonly publicUrl: () => string;
}

/** Makes the use case. */
export function createCrawling(deps: CrawlingDeps): Crawling {
  const { threads, browser } = deps;

  /** Stores the screenshot; returns its URL. */
  async function keepScreenshot(jpeg: Uint8Array, accountId: string): Promise<string> {
    const now = deps.clock.now();
    // Reading a screenshot takes no token, so its id must not be guessable.
    const id = createRid(now) + crypto.randomUUID().replaceAll('-', '');
    await deps.screenshots.put({
      id,
      accountId,
      contentType: 'image/jpeg',
      bytes: jpeg,
      expiresAt: new Date(now.getTime() + SCREENSHOT_MS),
    });
    return `${deps.publicUrl()}/screenshots?id=${id}`;
  }

  async function inBrowser(order: CrawlOrder, signal: AbortSignal): Promise<Crawled> {
    const page = await browser.crawl(order.task, signal);
    const { screenshot } = page;
    const screenshotUrl =
      screenshot === undefined ? undefined : await keepScreenshot(screenshot, order.task.accountId);
    return threads.build(page, order, { screenshotUrl }, signal);
  }

  /** Asks robots.txt, then crawls. */
  async function afterRobots(
    order: CrawlOrder,
    way: WayOut,
    signal: AbortSignal,
  ): Promise<PoliteCrawl> {
    const { task } = order;
    const start = parseHttpUrl(task.request.url);
    if (start === undefined) return result(failedPage(task, 'invalid_url'), order);
    const answer = await deps.robots.check(task, start, way, signal);
    if ('refused' in answer) return result(failedPage(task, answer.refused), order);
    return { ...(await inEngine(order, signal)), robotsDelayMs: answer.delayMs };
  }

  async function result(page: Page, { task, spec }: CrawlOrder): Promise<Crawled> {
    return {
      result: await buildResult({ page, request: task.request, spec }, task),
      held: undefined,
    };
  }

  function inEngine(order: CrawlOrder, signal: AbortSignal): Promise<Crawled> {
    return isBrowsed(order.task) ? inBrowser(order, signal) : threads.crawl(order, signal);
  }

  /** Crawls through one proxy, or through none, with the cookies of its session there. */
  async function crawlBy(
    way: WayOut,
    { task, ...order }: CrawlOrder,
    signal: AbortSignal,
  ): Promise<PoliteCrawl> {
    const jar = jarName(task, way);
    const session = jar === undefined ? undefined : deps.sessions.open(task, jar);
    const there = { ...order, task: { ...task, ...way.task, ...defined({ session }) } };
    const crawled = await (task.politeness?.robotsTxt === true
      ? afterRobots(there, way, signal)
      : inEngine(there, signal));
    // A reader of the page can rely on its cookies, in any process.
    await session?.written();
    return crawled;
  }

  /**
   * Crawls through a proxy of the pool that the crawl asks for. One that fails before the target is
   * asked is replaced by another at once.
   */
  async function crawl(order: CrawlOrder, signal: AbortSignal): Promise<PoliteCrawl> {
    const { task } = order;
    const { parameters } = task.request;
    const wish = { ...parameters, proxy: parameters.proxy ?? task.pool };
    let proxyBytes = 0;
    for (let tries = 0; ; tries += 1) {
      const pools = isDirect(wish) ? [] : await deps.usablePools.of(task.accountId, [wish]);
      const way = deps.waysOut.choose(order, tries, pools);
      if ('refused' in way) return result(failedPage(task, way.refused), order);
      if ('opensAtMs' in way) return { ...(await unavailable(order, way)), proxyBytes };
      let crawled: PoliteCrawl | undefined;
      try {
        const opensAtMs = way.proxy === undefined ? undefined : await task.budget?.opensAt();
        if (opensAtMs !== undefined) {
          const used = { opensAtMs, reason: 'proxy_budget_used' } as const;
          return { ...(await unavailable(order, used)), proxyBytes };
        }
        crawled = await crawlBy(way, order, signal);
      } finally {
        const verdict = way.end(crawled?.result);
        task.budget?.spent(way.bytes());
        proxyBytes += way.bytes();
        if (crawled !== undefined && (verdict === 'lost' || verdict === 'blocked'))
          crawled = { ...crawled, ofProxy: verdict };
      }
      if (crawled.result.failure?.reason !== 'proxy_failed') return { ...crawled, proxyBytes };
      crawled.held?.release();
      if (tries >= MAX_PROXY_TRIES) {
        const opensAtMs = deps.clock.now().getTime() + BUSY_MS;
        return { ...(await unavailable(order, { opensAtMs })), proxyBytes };
      }
    }
  }

  async function unavailable(
    order: CrawlOrder,
    why: {
      readonly opensAtMs: number;
      readonly isBlocked?: boolean;
      readonly reason?: FailureReason;
    },
  ): Promise<PoliteCrawl> {
    const { opensAtMs: proxyOpensAtMs, isBlocked: isBlockedEverywhere = false } = why;
    const waitMs = Math.max(proxyOpensAtMs - deps.clock.now().getTime(), 0);
    const page = failedPage(order.task, why.reason ?? 'proxy_unavailable', waitMs);
    return { ...(await result(page, order)), proxyOpensAtMs, isBlockedEverywhere };
  }

  return { result, crawl };
}

/** Whether the browser crawls a page. */
export function isBrowsed({ tokenType, inBrowser = false }: CrawlTask): boolean {
  return inBrowser || tokenType === 'javascript';
}

/**
 * Where the cookies of a crawl are kept; undefined if it shares none. Those of a `session` belong to
 * its identity and its proxy, so that a site sees all three together.
 */
function jarName({ request }: CrawlTask, { id }: WayOut): string | undefined {
  const { cookies_session: jar, session } = request.parameters;
  return session === undefined ? jar : `${sessionKey(request.parameters)} ${id}`;
}
