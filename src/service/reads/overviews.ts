import type { Attention, CrawlHold } from '../../domain/attention.ts';
import type { Clock } from '../../domain/clock.ts';
import type { CrawlerCounters } from '../../domain/crawler.ts';
import { createLruMap, type LruMap } from '../../domain/lru-map.ts';
import type { CrawlerOverview, ListingStore } from '../../store/store.ts';
import type { Quotas } from '../accounts/quotas.ts';
import { createSharedLookup } from '../shared-lookup.ts';

/** What happens in a second at one crawler, or at several. */
export interface ActivityRates {
  readonly pushed: number;
  readonly completed: number;
  readonly failed: number;
  /** Deliveries that were acknowledged. */
  readonly delivered: number;
  /** How far the two readings are apart. */
  readonly measuredMs: number;
}

/** A crawler, its counters, and its rates if it was read before within a minute. */
export interface RatedCrawler extends CrawlerOverview {
  readonly rates: ActivityRates | undefined;
  readonly attention: readonly Attention[];
}

/** Says why a crawler needs attention, by what holds back the crawls of its account. */
export type ReadAttention = (
  read: CrawlerOverview,
  holds: readonly CrawlHold[],
) => readonly Attention[];

/** All crawlers of an account at one moment, those of the service itself included. */
export interface AccountOverview {
  readonly observedAt: Date;
  /** By name; at most {@link MAX_CRAWLERS}. */
  readonly crawlers: readonly RatedCrawler[];
  /** Whether the account has more. */
  readonly isPartial: boolean;
}

/** Reads what accounts do, all their crawlers in one query. */
export interface Overviews {
  /** Calls for one account share its readings, so that many do not keep the database from others. */
  read(accountId: string): Promise<AccountOverview>;
  /** Reads several accounts in the same one query, for nobody else. */
  readAll(accountIds: readonly string[]): Promise<Map<string, AccountOverview>>;
  /**
   * The crawlers of an account with `text` in their name, upper and lower case alike, of all that it
   * has. When {@link MAX_NAMED} or more have it, everything that `read` returns.
   */
  readNamed(accountId: string, text: string): Promise<AccountOverview>;
}

/** The most crawlers of an account that an overview has. */
export const MAX_CRAWLERS = 10_000;

/** Crawlers with a part in their name that are read by themselves: fewer take little time of the database. */
const MAX_NAMED = 1_000;

/** The oldest reading that a rate is measured from. */
const MAX_APART_MS = 60_000;
/** Readings that are closer together say little. */
const MIN_APART_MS = 900;
/** A rate is of the last 5 to 10 seconds if readings are frequent. */
const WINDOW_MS = 5_000;
/** Accounts whose readings are remembered: each takes about 200 bytes for a crawler. */
const MAX_ACCOUNTS = 50;

/** The overview of an account is read a quarter of the time at most. */
const REST_FACTOR = 3;

interface Reading {
  readonly at: number;
  readonly counters: ReadonlyMap<string, CrawlerCounters>;
}

/** The reading that rates are measured from, and the one that takes its place later. */
interface Baseline {
  readonly from: Reading;
  readonly next: Reading;
}

/** Makes the reads. Rates are of what this process has read itself. */
export function createOverviews(deps: {
  readonly listings: Pick<ListingStore, 'crawlers'>;
  readonly clock: Clock;
  readonly attention: ReadAttention;
  readonly holds: Quotas['holds'];
  /** Default {@link MAX_CRAWLERS}. */
  readonly maxCrawlers?: number;
}): Overviews {
  const { maxCrawlers = MAX_CRAWLERS } = deps;
  const ofAccounts = createLruMap<string, Baseline>({ maxEntries: MAX_ACCOUNTS });
  const ofNames = createLruMap<string, Baseline>({ maxEntries: MAX_ACCOUNTS });

  function rated(
    baselines: LruMap<string, Baseline>,
    key: string,
    all: readonly CrawlerOverview[],
    holds: readonly CrawlHold[],
  ): AccountOverview {
    const now = deps.clock.now();
    const found = all.slice(0, maxCrawlers);
    const reading = {
      at: now.getTime(),
      counters: new Map(found.map(({ crawler, counters }) => [crawler.crawlerId, counters])),
    };
    const known = baselines.get(key);
    const isUsable = known !== undefined && reading.at - known.next.at <= MAX_APART_MS;
    const from = isUsable ? freshest(known, reading.at) : undefined;
    if (from === undefined) baselines.set(key, { from: reading, next: reading });
    else if (reading.at - from.next.at >= WINDOW_MS) {
      baselines.set(key, { from: from.next, next: reading });
    } else baselines.set(key, from);
    return {
      observedAt: now,
      crawlers: found.map((each) => ({
        ...each,
        rates: ratesSince(from?.from, reading, each),
        attention: deps.attention(each, holds),
      })),
      isPartial: all.length > found.length,
    };
  }

  async function readAll(accountIds: readonly string[]): Promise<Map<string, AccountOverview>> {
    const [found, holds] = await Promise.all([
      deps.listings.crawlers(accountIds, maxCrawlers + 1),
      Promise.all(accountIds.map(deps.holds)),
    ]);
    const byAccount = Map.groupBy(found, ({ crawler }) => crawler.accountId);
    return new Map(
      accountIds.map((id, n) => [
        id,
        rated(ofAccounts, id, byAccount.get(id) ?? [], holds[n] ?? []),
      ]),
    );
  }

  const read = createSharedLookup<AccountOverview>(
    async (accountId) => {
      const overview = (await readAll([accountId])).get(accountId);
      return overview ?? { observedAt: deps.clock.now(), crawlers: [], isPartial: false };
    },
    { restFactor: REST_FACTOR },
  );

  return {
    read,
    readAll,
    async readNamed(accountId, text) {
      const wanted = text.toLowerCase();
      const [found, holds] = await Promise.all([
        deps.listings.crawlers([accountId], MAX_NAMED, wanted),
        deps.holds(accountId),
      ]);
      if (found.length === MAX_NAMED) return read(accountId);
      return rated(ofNames, `${accountId} ${wanted}`, found, holds);
    },
  };
}

/** A baseline whose older reading has aged is measured from its newer one. */
function freshest(known: Baseline, at: number): Baseline {
  return at - known.from.at > MAX_APART_MS ? { from: known.next, next: known.next } : known;
}

function ratesSince(
  from: Reading | undefined,
  to: Reading,
  { crawler, counters }: CrawlerOverview,
): ActivityRates | undefined {
  const before = from?.counters.get(crawler.crawlerId);
  if (from === undefined || before === undefined) return undefined;
  const measuredMs = to.at - from.at;
  if (measuredMs < MIN_APART_MS) return undefined;
  const perSecond = (count: number): number =>
    Math.max(0, Math.round((count * 100_000) / measuredMs) / 100);
  return {
    pushed: perSecond(counters.pushed - before.pushed),
    completed: perSecond(counters.completed - before.completed),
    failed: perSecond(counters.failed - before.failed),
    delivered: perSecond(counters.delivered - before.delivered),
    measuredMs,
  };
}

/** The sum of rates; undefined for an empty list. */
export function sumRates(rates: readonly (ActivityRates | undefined)[]): ActivityRates | undefined {
  const known = rates.filter((each) => each !== undefined);
  if (known.length === 0) return undefined;
  const sum = (of: (each: ActivityRates) => number): number =>
    Math.round(known.reduce((total, each) => total + of(each), 0) * 100) / 100;
  return {
    pushed: sum((each) => each.pushed),
    completed: sum((each) => each.completed),
    failed: sum((each) => each.failed),
    delivered: sum((each) => each.delivered),
    measuredMs: Math.max(...known.map((each) => each.measuredMs)),
  };
}
