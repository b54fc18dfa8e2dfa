import type { CrawlEngine } from './engine.ts';

/**
 * Makes an engine that is created for its first crawl, so that it costs nothing when it is never
 * used.
 */
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
