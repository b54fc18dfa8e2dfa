import type { TokenOwner, TokenType } from '../../domain/account.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Crawler, CrawlerCounters } from '../../domain/crawler.ts';
import { isInternal } from '../../domain/crawler-name.ts';
import { defined } from '../../domain/defined.ts';
import { crawlerNotFound, invalidField, isUnavailable } from '../../domain/errors.ts';
import { parseDay } from '../../domain/limits.ts';
import { addByDate, type HistoryDay } from '../../domain/stats.ts';
import { createFairPool } from '../../fairness/fair-pool.ts';
import type { DayRange, HistorySums, ResultTotals, Store } from '../../store/store.ts';
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
  /** Summed over both, oldest first; up to a minute old where that takes long. */
  readonly history: readonly HistoryDay[];
  /** The days of single crawlers were too many, and are left out. */
  readonly isHistoryLeftOut: boolean;
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
   * Days are `YYYY-MM-DD`, both inclusive, empty for no bound. `of` names the crawlers that have their
   * own days, 'none' for no crawler; all by default. Throws `invalid` for a bound that is not a date,
   * or too many names, and `not_found` for a name without a crawler.
   */
  read(
    owner: TokenOwner,
    from: string,
    to: string,
    of?: readonly string[] | 'none',
  ): Promise<AccountStatistics>;
}

/** Most names of crawlers that have their own days. */
const MAX_NAMES = 10;
/** Most days of single crawlers that are read for each call. */
const MAX_OWN_DAYS = 10_000;
/** How many days one step reads, about; other calls wait for a step. */
const STEP_DAYS = 2_500;
const FIRST_STEP_CRAWLERS = 20;
const MAX_STEP_CRAWLERS = 500;
/** Most calls of an account that wait for a step. */
const MAX_WAITING = 100;

const BATCH_SIZE = 1_000;
/**
 * Adding up the results of an account reads an entry of each. The sum is kept for this multiple of
 * the time that took, so that few results are never far behind and many take little of the
 * database's time.
 */
const STORED_REST = 200;
const TOKEN_TYPES = ['normal', 'javascript'] as const;
/** The longest time for each result: on a busy machine the time is spent with waiting. */
const REST_PER_RESULT_MS = 1;
const MAX_STORED = 10_000;
/** The same for the days of crawlers, if they are more than {@link MAX_OWN_DAYS}. */
const SUMS_REST = 20;
const MAX_SUMS = 100;
const KEPT_MAX_MS = 60_000;

/**
 * Makes the statistics use case. Its cost grows with the number of crawlers and days, not with jobs.
 * Days and what is stored are added up once a minute, and more often where that takes little.
 */
export function createStatistics(deps: {
  readonly store: Pick<Store, 'crawlers' | 'stats' | 'results'>;
  readonly clock: Clock;
}): Statistics {
  const { clock } = deps;
  const { crawlers, stats, results } = deps.store;
  const known = createExpiringCache<readonly StoredTotals[]>({
    clock,
    ttlMs(tookMs, stored) {
      const hasAll = stored.length === TOKEN_TYPES.length;
      // A token type without a sum has more results than can be added up.
      const results = hasAll ? sum(stored, (each) => each.results) : Number.POSITIVE_INFINITY;
      const mostMs = Math.max(results * REST_PER_RESULT_MS, 2 * tookMs);
      return Math.min(tookMs * STORED_REST, mostMs, KEPT_MAX_MS);
    },
    maxEntries: MAX_STORED,
  });
  const knownSums = createExpiringCache<HistorySums>({
    clock,
    ttlMs: (tookMs) => Math.min(tookMs * SUMS_REST, KEPT_MAX_MS),
    maxEntries: MAX_SUMS,
  });
  /** One step reads at a time; accounts take turns. A call continues after its client has left. */
  const turns = createFairPool({
    name: 'the days of its crawlers',
    capacity: 1,
    maxWaiting: MAX_WAITING,
  });

  /** Calls `read`, which returns a number of days, with as many crawlers as have about {@link STEP_DAYS}. */
  async function inSteps(
    accountId: string,
    ids: readonly string[],
    read: (step: readonly string[]) => Promise<number>,
  ): Promise<void> {
    let size = FIRST_STEP_CRAWLERS;
    for (let from = 0; from < ids.length; ) {
      const step = ids.slice(from, from + size);
      const turn = await turns.acquire({ accountId }, 1);
      const count = await read(step).finally(() => turn.release());
      from += step.length;
      const wanted = Math.round((step.length * STEP_DAYS) / Math.max(count, 1));
      size = Math.min(Math.max(wanted, 1), 2 * size, MAX_STEP_CRAWLERS);
    }
  }

  async function addUpDays(
    accountId: string,
    ids: readonly string[],
    range: DayRange,
  ): Promise<HistorySums> {
    let days: readonly HistoryDay[] = [];
    let count = 0;
    await inSteps(accountId, ids, async (step) => {
      const found = await stats.historySums(step, range);
      days = addByDate([...days, ...found.days].map((day) => [day.date, day]));
      count += found.count;
      return found.count;
    });
    return { days, count };
  }

  async function ownDays(
    accountId: string,
    of: readonly Crawler[],
    range: DayRange,
  ): Promise<ReadonlyMap<string, readonly HistoryDay[]>> {
    const days = new Map<string, readonly HistoryDay[]>();
    const ids = of.map(({ crawlerId }) => crawlerId);
    await inSteps(accountId, ids, async (step) => {
      const found = await stats.history(step, range);
      for (const [id, each] of found) days.set(id, each);
      return sum([...found.values()], ({ length }) => length);
    });
    return days;
  }

  function sumsOf(
    accountId: string,
    ids: readonly string[],
    range: DayRange,
  ): Promise<HistorySums> {
    const key = `${accountId} ${range.from} ${range.to}`;
    const made = knownSums.get(key, async () => {
      const sums = await addUpDays(accountId, ids, range);
      // Few are right at each moment.
      if (sums.count <= MAX_OWN_DAYS) knownSums.forget(key);
      return sums;
    });
    return made.then((sums) => sums ?? { days: [], count: 0 });
  }

  async function addUpStored(accountId: string): Promise<readonly StoredTotals[]> {
    const found = await Promise.all(
      TOKEN_TYPES.map(async (tokenType) => {
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
    async read(owner, fromText, toText, of = []) {
      const from = parseDay('history_from', fromText);
      const to = parseDay('history_to', toText);
      if (from !== undefined && to !== undefined && from > to) {
        throw invalidField('history_from', 'history_from must not be after history_to.');
      }
      const { accountId } = owner.account;
      const all = await allCrawlers(accountId);
      const named = of === 'none' ? [] : namedOf(all, of);
      const ids = all.map((crawler) => crawler.crawlerId);
      const range = defined({ from, to });
      const [counters, { days: history, count }, stored = []] = await Promise.all([
        crawlers.counters(ids),
        sumsOf(accountId, ids, range),
        known.get(accountId, () => addUpStored(accountId)),
      ]);
      const isHistoryLeftOut = of !== 'none' && of.length === 0 && count > MAX_OWN_DAYS;
      const days = await ownDays(accountId, isHistoryLeftOut ? [] : named, range);
      const rows = all.flatMap((crawler) => {
        const own = counters.get(crawler.crawlerId);
        // It was removed after it was listed.
        if (own === undefined) return [];
        return [{ crawler, counters: own, history: days.get(crawler.crawlerId) ?? [] }];
      });
      const bounded = from !== undefined || to !== undefined;
      return {
        crawlers: rows.filter((row) => !isInternal(row.crawler)),
        asyncCrawls: rows.filter((row) => isInternal(row.crawler)),
        history,
        isHistoryLeftOut,
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

/** The crawlers of these names; all without names. */
function namedOf(all: readonly Crawler[], names: readonly string[]): readonly Crawler[] {
  if (names.length === 0) return all;
  if (names.length > MAX_NAMES) {
    throw invalidField('history_of', `history_of must name at most ${MAX_NAMES} crawlers.`);
  }
  return names.map((name) => {
    const crawler = all.find((each) => each.name === name && !isInternal(each));
    if (crawler === undefined) throw crawlerNotFound(name, 'history_of');
    return crawler;
  });
}
