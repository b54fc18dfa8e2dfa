import { setTimeout as delay } from 'node:timers/promises';
import type { Dispatcher } from '../../dispatcher/dispatcher.ts';
import type { ServiceClock } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import type { Logger } from '../../domain/logger.ts';
import type { Scheduler } from '../../scheduler/scheduler.ts';
import type { CrawlerStore } from '../../store/store.ts';

/** Crawlers that are read at once. */
const PAGE = 100;

/**
 * Tells the crawlers of an account that go through proxies that its pools have changed: their hosts wait
 * no longer for the old ones. They count as changed, so every process learns it, after `delayMs`: by then
 * each reads the new pools. One account is told at a time, and once more for all changes until then.
 */
export function createPoolChanges(deps: {
  readonly crawlers: Pick<CrawlerStore, 'list' | 'update'>;
  readonly dispatcher: Pick<Dispatcher, 'refresh'>;
  readonly scheduler: Pick<Scheduler, 'wake'>;
  readonly clock: ServiceClock;
  readonly logger: Logger;
  readonly delayMs: number;
}): (accountId: string) => void {
  const { crawlers, dispatcher, scheduler, clock, logger } = deps;
  /** Accounts that are to be told, and when, by the monotonic clock. */
  const waiting = new Map<string, number>();
  /** Those of them that have changed again. */
  const again = new Set<string>();
  let last = Promise.resolve();

  const warn = (error: unknown): void =>
    logger.warn({ err: error }, 'a crawler was not told of a change of its pools');

  async function tellOf({ crawlerId, proxy, escalate }: Crawler): Promise<void> {
    if (proxy === undefined && escalate === undefined) return;
    if ((await crawlers.update(crawlerId, {}, clock.now())) === undefined) return;
    dispatcher.refresh(crawlerId);
    await scheduler.wake('crawl', crawlerId, clock.now());
  }

  async function tell(accountId: string): Promise<void> {
    const dueMs = waiting.get(accountId) ?? 0;
    await delay(Math.max(0, dueMs - performance.now()), undefined, { ref: false });
    waiting.delete(accountId);
    if (again.delete(accountId)) changed(accountId);
    for (let after = ''; ; ) {
      const page = await crawlers.list(accountId, { limit: PAGE, after });
      for (const crawler of page) await tellOf(crawler).catch(warn);
      after = page.at(-1)?.name ?? '';
      if (page.length < PAGE) return;
    }
  }

  function changed(accountId: string): void {
    if (waiting.has(accountId)) {
      again.add(accountId);
      return;
    }
    waiting.set(accountId, performance.now() + deps.delayMs);
    last = last.then(() => tell(accountId)).catch(warn);
  }

  return changed;
}
