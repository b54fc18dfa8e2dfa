import type { Clock } from '../../domain/clock.ts';
import { createRid } from '../../domain/rid.ts';
import { resolveTarget } from '../../engine/crawl-target.ts';
import type { CrawlEngine, Page } from '../../engine/engine.ts';
import { failedPage } from '../../engine/failed-page.ts';
import type { PolitenessGate } from '../../engine/politeness/politeness.ts';
import type { ScreenshotStore } from '../../store/store.ts';
import { buildResult } from '../../threads/build-result.ts';
import type { Crawled, CrawlOrder, CrawlThreads } from '../../threads/crawl-threads.ts';
import type { CookieSessions } from './cookie-sessions.ts';

const SCREENSHOT_MS = 60 * 60 * 1_000;

/** Crawls pages and builds their results, politely and in whatever engine the token asks for. */
export interface Crawling {
  /**
   * Crawls a page; its failures are results, too. Rejects with `ThreadLost` when the thread of the
   * crawl ended, and with the signal's reason when aborted.
   */
  crawl(order: CrawlOrder, signal: AbortSignal): Promise<Crawled>;
  /** The result of a page that was not crawled: its job waited too long, or cannot be crawled. */
  result(page: Page, order: CrawlOrder): Promise<Crawled>;
}

/** What crawling works with. */
export interface CrawlingDeps {
  /** Plain HTTP, and every result. */
  readonly threads: Pick<CrawlThreads, 'crawl' | 'build'>;
  /** Crawls of the JavaScript token; it keeps politeness itself. */
  readonly browser: CrawlEngine;
  readonly politeness: PolitenessGate;
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
  const { threads, browser, politeness } = deps;

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

  async function politely(order: CrawlOrder, signal: AbortSignal): Promise<Crawled> {
    const target = resolveTarget(order.task.request, deps.proxies);
    if ('refused' in target) return result(failedPage(order.task, target.refused), order);
    const { start, proxy } = target;
    const admission = await politeness.acquire(order.task, start, proxy, signal);
    if ('refused' in admission) {
      return result(failedPage(order.task, admission.refused, admission.retryAfterMs), order);
    }
    let crawled: Crawled | undefined;
    try {
      crawled = await threads.crawl(order, signal);
      return crawled;
    } finally {
      admission.release(crawled?.result.failure?.retryAfterMs);
    }
  }

  async function result(page: Page, { task, spec }: CrawlOrder): Promise<Crawled> {
    return {
      result: await buildResult({ page, request: task.request, spec }, task),
      held: undefined,
    };
  }

  function crawl(order: CrawlOrder, signal: AbortSignal): Promise<Crawled> {
    const { task } = order;
    if (task.tokenType === 'javascript') return inBrowser(order, signal);
    return task.politeness === undefined ? threads.crawl(order, signal) : politely(order, signal);
  }

  return {
    result,
    async crawl(order, signal) {
      const { task } = order;
      const { cookies_session: name = '' } = task.request.parameters;
      if (name === '') return crawl(order, signal);
      const session = deps.sessions.open(task, name);
      const crawled = await crawl({ ...order, task: { ...task, session } }, signal);
      // Whoever has the page may count on its cookies, in whatever process.
      await session.written();
      return crawled;
    },
  };
}
