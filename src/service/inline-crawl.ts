import type { CrawlEngine } from '../crawler/crawler.ts';
import type { TokenOwner } from '../domain/account.ts';
import type { Clock } from '../domain/clock.ts';
import type { CrawlerSettings } from '../domain/crawler.ts';
import { DomainError } from '../domain/errors.ts';
import type { CrawlStatus } from '../domain/job.ts';
import { createRid } from '../domain/rid.ts';
import type { Store } from '../store/store.ts';
import { ASYNC_CRAWLER, ensureAsyncCrawler } from './async-crawler.ts';
import { compress } from './compress.ts';
import { type CrawlWishes, type Exits, parseCrawlRequest } from './crawl-request.ts';
import type { Pushing } from './push.ts';
import { type Recorder, type ShapedPage, storedContent } from './record.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;

/** The answer to an inline crawl: the page at once. */
export interface InlineResult extends CrawlStatus, ShapedPage {
  /** Set when a copy was stored. */
  readonly rid: string | undefined;
}

/** Crawling without a queue. */
export interface InlineCrawls {
  /**
   * Crawls and answers, keeping a copy in storage when `store` is set. Throws `exhausted` when the token has as many
   * inline crawls under way as it may.
   */
  crawl(
    owner: TokenOwner,
    wishes: CrawlWishes,
    store: boolean,
    signal: AbortSignal,
  ): Promise<InlineResult>;
  /** The `rid` under which the result will be stored. */
  crawlLater(owner: TokenOwner, wishes: CrawlWishes): Promise<string>;
}

/** What inline crawls work with. */
export interface InlineCrawlDeps {
  readonly store: Pick<Store, 'crawlers' | 'results'>;
  readonly engine: CrawlEngine;
  readonly recorder: Recorder;
  readonly pushing: Pushing;
  readonly clock: Clock;
  readonly exits: Exits;
  readonly defaults: Pick<CrawlerSettings, 'concurrency' | 'maxRetries' | 'retryWindowHours'>;
  readonly retentionDays: number;
  /** Most at once, for each token. */
  readonly concurrency: number;
}

/** Makes the use cases of inline crawls. */
export function createInlineCrawls(deps: InlineCrawlDeps): InlineCrawls {
  const running = new Map<string, number>();

  async function withSlot<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const current = running.get(key) ?? 0;
    if (current >= deps.concurrency) {
      throw new DomainError('exhausted', 'concurrency_limit_reached', 'Concurrency limit reached', {
        retryAfterMs: 1_000,
        metadata: { limit: deps.concurrency },
      });
    }
    running.set(key, current + 1);
    try {
      return await work();
    } finally {
      const left = (running.get(key) ?? 1) - 1;
      if (left === 0) running.delete(key);
      else running.set(key, left);
    }
  }

  return {
    async crawl(owner, wishes, store, signal) {
      const { accountId } = owner.account;
      const { tokenType } = owner;
      const request = parseCrawlRequest(wishes, tokenType, deps.exits);
      return withSlot(`${accountId}:${tokenType}`, async () => {
        const page = await deps.engine.crawl(
          { request, tokenType, accountId, crawlerId: undefined, politeness: undefined },
          signal,
        );
        const shaped = await deps.recorder.shape(page, request);
        const { cbStatus, originalStatus, url } = page;
        const status = { cbStatus, originalStatus, url };
        const result = { ...shaped, ...status, rid: undefined };
        if (!store) return result;
        const now = deps.clock.now();
        const rid = createRid(now);
        const stored = { ...status, rid, pushedUrl: request.url };
        const { contentType, body } = storedContent(shaped, stored, request.parameters);
        await deps.store.results.put(
          { accountId, tokenType },
          { ...stored, contentType, body: await compress(body), extras: shaped.extras },
          now,
          new Date(now.getTime() + deps.retentionDays * DAY_MS),
        );
        return { ...result, rid };
      });
    },

    async crawlLater(owner, wishes) {
      const { crawlers } = deps.store;
      await ensureAsyncCrawler({ ...deps, crawlers }, owner);
      return deps.pushing.push(owner, ASYNC_CRAWLER, wishes);
    },
  };
}
