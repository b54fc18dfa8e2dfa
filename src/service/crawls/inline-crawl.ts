import { scopeOf, type TokenOwner } from '../../domain/account.ts';
import { addCount } from '../../domain/add-count.ts';
import type { ServiceClock } from '../../domain/clock.ts';
import type { CrawlerDefaults } from '../../domain/crawler-settings.ts';
import { DAY_MS } from '../../domain/durations.ts';
import { DomainError } from '../../domain/errors.ts';
import type { CrawlRequest } from '../../domain/job.ts';
import { chargedRecordBytes } from '../../domain/quotas.ts';
import type { CrawlStatus, ResultDetails } from '../../domain/result.ts';
import { createRid } from '../../domain/rid.ts';
import { failedPage } from '../../engine/failed-page.ts';
import type { Store } from '../../store/store.ts';
import type { Crawled, CrawlOrder } from '../../threads/crawl-threads.ts';
import { ThreadLost } from '../../threads/thread-lost.ts';
import { BASE_BYTES } from '../../threads/thread-messages.ts';
import type { Quotas } from '../accounts/quotas.ts';
import { ASYNC_CRAWLER, ensureAsyncCrawler } from '../crawlers/async-crawler.ts';
import {
  type CrawlInput,
  type CrawlOffers,
  offerFor,
  parseCrawlRequest,
} from '../queue/crawl-request.ts';
import type { Pushing } from '../queue/push.ts';
import { toRecord } from './crawl-job.ts';
import type { Crawling } from './crawling.ts';
import type { SharedResources } from './shared-resources.ts';

/** The answer to an inline crawl: the page at once. */
export interface InlineResult extends CrawlStatus {
  readonly contentType: string;
  /** Not compressed. */
  readonly body: Uint8Array;
  readonly isText: boolean;
  readonly details: ResultDetails;
  /** Set when a copy was stored. */
  readonly rid: string | undefined;
  /** When the copy was stored. */
  readonly storedAt: Date | undefined;
}

/** Crawling without a queue. */
export interface InlineCrawls {
  /**
   * Crawls and returns the page; storage keeps a copy when `store` is set. Throws `exhausted` when
   * the token has as many inline crawls in flight as it may, or the account makes too many calls.
   * Throws `invalid` when there is no room for the copy.
   */
  crawl(
    owner: TokenOwner,
    input: CrawlInput,
    store: boolean,
    signal: AbortSignal,
    traceparent?: string,
  ): Promise<InlineResult>;
  /** The `rid` under which the result will be stored. */
  crawlLater(owner: TokenOwner, input: CrawlInput, traceparent?: string): Promise<string>;
}

/** What inline crawls work with. */
export interface InlineCrawlDeps {
  readonly store: Pick<Store, 'crawlers' | 'results'>;
  readonly crawling: Crawling;
  readonly shared: Pick<SharedResources, 'memory' | 'crawlSlots'>;
  readonly pushing: Pushing;
  readonly quotas: Pick<Quotas, 'assertStorage' | 'reserveStorage' | 'takeRequest'>;
  readonly clock: ServiceClock;
  readonly offers: CrawlOffers;
  readonly defaults: CrawlerDefaults;
  readonly retentionDays: number;
  /** The longest page. */
  readonly maxBodyBytes: number;
  /** Most in flight at once, for each token. */
  readonly concurrency: number;
}

/** Makes the use cases of inline crawls. */
export function createInlineCrawls(deps: InlineCrawlDeps): InlineCrawls {
  const running = new Map<string, number>();

  async function withSlot<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    if ((running.get(key) ?? 0) >= deps.concurrency) {
      throw new DomainError('exhausted', 'concurrency_limit_reached', 'Concurrency limit reached', {
        retryAfterMs: 1_000,
        metadata: { limit: deps.concurrency },
      });
    }
    addCount(running, key, 1);
    try {
      return await work();
    } finally {
      addCount(running, key, -1);
    }
  }

  /** Crawls once more when its thread ended because of another crawl. */
  async function crawlOrFail(order: CrawlOrder, signal: AbortSignal): Promise<Crawled> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await deps.crawling.crawl(order, signal);
      } catch (error) {
        if (!(error instanceof ThreadLost)) throw error;
        if (!error.blamed && attempt === 1) continue;
        return deps.crawling.result(failedPage(order.task, 'crawl_crashed'), order);
      }
    }
  }

  async function crawlNow(
    owner: TokenOwner,
    request: CrawlRequest,
    { rid, traceparent }: { readonly rid: string | undefined } & Pick<CrawlOrder, 'traceparent'>,
    signal: AbortSignal,
  ): Promise<Crawled> {
    const { accountId, tokenType } = scopeOf(owner);
    const claimant = { accountId };
    const task = { request, tokenType, accountId, crawlerId: undefined, politeness: undefined };
    using stack = new DisposableStack();
    const slot = await deps.shared.crawlSlots.acquire(claimant, 1, signal);
    stack.defer(() => slot.release());
    const bytes = BASE_BYTES + (request.body?.byteLength ?? 0);
    const memory = await deps.shared.memory.acquire(claimant, bytes, signal);
    stack.defer(() => memory.release());
    const spec = { kind: 'inline', rid } as const;
    return await crawlOrFail({ task, spec, isSuspect: false, traceparent }, signal);
  }

  return {
    async crawl(owner, input, store, signal, traceparent) {
      const scope = scopeOf(owner);
      const { accountId, tokenType } = scope;
      deps.quotas.takeRequest(owner.account);
      const offer = await offerFor(deps.offers, accountId, [input]);
      const { request } = parseCrawlRequest(input, tokenType, offer);
      if (!store && request.parameters.screenshot === true) {
        await deps.quotas.assertStorage(owner.account, 'screenshot');
      }
      return withSlot(`${accountId}:${tokenType}`, async () => {
        let storedBytes = 0;
        const endReservation = store
          ? await deps.quotas.reserveStorage(owner.account, deps.maxBodyBytes)
          : undefined;
        using stack = new DisposableStack();
        stack.defer(() => endReservation?.(storedBytes));
        const now = deps.clock.now();
        const rid = store ? createRid(now) : undefined;
        const { result, held } = await crawlNow(owner, request, { rid, traceparent }, signal);
        try {
          const { packed: _packed, failure: _failure, ...page } = result;
          let storedAt: Date | undefined;
          if (rid !== undefined) {
            const record = toRecord(rid, request, result);
            const expiresAt = new Date(now.getTime() + deps.retentionDays * DAY_MS);
            storedAt = await deps.store.results.put(scope, record, now, expiresAt);
            storedBytes = chargedRecordBytes(record);
          }
          return { ...page, rid, storedAt };
        } finally {
          // From here on the page is part of the reply, which reserves its own memory.
          held?.release();
        }
      });
    },

    async crawlLater(owner, input, traceparent) {
      const { crawlers } = deps.store;
      await ensureAsyncCrawler({ ...deps, crawlers }, owner);
      return (await deps.pushing.push(owner, ASYNC_CRAWLER, input, traceparent)).rid;
    },
  };
}
