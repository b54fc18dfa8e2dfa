import { raceAbort } from '../../domain/race-abort.ts';
import type { AccountOverview, Overviews, RatedCrawler } from '../reads/overviews.ts';

/**
 * What an account does, as it was last read. A crawler that has not changed since the reading before
 * is the same object in both.
 */
export interface Snapshot {
  readonly observedAt: Date;
  /** By `crawlerId`, in the order of names. */
  readonly crawlers: ReadonlyMap<string, RatedCrawler>;
  /** Whether the account has more. */
  readonly isPartial: boolean;
}

/**
 * Reads the accounts that somebody watches: one query an interval for all of them, or one for each
 * {@link MAX_ROWS} crawlers that they have.
 */
export interface OverviewPoll {
  /**
   * Yields snapshots of an account: one at once, then the latest whenever it is asked for after
   * another reading. Throws what the reading throws if that fails for {@link MAX_FAILED_READINGS} readings in
   * turn, and the signal's reason when it is aborted.
   */
  follow(accountId: string, signal: AbortSignal): AsyncGenerator<Snapshot, never, undefined>;
}

/** Consecutive readings that may fail, as while the database is unavailable for a moment. */
export const MAX_FAILED_READINGS = 10;

/** Crawlers that one query reads, unless a single account has more: other calls wait for it. */
const MAX_ROWS = 2_000;

/** What an account counts for that has not been read yet. */
const UNKNOWN_ROWS = 100;

/**
 * Readings take a tenth of the time at most: the next one waits this multiple of the time the last
 * one took.
 */
const PAUSE_FACTOR = 9;

interface Watched {
  watchers: number;
  snapshot: Snapshot | undefined;
}

/** Makes the poll. It has a timer while somebody watches. */
export function createOverviewPoll(deps: {
  readonly overviews: Overviews;
  /** Default 1,000. */
  readonly intervalMs?: number;
}): OverviewPoll {
  const { overviews, intervalMs = 1_000 } = deps;
  const watched = new Map<string, Watched>();
  /** Set while somebody watches and nothing is being read. */
  let timer: NodeJS.Timeout | undefined;
  let isReading = false;
  let next = Promise.withResolvers<void>();
  let failures = 0;
  let failure: unknown;

  async function read(accountIds: readonly string[]): Promise<void> {
    for (const [accountId, overview] of await overviews.readAll(accountIds)) {
      const account = watched.get(accountId);
      if (account !== undefined) account.snapshot = toSnapshot(overview, account.snapshot);
    }
  }

  async function readFirst(accountId: string, account: Watched): Promise<void> {
    const overview = await overviews.read(accountId);
    account.snapshot ??= toSnapshot(overview, undefined);
  }

  async function readWatched(): Promise<void> {
    timer = undefined;
    isReading = true;
    const startedAt = performance.now();
    try {
      for (const accountIds of inGroups(watched)) await read(accountIds);
      failures = 0;
    } catch (error) {
      failures += 1;
      failure = error;
    }
    isReading = false;
    schedule(Math.max(intervalMs, (performance.now() - startedAt) * PAUSE_FACTOR));
    next.resolve();
    next = Promise.withResolvers();
  }

  function schedule(waitMs: number): void {
    if (watched.size === 0 || isReading || timer !== undefined) return;
    timer = setTimeout(() => void readWatched(), waitMs).unref();
  }

  function join(accountId: string): Watched {
    const account = watched.get(accountId) ?? { watchers: 0, snapshot: undefined };
    account.watchers += 1;
    if (watched.size === 0) failures = 0;
    watched.set(accountId, account);
    schedule(intervalMs);
    return account;
  }

  function leave(accountId: string, account: Watched): void {
    account.watchers -= 1;
    if (account.watchers > 0) return;
    watched.delete(accountId);
    if (watched.size > 0) return;
    clearTimeout(timer);
    timer = undefined;
  }

  async function* follow(
    accountId: string,
    signal: AbortSignal,
  ): AsyncGenerator<Snapshot, never, undefined> {
    const account = join(accountId);
    try {
      if (account.snapshot === undefined) await raceAbort(readFirst(accountId, account), signal);
      let seen: Snapshot | undefined;
      for (;;) {
        if (account.snapshot !== undefined && account.snapshot !== seen) {
          seen = account.snapshot;
          yield seen;
        }
        if (failures >= MAX_FAILED_READINGS) throw failure;
        await raceAbort(next.promise, signal);
      }
    } finally {
      leave(accountId, account);
    }
  }

  return { follow };
}

/** The accounts of each query, by what they had when they were read before. */
function inGroups(watched: ReadonlyMap<string, Watched>): string[][] {
  const groups: string[][] = [];
  let rows = Number.POSITIVE_INFINITY;
  for (const [accountId, { snapshot }] of watched) {
    const own = snapshot?.crawlers.size ?? UNKNOWN_ROWS;
    if (rows + own > MAX_ROWS) {
      groups.push([]);
      rows = 0;
    }
    groups.at(-1)?.push(accountId);
    rows += own;
  }
  return groups;
}

function toSnapshot(overview: AccountOverview, before: Snapshot | undefined): Snapshot {
  const crawlers = overview.crawlers.map((row) => {
    const { crawlerId } = row.crawler;
    const known = before?.crawlers.get(crawlerId);
    const isSame = known !== undefined && isAlike(known, row);
    return [crawlerId, isSame ? known : row] as const;
  });
  const { observedAt, isPartial } = overview;
  return { observedAt, crawlers: new Map(crawlers), isPartial };
}

/** Whether nobody could tell them apart, but for how long their rates were measured. */
function isAlike(one: RatedCrawler, other: RatedCrawler): boolean {
  return fingerprint(one) === fingerprint(other);
}

function fingerprint({ crawler, counters, rates, attention }: RatedCrawler): string {
  const { pushed, completed, failed, delivered } = rates ?? {};
  // Every change of a crawler changes `updatedAt`.
  const read = [crawler.updatedAt, counters, attention];
  return JSON.stringify([...read, pushed, completed, failed, delivered]);
}
