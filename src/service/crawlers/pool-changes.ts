import type { Dispatcher } from '../../dispatcher/dispatcher.ts';
import type { ServiceClock } from '../../domain/clock.ts';
import type { Logger } from '../../domain/logger.ts';
import type { Scheduler } from '../../scheduler/scheduler.ts';
import type { CrawlerStore } from '../../store/store.ts';

/** Crawlers that are read at once. */
const PAGE = 100;

/**
 * Tells the crawlers of an account that go through proxies that its pools have changed: their hosts wait
 * no longer for the old ones. They count as changed, so every process learns it.
 */
export function createPoolChanges(deps: {
  readonly crawlers: Pick<CrawlerStore, 'list' | 'update'>;
  readonly dispatcher: Pick<Dispatcher, 'refresh'>;
  readonly scheduler: Pick<Scheduler, 'wake'>;
  readonly clock: ServiceClock;
  readonly logger: Logger;
}): (accountId: string) => void {
  const { crawlers, dispatcher, scheduler, clock, logger } = deps;

  async function tell(accountId: string): Promise<void> {
    for (let after = ''; ; ) {
      const page = await crawlers.list(accountId, { limit: PAGE, after });
      for (const { crawlerId, proxy, escalate } of page) {
        if (proxy === undefined && escalate === undefined) continue;
        await crawlers.update(crawlerId, {}, clock.now());
        dispatcher.refresh(crawlerId);
        await scheduler.wake('crawl', crawlerId, clock.now());
      }
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return;
      after = last.name;
    }
  }

  return (accountId) => {
    tell(accountId).catch((error: unknown) => {
      logger.warn({ err: error, accountId }, 'crawlers were not told of a change of their pools');
    });
  };
}
