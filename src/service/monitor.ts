import type { Dispatcher } from '../dispatcher/dispatcher.ts';
import type { Clock } from '../domain/clock.ts';
import type { Crawler } from '../domain/crawler.ts';
import type { Logger } from '../domain/logger.ts';
import type { Mailer } from '../mail/mailer.ts';
import type { Scheduler } from '../scheduler/scheduler.ts';
import type { Store } from '../store/store.ts';
import type { Webhook } from '../webhook/webhook.ts';
import type { CrawlerAccess } from './crawler-access.ts';

const AT_ONCE = 50;

/** What monitoring works with. */
export interface MonitorDeps {
  readonly store: Pick<Store, 'crawlers' | 'accounts'>;
  readonly webhook: Pick<Webhook, 'probe'>;
  readonly access: Pick<CrawlerAccess, 'forget'>;
  readonly dispatcher: Pick<Dispatcher, 'refresh'>;
  readonly scheduler: Pick<Scheduler, 'wake'>;
  readonly mailer: Pick<Mailer, 'crawlerPaused'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly intervalMs: number;
}

/**
 * Makes the `probe` task: probes every callback URL that is due. One that does not answer 2xx pauses its crawler and tells the
 * owner; the first 2xx after that resumes it. Returns how many were probed.
 */
export function createMonitor(deps: MonitorDeps): (signal: AbortSignal) => Promise<number> {
  const { store, clock, logger } = deps;

  async function resume(crawler: Crawler): Promise<void> {
    const { crawlerId, name } = crawler;
    const result = await store.crawlers.setPaused(crawlerId, 'monitor_resume', clock.now());
    if (result?.changed !== true) return;
    logger.info({ crawler: name }, 'callback URL answers again, crawler resumed');
    deps.access.forget(crawler);
    deps.dispatcher.refresh(crawlerId);
    await deps.scheduler.wake('crawl', crawlerId, clock.now());
  }

  async function pause(crawler: Crawler, error: string): Promise<void> {
    const { crawlerId, name } = crawler;
    const result = await store.crawlers.setPaused(crawlerId, 'monitor_pause', clock.now(), error);
    if (result?.changed !== true) return;
    logger.warn({ crawler: name, error }, 'callback URL does not answer, crawler paused');
    deps.access.forget(crawler);
    deps.dispatcher.refresh(crawlerId);
    const account = await store.accounts.get(crawler.accountId);
    if (account !== undefined) await deps.mailer.crawlerPaused(account, crawler, error);
  }

  async function probe(crawler: Crawler, signal: AbortSignal): Promise<void> {
    const { healthy, error } = await deps.webhook.probe(crawler, signal);
    if (!healthy) await pause(crawler, error);
    else if (crawler.pausedByMonitor) await resume(crawler);
  }

  return async (signal) => {
    let probed = 0;
    while (!signal.aborted) {
      const due = await store.crawlers.claimProbes(clock.now(), deps.intervalMs, AT_ONCE);
      const ends = await Promise.allSettled(due.map((crawler) => probe(crawler, signal)));
      for (const end of ends) {
        if (end.status === 'rejected' && !signal.aborted) {
          logger.error({ err: end.reason }, 'a probe broke off');
        }
      }
      probed += due.length;
      if (due.length < AT_ONCE) break;
    }
    return probed;
  };
}
