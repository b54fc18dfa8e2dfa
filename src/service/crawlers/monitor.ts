import type { Dispatcher } from '../../dispatcher/dispatcher.ts';
import { createWakeableSleep } from '../../dispatcher/wakeable-sleep.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import type { Logger } from '../../domain/logger.ts';
import { createFairPool, type Grant } from '../../fairness/fair-pool.ts';
import type { Scheduler, Task } from '../../scheduler/scheduler.ts';
import type { Store } from '../../store/store.ts';
import type { Webhook } from '../../webhook/webhook.ts';
import type { Notices } from '../deliveries/notices.ts';
import type { CrawlerAccess } from './crawler-access.ts';

/** The collaborators of monitoring. */
export interface MonitorDeps {
  readonly store: Pick<Store, 'crawlers' | 'accounts'>;
  readonly webhook: Pick<Webhook, 'probe'>;
  readonly access: Pick<CrawlerAccess, 'forget'>;
  readonly dispatcher: Pick<Dispatcher, 'refresh'>;
  readonly scheduler: Pick<Scheduler, 'wake'>;
  readonly notices: Pick<Notices, 'crawlerPaused'>;
  /** Counts a probe; returns false when the account has made too many. */
  readonly mayProbe: (accountId: string, callbackUrl: string) => Promise<boolean>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Time between two probes of one URL. */
  readonly intervalMs: number;
  /** Time between two searches for due probes while others are in flight. */
  readonly claimIntervalMs: number;
}

/**
 * Most probes in flight. One without an answer takes ten seconds, so a thousand such URLs fit in a
 * minute.
 */
const AT_ONCE = 256;
/** Further slots, for accounts that have few probes in flight. */
const RESERVE = 64;
const BATCH = 200;
/** Most crawlers whose probe is in flight or waits for its slot; no more are claimed beyond it. */
const MAX_PENDING = 10_000;
/** A probe is signed for each of its crawlers, and all signatures have to fit in one header. */
const CRAWLERS_PER_PROBE = 50;

/**
 * Makes the `probe` task. It probes every callback URL that is due, once for all crawlers that
 * share it. A URL that does not answer 2xx pauses its crawlers and notifies their owners; the first
 * 2xx after that resumes them. Probes run concurrently, with slots shared by account, and the task
 * claims further due probes meanwhile, so that one that hangs delays no other. Returns how many
 * crawlers were probed, once no probe is in flight.
 */
export function createMonitor(
  deps: MonitorDeps,
): (task: Pick<Task, 'signal' | 'touch'>) => Promise<number> {
  const { store, clock, logger } = deps;
  const slots = createFairPool({ name: 'probes', capacity: AT_ONCE, reserve: RESERVE });

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

  /** Whether one of the accounts that share the URL may probe it. */
  async function isAllowed(group: readonly Crawler[]): Promise<boolean> {
    for (const accountId of accountIds(group)) {
      if (await deps.mayProbe(accountId, group[0]?.callbackUrl ?? '')) return true;
    }
    return false;
  }

  /**
   * Waits for a slot for each account that shares the URL, and returns the first: no account can
   * delay the probe of a URL that another account uses too.
   */
  async function slotFor(group: readonly Crawler[], signal: AbortSignal): Promise<Grant> {
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

  async function probe(group: readonly [Crawler, ...Crawler[]], signal: AbortSignal) {
    if (!(await isAllowed(group))) return;
    const [first] = group;
    const slot = await slotFor(group, signal);
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
        if (!healthy && !crawler.pausedByMonitor) await pause(crawler, error);
        else if (healthy && crawler.pausedByMonitor) await resume(crawler);
      }),
    );
  }

  return async ({ signal, touch }) => {
    const wakeable = createWakeableSleep();
    /** Identifiers of the crawlers whose probe has not ended. */
    const pending = new Set<string>();
    let probed = 0;

    function start(group: readonly [Crawler, ...Crawler[]]): void {
      for (const { crawlerId } of group) pending.add(crawlerId);
      void probe(group, signal)
        .catch((error: unknown) => {
          if (!signal.aborted) logger.error({ err: error }, 'a probe broke off');
        })
        .finally(() => {
          for (const { crawlerId } of group) pending.delete(crawlerId);
          probed += group.length;
          wakeable.wake();
        });
    }

    /** Claims and starts due probes. Returns whether there may be more. */
    async function claimDue(): Promise<boolean> {
      if (pending.size >= MAX_PENDING) return false;
      const due = await store.crawlers.claimProbes(clock.now(), deps.intervalMs, BATCH);
      // A probe that hangs for a whole interval is due again before it has ended.
      for (const group of groupByUrl(due.filter(({ crawlerId }) => !pending.has(crawlerId)))) {
        start(group);
      }
      return due.length >= BATCH;
    }

    let claimedAt = Number.NEGATIVE_INFINITY;
    let touchedAt = performance.now();
    do {
      const now = performance.now();
      if (now - claimedAt >= deps.claimIntervalMs) {
        const hasMore = await claimDue();
        claimedAt = hasMore ? Number.NEGATIVE_INFINITY : now;
        if (hasMore) continue;
      }
      if (now - touchedAt >= TOUCH_MS) {
        touchedAt = now;
        await touch();
      }
      if (pending.size > 0) await wakeable.sleep(deps.claimIntervalMs);
    } while (!signal.aborted && pending.size > 0);
    return probed;
  };
}

const TOUCH_MS = 1_000;

function accountIds(crawlers: readonly Crawler[]): string[] {
  return [...new Set(crawlers.map((crawler) => crawler.accountId))];
}

/** Groups crawlers with the same callback URL. */
function groupByUrl(crawlers: readonly Crawler[]): [Crawler, ...Crawler[]][] {
  const groups = new Map<string, [Crawler, ...Crawler[]]>();
  const full: [Crawler, ...Crawler[]][] = [];
  for (const crawler of crawlers) {
    const url = crawler.callbackUrl ?? '';
    const group = groups.get(url);
    if (group === undefined) groups.set(url, [crawler]);
    else if (group.push(crawler) >= CRAWLERS_PER_PROBE) {
      groups.delete(url);
      full.push(group);
    }
  }
  return [...full, ...groups.values()];
}
