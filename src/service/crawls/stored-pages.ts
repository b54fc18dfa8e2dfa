import { promisify } from 'node:util';
import { brotliDecompress, gunzip, zstdDecompress } from 'node:zlib';
import { gzipContentLength } from '../../domain/body-coding.ts';
import { type ServiceClock, wallNow } from '../../domain/clock.ts';
import { pageKey } from '../../domain/page-key.ts';
import type { StoredResult } from '../../domain/result.ts';
import type { CrawlTask, Page } from '../../engine/engine.ts';
import {
  type Claimant,
  createFairPool,
  type FairPool,
  type Grant,
} from '../../fairness/fair-pool.ts';
import type { Store } from '../../store/store.ts';
import type { CrawlThreads } from '../../threads/crawl-threads.ts';
import { BASE_BYTES } from '../../threads/thread-messages.ts';
import type { Crawling } from './crawling.ts';

/** What serving stored pages works with. */
export interface StoredPagesDeps {
  readonly results: Pick<Store['results'], 'newest'>;
  /** Builds the results. */
  readonly threads: Pick<CrawlThreads, 'build'>;
  /** The process's memory budget, in bytes. */
  readonly memory: FairPool;
  readonly clock: ServiceClock;
  /** The longest page. */
  readonly maxBodyBytes: number;
}

const DECODERS = {
  gzip: promisify(gunzip),
  br: promisify(brotliDecompress),
  zstd: promisify(zstdDecompress),
} as const;

/** Pages that are read and decoded at once. No memory is reserved for what is read, as its length is not known. */
const MAX_READS = 8;

/** A page, and its memory beyond {@link BASE_BYTES}. */
interface HeldPage {
  readonly page: Page;
  readonly held: Grant | undefined;
}

/**
 * Crawls as `crawling` does, but for a request with `max_age`. If a stored page of the same URL, token
 * and parameters is not older, it is the result, and nothing is requested.
 */
export function withStoredPages(crawling: Crawling, deps: StoredPagesDeps): Crawling {
  const { results, threads, memory, clock, maxBodyBytes } = deps;
  const reads = createFairPool({
    name: 'stored pages',
    capacity: MAX_READS,
    reserve: MAX_READS / 4,
  });

  async function find(task: CrawlTask, signal: AbortSignal): Promise<HeldPage | undefined> {
    const { request, accountId, tokenType, crawlerId } = task;
    const { max_age: maxAge } = request.parameters;
    const key = maxAge === undefined ? undefined : pageKey(request);
    if (maxAge === undefined || key === undefined) return undefined;
    const claimant = { accountId, crawlerId };
    const place = await reads.acquire(claimant, 1, signal);
    try {
      const since = new Date(wallNow(clock).getTime() - maxAge * 1_000);
      const found = await results.newest({ accountId, tokenType }, request.url, { key, since });
      return found && (await decode(found, claimant, signal));
    } finally {
      place.release();
    }
  }

  /** Waits for room for the page; undefined if it does not decode. */
  async function decode(
    stored: StoredResult,
    claimant: Claimant,
    signal: AbortSignal,
  ): Promise<HeldPage | undefined> {
    const bytes = contentBytes(stored, maxBodyBytes);
    const beyond = bytes - BASE_BYTES;
    const held = beyond > 0 ? await memory.acquire(claimant, beyond, signal) : undefined;
    const page = await toPage(stored, bytes);
    if (page !== undefined) return { page, held };
    held?.release();
    return undefined;
  }

  return {
    ...crawling,
    async crawl(order, signal) {
      const found = await find(order.task, signal);
      if (found === undefined) return crawling.crawl(order, signal);
      const { page, held } = found;
      return { ...(await threads.build(page, order, { held }, signal)), isStored: true };
    },
  };
}

/** Most bytes that the page of a result has when it is decoded. */
function contentBytes({ body, coding }: StoredResult, maxBytes: number): number {
  return coding === 'gzip' ? Math.min(gzipContentLength(body), maxBytes) : maxBytes;
}

/** The page of a stored result; undefined if it does not decode to `maxBytes` at most. */
async function toPage(stored: StoredResult, maxBytes: number): Promise<Page | undefined> {
  const { cbStatus, originalStatus, url, contentType, body, coding, details } = stored;
  const options = { maxOutputLength: Math.max(maxBytes, 1) };
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
