import { type ServiceClock, wallNow } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../../domain/durations.ts';
import type { Logger } from '../../domain/logger.ts';
import { createLruMap } from '../../domain/lru-map.ts';
import { toDay } from '../../domain/stats.ts';
import type { ProxyBudget } from '../../engine/engine.ts';
import type { Store } from '../../store/store.ts';

/** What crawlers may spend on proxies. */
export interface ProxyBudgets {
  /** Undefined if the crawler may spend as much as it needs. */
  of(crawler: Pick<Crawler, 'crawlerId' | 'maxProxyMegabytesADay'>): ProxyBudget | undefined;
}

/** How old the count of the database may be. What other processes spend in that time is not known. */
const READ_MS = 5 * SECOND_MS;
/** The limit may be changed: what waits for the next day is tried again after this. */
const CHECK_MS = 10 * MINUTE_MS;
const MEGABYTE = 1_000_000;
/** Crawlers whose count is remembered. */
const MAX_CRAWLERS = 10_000;

interface Spending {
  day: string;
  readMs: number;
  /** What the database knew then, and what this process has spent since. */
  stored: number;
  since: number;
  reading: Promise<void> | undefined;
  isUsed: boolean;
}

/** Makes the budgets; the statistics of the day are their count, which all processes share. */
export function createProxyBudgets(deps: {
  readonly stats: Pick<Store['stats'], 'history'>;
  readonly clock: ServiceClock;
  readonly logger: Logger;
}): ProxyBudgets {
  const { stats, clock, logger } = deps;
  const spendings = createLruMap<string, Spending>({ maxEntries: MAX_CRAWLERS });

  function spendingOf(crawlerId: string, day: string): Spending {
    const known = spendings.get(crawlerId);
    if (known?.day === day) return known;
    const readMs = Number.NEGATIVE_INFINITY;
    const made = { day, readMs, stored: 0, since: 0, reading: undefined, isUsed: false };
    spendings.set(crawlerId, made);
    return made;
  }

  async function read(crawlerId: string, spending: Spending): Promise<void> {
    const { day, since } = spending;
    const startedMs = clock.now().getTime();
    try {
      const found = await stats.history([crawlerId], { from: day, to: day });
      spending.stored = found.get(crawlerId)?.find(({ date }) => date === day)?.proxyBytes ?? 0;
      spending.since -= since;
      spending.readMs = startedMs;
    } finally {
      spending.reading = undefined;
    }
  }

  return {
    of({ crawlerId, maxProxyMegabytesADay: limit }) {
      if (limit === 0) return undefined;
      const spending = (): Spending => spendingOf(crawlerId, toDay(wallNow(clock)));
      return {
        async opensAt() {
          const current = spending();
          const nowMs = clock.now().getTime();
          if (nowMs - current.readMs >= READ_MS) {
            await (current.reading ??= read(crawlerId, current));
          }
          const isUsed = current.stored + current.since >= limit * MEGABYTE;
          if (isUsed !== current.isUsed) {
            current.isUsed = isUsed;
            const text = isUsed
              ? 'the crawler has used the megabytes of its proxies; its URLs wait'
              : 'the crawler may use proxies again';
            logger.warn({ crawler: crawlerId, limit }, text);
          }
          if (!isUsed) return undefined;
          const leftMs = DAY_MS - (wallNow(clock).getTime() % DAY_MS);
          return nowMs + Math.min(leftMs, CHECK_MS);
        },
        spent(bytes) {
          spending().since += bytes;
        },
      };
    },
  };
}
