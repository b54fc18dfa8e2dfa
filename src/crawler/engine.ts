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
