import type { Clock } from '../../domain/clock.ts';
import { createRid } from '../../domain/rid.ts';
import { resolveTarget } from '../../engine/crawl-target.ts';
import type { CrawlEngine, Page } from '../../engine/engine.ts';
import { failedPage } from '../../engine/failed-page.ts';
import type { RobotsGate } from '../../engine/politeness/robots-gate.ts';
import type { ScreenshotStore } from '../../store/store.ts';
import { buildResult } from '../../threads/build-result.ts';
import type { Crawled, CrawlOrder, CrawlThreads } from '../../threads/crawl-threads.ts';
import type { CookieSessions } from './cookie-sessions.ts';

const SCREENSHOT_MS = 60 * 60 * 1_000;

/** A crawl, and what robots.txt said if it was asked. */
export interface PoliteCrawl extends Crawled {
  readonly robotsDelayMs?: number;
  /** Whether the page is a stored one, and nothing was requested. */
  readonly isStored?: true;
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
  /** Proxy URLs by name, for robots.txt. */
  readonly proxies: Readonly<Record<string, string>>;
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
    const url =
      screenshot === undefined ? undefined : await keepScreenshot(screenshot, order.task.accountId);
    return threads.build(page, order, url, signal);
  }

  /** Asks robots.txt, then crawls. */
  async function afterRobots(order: CrawlOrder, signal: AbortSignal): Promise<PoliteCrawl> {
    const { task } = order;
    const target = resolveTarget(task.request, deps.proxies);
    if ('refused' in target) return result(failedPage(task, target.refused), order);
    const answer = await deps.robots.check(task, target.start, target.proxy, signal);
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
    const isBrowsed = order.task.tokenType === 'javascript';
    return isBrowsed ? inBrowser(order, signal) : threads.crawl(order, signal);
  }

  function crawl(order: CrawlOrder, signal: AbortSignal): Promise<PoliteCrawl> {
    return order.task.politeness?.robotsTxt === true
      ? afterRobots(order, signal)
      : inEngine(order, signal);
  }

  return {
    result,
    async crawl(order, signal) {
      const { task } = order;
      const { cookies_session: name = '' } = task.request.parameters;
      if (name === '') return crawl(order, signal);
      const session = deps.sessions.open(task, name);
      const crawled = await crawl({ ...order, task: { ...task, session } }, signal);
      // A reader of the page can rely on its cookies, in any process.
      await session.written();
      return crawled;
    },
  };
}
