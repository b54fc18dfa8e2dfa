import type { TokenOwner, TokenType } from '../../domain/account.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Crawler, CrawlerCounters } from '../../domain/crawler.ts';
import { isInternal } from '../../domain/crawler-name.ts';
import { defined } from '../../domain/defined.ts';
import { invalidField, isUnavailable } from '../../domain/errors.ts';
import { parseDay } from '../../domain/limits.ts';
import { addDays, type HistoryDay, toHistoryDay } from '../../domain/stats.ts';
import type { ResultTotals, Store } from '../../store/store.ts';
import { createExpiringCache } from '../expiring-cache.ts';

/** A crawler's counters and its days. */
export interface CrawlerStatistics {
  readonly crawler: Crawler;
  readonly counters: CrawlerCounters;
  /** Oldest first. */
  readonly history: readonly HistoryDay[];
}

/** Statistics of all crawlers of an account, and of its `async=true` crawls. */
export interface AccountStatistics {
  /** By name. */
  readonly crawlers: readonly CrawlerStatistics[];
  /** The crawlers that carry `async=true` crawls, by token type. */
  readonly asyncCrawls: readonly CrawlerStatistics[];
  /** Summed over both, oldest first. */
  readonly history: readonly HistoryDay[];
  /** All time, or the sum of the days when a range was asked for. */
  readonly completed: number;
  readonly failed: number;
  /** Results in storage by token type, up to a minute old where there are many; not of a type that has too many. */
  readonly stored: readonly StoredTotals[];
}

/** What a token has in storage. */
export interface StoredTotals extends ResultTotals {
  readonly tokenType: TokenType;
}

/** Reading statistics. */
export interface Statistics {
  /**
   * Days are `YYYY-MM-DD`, both inclusive, empty for no bound. Throws `invalid` for a bound that is
   * not a date.
   */
  read(owner: TokenOwner, from: string, to: string): Promise<AccountStatistics>;
}

const BATCH_SIZE = 1_000;
/**
 * Adding up the results of an account reads an entry of each. The sum is kept for this multiple of
 * the time that took, so that few results are never far behind and many take little of the
 * database's time.
 */
const STORED_REST = 200;
const STORED_MAX_MS = 60_000;
const MAX_CACHED = 10_000;

/**
 * Makes the statistics use case. Its cost grows with the number of crawlers and days, not with jobs;
 * what is stored is added up once a minute, and more often where that takes little.
 */
export function createStatistics(deps: {
  readonly store: Pick<Store, 'crawlers' | 'stats' | 'results'>;
  readonly clock: Clock;
}): Statistics {
  const { clock } = deps;
  const { crawlers, stats, results } = deps.store;
  const known = createExpiringCache<readonly StoredTotals[]>({
    clock,
    ttlMs: (tookMs) => Math.min(tookMs * STORED_REST, STORED_MAX_MS),
    maxEntries: MAX_CACHED,
  });

  async function addUpStored(accountId: string): Promise<readonly StoredTotals[]> {
    const found = await Promise.all(
      (['normal', 'javascript'] as const).map(async (tokenType) => {
        // A database that takes too long for it must not take the other statistics with it.
        const totals = await results.totals({ accountId, tokenType }).catch(unlessAway);
        return totals === undefined ? [] : [{ tokenType, ...totals }];
      }),
    );
    return found.flat();
  }

  async function allCrawlers(accountId: string): Promise<Crawler[]> {
    const all: Crawler[] = [];
    for (;;) {
      const after = all.at(-1)?.name;
      const page = await crawlers.list(accountId, { limit: BATCH_SIZE, ...defined({ after }) });
      all.push(...page);
      if (page.length < BATCH_SIZE) return all;
    }
  }

  return {
    async read(owner, fromText, toText) {
      const from = parseDay('history_from', fromText);
      const to = parseDay('history_to', toText);
      if (from !== undefined && to !== undefined && from > to) {
        throw invalidField('history_from', 'history_from must not be after history_to.');
      }
      const { accountId } = owner.account;
      const all = await allCrawlers(accountId);
      const ids = all.map((crawler) => crawler.crawlerId);
      const [counters, days, stored = []] = await Promise.all([
        crawlers.counters(ids),
        stats.history(ids, defined({ from, to })),
        known.get(accountId, () => addUpStored(accountId)),
      ]);
      const rows = all.flatMap((crawler) => {
        const own = counters.get(crawler.crawlerId);
        // It was removed after it was listed.
        if (own === undefined) return [];
        return [{ crawler, counters: own, history: days.get(crawler.crawlerId) ?? [] }];
      });
      const history = sumByDate(rows.flatMap((row) => row.history));
      const bounded = from !== undefined || to !== undefined;
      return {
        crawlers: rows.filter((row) => !isInternal(row.crawler)),
        asyncCrawls: rows.filter((row) => isInternal(row.crawler)),
        history,
        stored,
        completed: bounded
          ? sum(history, (day) => day.success)
          : sum(rows, (row) => row.counters.completed),
        failed: bounded
          ? sum(history, (day) => day.failed)
          : sum(rows, (row) => row.counters.failed),
      };
    },
  };
}

function unlessAway(error: unknown): undefined {
  if (!isUnavailable(error)) throw error;
}

/** The sum of a number over rows. */
export function sum<Row>(rows: readonly Row[], number: (row: Row) => number): number {
  return rows.reduce((total, row) => total + number(row), 0);
}

/** The days of all crawlers, one for each date, oldest first. */
function sumByDate(days: readonly HistoryDay[]): HistoryDay[] {
  return [...Map.groupBy(days, (day) => day.date)]
    .map(([date, same]) => toHistoryDay(date, addDays(same)))
    .toSorted((a, b) => (a.date < b.date ? -1 : 1));
}
