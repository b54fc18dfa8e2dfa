import type { CrawlEngine } from './crawler.ts';

/** Makes the engine that crawls with plain HTTP for the Normal token and in a browser for the JavaScript token. */
export function createEngine(engines: {
  readonly http: CrawlEngine;
  readonly browser: CrawlEngine;
}): CrawlEngine {
  const { http, browser } = engines;
  return {
    crawl: (task, signal) => (task.tokenType === 'javascript' ? browser : http).crawl(task, signal),
    async close() {
      await Promise.all([http.close(), browser.close()]);
    },
  };
}

/** An engine that is made for the first crawl: what it loads costs those who never use it nothing. */
export function createLazyEngine(make: () => Promise<CrawlEngine>): CrawlEngine {
  let made: Promise<CrawlEngine> | undefined;
  return {
    async crawl(task, signal) {
      made ??= make();
      return (await made).crawl(task, signal);
    },
    async close() {
      await (await made)?.close();
    },
  };
}
