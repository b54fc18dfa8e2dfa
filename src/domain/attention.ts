import { type ServiceClock, toWall } from './clock.ts';
import type { Crawler, CrawlerCounters } from './crawler.ts';
import { isPaused } from './crawler.ts';
import { SECOND_MS } from './durations.ts';

/** What is tried again after it has failed. */
export type TryKind = 'crawl' | 'delivery';

/** Tries in a row that failed. Moments by the clock that people see. */
export interface Streak {
  readonly count: number;
  /** When the first of them ended. */
  readonly since: Date;
  /** When the latest of them ended. */
  readonly at: Date;
  /** Why the latest failed, {@link MAX_STREAK_ERROR} characters at most. */
  readonly error: string;
}

/** The streaks that no success has ended. */
export type Streaks = Readonly<Partial<Record<TryKind, Streak>>>;

/** The moment of the success that ends a streak. */
export const SUCCESS = { crawl: 'success', delivery: 'delivery' } as const satisfies Record<
  TryKind,
  keyof CrawlerCounters['last']
>;

/** What is kept of an error. */
export const MAX_STREAK_ERROR = 200;

/** What most URLs that a crawler has queued wait for: a host, or proxies. Survives JSON. */
export interface HeldUp {
  readonly host: string;
  readonly reason: string;
  /** Moments of the service time, in milliseconds. */
  readonly sinceMs: number;
  readonly untilMs: number;
  /** Jobs of the host in the queue when they were last counted. */
  readonly queued: number;
  /** Set where the reason concerns the crawler as a whole: the hosts whose URLs wait. */
  readonly hosts?: number;
}

/** Why a crawler needs attention, the most urgent first, and what to do. */
export const attentionReasons = {
  paused_by_monitor:
    'Make the callback URL answer POST requests, probes included, with 200, 201 or 204. The crawler then resumes by itself; unpause it to resume earlier.',
  disk_full:
    'Ask the operator of the service to make room on its disk, or to lower RESULT_RETENTION_DAYS; deleting stored results helps, too, while some room is left. The queue is kept, and crawling resumes by itself.',
  storage_full:
    'Delete stored results, read them with auto_delete, or wait until some expire. Pages that are kept for deliveries count, too. The operator can raise the quota storage_bytes, or lower RESULT_RETENTION_DAYS. The queue is kept, and crawling resumes by itself.',
  deliveries_fail:
    'Let the callback URL acknowledge with 200, 201 or 204 in time; send a test delivery to see its answer. Results are kept and posted again until the retries are used up; a replay makes them due at once.',
  crawls_fail:
    'Look at Failures for the reason of each URL. Delete or purge URLs that cannot succeed, or change their parameters and push them again.',
  host_away:
    'Check whether the host still exists and answers this service. Its URLs are tried again by themselves; purge the host to drop them.',
  proxies_fail:
    'Look at the proxies of the pool: each fails, or is blocked by the host. The URLs are tried again by themselves; add proxies, or choose another pool.',
  proxy_budget_used:
    'The URLs wait for the next day (UTC). Raise max_proxy_megabytes_a_day to crawl them earlier, or purge them.',
  queue_full:
    'Pushes are refused until there is room: raise the concurrency, unpause the crawler, or purge what is no longer needed.',
} as const;

/** A reason, as it is on the wire, in metrics and in mails. */
export type AttentionReason = keyof typeof attentionReasons;

/** What holds back the crawls of all crawlers of an account: nothing more may be stored. */
export interface CrawlHold {
  readonly reason: Extract<AttentionReason, 'disk_full' | 'storage_full'>;
  /** What was found, for a person. */
  readonly detail: string;
}

/** Trouble of a crawler that its owner should know of. */
export interface Attention {
  readonly reason: AttentionReason;
  readonly since: Date;
  /** What was found, for a person. */
  readonly detail: string;
}

/** Hosts that wait for these reasons are not the trouble themselves. */
const OF_PROXIES: Readonly<Record<string, AttentionReason>> = {
  proxy_unavailable: 'proxies_fail',
  proxy_budget_used: 'proxy_budget_used',
};

/** Failed tries in a row that mean trouble. */
export const LEAST_STREAK: Readonly<Record<TryKind, number>> = { crawl: 5, delivery: 3 };
/** Without a success for this long before the latest failure. An endpoint that restarts is not trouble. */
const QUIET_MS = 10 * SECOND_MS;
/** The part of the queue that a host has when it holds up the crawler. */
const MOST = 0.5;
/** How long a report on a host counts after the time that it was put aside for: a try may take long. */
const STALE_MS = 180 * SECOND_MS;

/** The streaks of parts of one crawler, of which others may have had a success since. */
export function mergeStreaks(
  parts: readonly (Streaks | undefined)[],
  last: CrawlerCounters['last'],
): Streaks {
  const merged: Partial<Record<TryKind, Streak>> = {};
  for (const kind of Object.keys(SUCCESS) as TryKind[]) {
    const successMs = last[SUCCESS[kind]]?.getTime() ?? 0;
    const streaks = parts
      .flatMap((part) => part?.[kind] ?? [])
      .filter(({ at }) => at.getTime() > successMs)
      .sort((a, b) => b.at.getTime() - a.at.getTime());
    const [latest] = streaks;
    if (latest === undefined) continue;
    const sinceMs = Math.min(...streaks.map(({ since }) => since.getTime()));
    merged[kind] = {
      ...latest,
      count: streaks.reduce((sum, { count }) => sum + count, 0),
      since: new Date(Math.max(sinceMs, successMs)),
    };
  }
  return merged;
}

/** What the rules of attention compare with. */
export interface AttentionLimits {
  /** Most URLs that the queue of a crawler holds. */
  readonly crawlerQueue: number;
}

/** Why a crawler needs attention; empty when nobody has to look at it. `holds` are those of its account. */
export function attentionOf(
  crawler: Pick<Crawler, 'pausedByUser' | 'pausedByMonitor' | 'pausedAt' | 'pauseReason'>,
  counters: CrawlerCounters,
  { crawlerQueue }: AttentionLimits,
  clock: ServiceClock,
  holds: readonly CrawlHold[],
): Attention[] {
  const now = clock.now();
  const { last, failing, heldUp } = counters;
  const queued = counters.waiting + counters.retrying;
  const found: Attention[] = [];
  const add = (reason: AttentionReason, since: Date, detail: string): void => {
    found.push({ reason, since, detail });
  };
  if (queued > 0 && !isPaused(crawler)) {
    for (const { reason, detail } of holds)
      add(reason, lastMoved(last) ?? toWall(clock, now), detail);
  }
  if (crawler.pausedByMonitor) {
    const detail = crawler.pauseReason ?? 'the callback URL does not answer';
    add('paused_by_monitor', crawler.pausedAt ?? toWall(clock, now), detail);
  } else if (counters.deliveriesPending > 0 && isTrouble('delivery', failing, last.delivery)) {
    const { since } = failing.delivery;
    add('deliveries_fail', since, streakDetail('deliveries', failing.delivery));
  }
  if (!isPaused(crawler)) {
    const isAway =
      heldUp !== undefined &&
      queued > 0 &&
      heldUp.untilMs + STALE_MS > now.getTime() &&
      (heldUp.hosts !== undefined || heldUp.queued > MOST * queued);
    if (isAway) {
      const { host, reason, queued: own, hosts } = heldUp;
      const detail =
        hosts === undefined
          ? `${host} is put aside (${reason}) and has ${Math.min(own, queued)} of ${queued} queued URLs`
          : `${host}${hosts > 1 ? ` and ${hosts - 1} more hosts wait` : ' waits'} (${reason}); ${queued} URLs are queued`;
      const since = toWall(clock, new Date(heldUp.sinceMs));
      add(OF_PROXIES[reason] ?? 'host_away', since, detail);
    } else if (counters.retrying > 0 && isTrouble('crawl', failing, last.success)) {
      add('crawls_fail', failing.crawl.since, streakDetail('tries', failing.crawl));
    }
  }
  if (queued >= crawlerQueue) {
    add(
      'queue_full',
      last.push ?? toWall(clock, now),
      `${queued} of ${crawlerQueue} URLs are queued`,
    );
  }
  return found;
}

/** When the crawler last accepted a URL or ended a crawl: neither begins while crawls are held back. */
function lastMoved({ push, crawl }: CrawlerCounters['last']): Date | undefined {
  if (push === undefined || crawl === undefined) return push ?? crawl;
  return push > crawl ? push : crawl;
}

function isTrouble<Kind extends TryKind>(
  kind: Kind,
  failing: Streaks,
  success: Date | undefined,
): failing is Readonly<Record<Kind, Streak>> {
  const streak = failing[kind];
  if (streak === undefined || streak.count < LEAST_STREAK[kind]) return false;
  return success === undefined || streak.at.getTime() - success.getTime() >= QUIET_MS;
}

function streakDetail(what: string, { count, error }: Streak): string {
  return `the last ${count} ${what} failed${error === '' ? '' : `, the latest with: ${error}`}`;
}
