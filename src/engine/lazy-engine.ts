import type { CrawlEngine } from './engine.ts';

/**
 * An engine that is made for the first crawl: what it loads costs those who never use it nothing.
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
