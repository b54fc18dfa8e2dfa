import type { Dispatcher } from '../../dispatcher/dispatcher.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import type { Logger } from '../../domain/logger.ts';
import { createFairPool, type FairPool, type Grant } from '../../fairness/fair-pool.ts';
import type { Scheduler } from '../../scheduler/scheduler.ts';
import type { Store } from '../../store/store.ts';
import type { Webhook } from '../../webhook/webhook.ts';
import type { Quotas } from '../accounts/quotas.ts';
import type { Notices } from '../notices/outbox.ts';
import type { CrawlerAccess } from './crawler-access.ts';

/** Crawlers that have the same callback URL. */
export type ProbeGroup = readonly [Crawler, ...Crawler[]];

/** The collaborators of a probe. */
export interface ProbeDeps {
  readonly store: Pick<Store, 'crawlers' | 'accounts'>;
  readonly webhook: Pick<Webhook, 'probe'>;
  readonly access: Pick<CrawlerAccess, 'forget'>;
  readonly dispatcher: Pick<Dispatcher, 'refresh'>;
  readonly scheduler: Pick<Scheduler, 'wake'>;
  readonly notices: Pick<Notices, 'crawlerPaused'>;
  readonly probeWaitMs: Quotas['probeWaitMs'];
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Most probes in flight. One without an answer takes ten seconds, so a thousand such URLs fit in a
 * minute.
 */
const MAX_IN_FLIGHT = 256;
/** Further slots, for accounts that have few probes in flight. */
const RESERVE = 64;

/** The probes of callback URLs. Slots are shared by account. */
export interface Probes {
  /** 0 when the URL of the group may be probed now, else the milliseconds until its turn. */
  waitMs(group: ProbeGroup): Promise<number>;
  /**
   * Probes the URL. One that does not answer 2xx pauses its crawlers and notifies their owners; the first
   * 2xx after that resumes them. A probe for which this process has no socket changes nothing.
   * Rejects when `signal` is aborted.
   */
  probe(group: ProbeGroup, signal: AbortSignal): Promise<void>;
}

/** Makes the probes. */
export function createProbes(deps: ProbeDeps): Probes {
  const { store, clock, logger } = deps;
  const slots = createFairPool({ name: 'probes', capacity: MAX_IN_FLIGHT, reserve: RESERVE });

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
    const account = await store.accounts.get(crawler.accountId);
    if (account === undefined) return;
    const notice = await deps.notices.crawlerPaused(account, crawler, error);
    const result = await store.crawlers.setPaused(crawlerId, 'monitor_pause', clock.now(), error);
    if (result?.changed !== true) {
      await notice.withdraw();
      return;
    }
    logger.warn({ crawler: name, error }, 'callback URL does not answer, crawler paused');
    deps.access.forget(crawler);
    deps.dispatcher.refresh(crawlerId);
  }

  /** The shortest wait of the accounts that share the URL. */
  async function waitMs(group: ProbeGroup): Promise<number> {
    const callbackUrl = group[0].callbackUrl ?? '';
    const isPaused = group.some(({ pausedByMonitor }) => pausedByMonitor);
    let shortest = Number.POSITIVE_INFINITY;
    for (const accountId of accountIds(group)) {
      const id = `${accountId} ${group[0].crawlerId}`;
      const wait = await deps.probeWaitMs({ id, accountId, callbackUrl, isPaused });
      if (wait === 0) return 0;
      shortest = Math.min(shortest, wait);
    }
    return shortest;
  }

  async function probe(group: ProbeGroup, signal: AbortSignal): Promise<void> {
    const [first] = group;
    const slot = await acquireFirst(slots, group, signal);
    let end: Awaited<ReturnType<Webhook['probe']>>;
    try {
      const webhookSecrets = group.flatMap((crawler) => crawler.webhookSecrets);
      end = await deps.webhook.probe({ ...first, webhookSecrets }, signal);
    } finally {
      slot.release();
    }
    const { healthy, error } = end;
    await Promise.all(
      group.map(async (crawler) => {
        if (healthy === false && !crawler.pausedByMonitor) await pause(crawler, error);
        else if (healthy === true && crawler.pausedByMonitor) await resume(crawler);
      }),
    );
  }

  return { waitMs, probe };
}

/**
 * Waits for a slot for each account that shares the URL, and returns the first: no account can
 * delay the probe of a URL that another account uses too.
 */
async function acquireFirst(
  slots: FairPool,
  group: ProbeGroup,
  signal: AbortSignal,
): Promise<Grant> {
  const found = new AbortController();
  const either = AbortSignal.any([signal, found.signal]);
  const claims = accountIds(group).map((accountId) => slots.acquire({ accountId }, 1, either));
  const slot = await Promise.race(claims);
  found.abort();
  for (const claim of claims) {
    claim.then(
      (grant) => {
        if (grant !== slot) grant.release();
      },
      // Aborted, because another account's slot came first.
      () => undefined,
    );
  }
  return slot;
}

function accountIds(crawlers: readonly Crawler[]): string[] {
  return [...new Set(crawlers.map((crawler) => crawler.accountId))];
}
