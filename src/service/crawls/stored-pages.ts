import { promisify } from 'node:util';
import { brotliDecompress, gunzip, zstdDecompress } from 'node:zlib';
import { type ServiceClock, wallNow } from '../../domain/clock.ts';
import { pageKey } from '../../domain/page-key.ts';
import type { StoredResult } from '../../domain/result.ts';
import type { CrawlTask, Page } from '../../engine/engine.ts';
import type { Store } from '../../store/store.ts';
import type { CrawlOrder, CrawlThreads } from '../../threads/crawl-threads.ts';
import type { Crawling, PoliteCrawl } from './crawling.ts';

/** What serving stored pages works with. */
export interface StoredPagesDeps {
  readonly results: Pick<Store['results'], 'newest'>;
  /** Builds the results. */
  readonly threads: Pick<CrawlThreads, 'build'>;
  readonly clock: ServiceClock;
  /** The longest page. */
  readonly maxBodyBytes: number;
}

const DECODERS = {
  gzip: promisify(gunzip),
  br: promisify(brotliDecompress),
  zstd: promisify(zstdDecompress),
} as const;

/**
 * Crawls as `crawling` does, but for a request with `max_age`. If a stored page of the same URL, token
 * and parameters is not older, it is the result, and nothing is requested.
 */
export function withStoredPages(crawling: Crawling, deps: StoredPagesDeps): Crawling {
  const { results, threads, clock, maxBodyBytes } = deps;

  async function find({ request, accountId, tokenType }: CrawlTask) {
    const { max_age: maxAge } = request.parameters;
    const key = maxAge === undefined ? undefined : pageKey(request);
    if (maxAge === undefined || key === undefined) return undefined;
    const since = new Date(wallNow(clock).getTime() - maxAge * 1_000);
    const found = await results.newest({ accountId, tokenType }, request.url, { key, since });
    return found && toPage(found, maxBodyBytes);
  }

  async function fromStorage(
    page: Page,
    order: CrawlOrder,
    signal: AbortSignal,
  ): Promise<PoliteCrawl> {
    return { ...(await threads.build(page, order, undefined, signal)), isStored: true };
  }

  return {
    ...crawling,
    async crawl(order, signal) {
      const page = await find(order.task);
      return page === undefined ? crawling.crawl(order, signal) : fromStorage(page, order, signal);
    },
  };
}

/** The page of a stored result; undefined if it does not decode. */
async function toPage(stored: StoredResult, maxBytes: number): Promise<Page | undefined> {
  const { cbStatus, originalStatus, url, contentType, body, coding, details } = stored;
  const options = { maxOutputLength: maxBytes };
  try {
    const bytes = body.byteLength === 0 ? body : await DECODERS[coding](body, options);
    return {
      cbStatus,
      originalStatus,
      url,
      // Of its own memory, because it is handed to another thread.
      body: new Uint8Array(bytes),
      contentType,
      isText: /charset=utf-8/i.test(contentType),
      headers: Object.entries(details.originalHeaders ?? {}).map(([name, value]) => [
        name === 'set_cookie' ? 'set-cookie' : name,
        value,
      ]),
      crawledAt: stored.storedAt.toISOString(),
    };
  } catch {
    // It is crawled again.
    return undefined;
  }
}
