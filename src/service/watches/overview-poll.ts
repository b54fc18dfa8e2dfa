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
}

/** Reads the accounts that somebody watches: one query an interval for all of them. */
export interface OverviewPoll {
  /**
   * Yields snapshots of an account: one at once, then the latest whenever it is asked for after
   * another reading. Throws what the reading throws if that fails for {@link PATIENCE} readings in
   * turn, and the signal's reason when it is aborted.
   */
  follow(accountId: string, signal: AbortSignal): AsyncGenerator<Snapshot, never, undefined>;
}

/** Readings that may fail in turn, as while the database is away for a moment. */
export const PATIENCE = 10;

interface Watched {
  watchers: number;
  snapshot: Snapshot | undefined;
}

/** Makes the poll. It has a timer while somebody watches. */
export function createOverviewPoll(deps: {
  readonly overviews: Pick<Overviews, 'readAll'>;
  /** Default 1,000. */
  readonly intervalMs?: number;
}): OverviewPoll {
  const { overviews, intervalMs = 1_000 } = deps;
  const watched = new Map<string, Watched>();
  let timer: NodeJS.Timeout | undefined;
  let reading: Promise<void> | undefined;
  let next = Promise.withResolvers<void>();
  let failures = 0;
  let failure: unknown;

  async function readWatched(): Promise<void> {
    try {
      const found = await overviews.readAll([...watched.keys()]);
      failures = 0;
      for (const [accountId, overview] of found) {
        const account = watched.get(accountId);
        if (account !== undefined) account.snapshot = toSnapshot(overview, account.snapshot);
      }
    } catch (error) {
      failures += 1;
      failure = error;
    }
    reading = undefined;
    next.resolve();
    next = Promise.withResolvers();
  }

  /** A reading that takes longer than the interval delays the next one. */
  function read(): Promise<void> {
    return (reading ??= readWatched());
  }

  function join(accountId: string): Watched {
    const account = watched.get(accountId) ?? { watchers: 0, snapshot: undefined };
    account.watchers += 1;
    watched.set(accountId, account);
    if (timer === undefined) {
      failures = 0;
      timer = setInterval(() => void read(), intervalMs).unref();
    }
    return account;
  }

  function leave(accountId: string, account: Watched): void {
    account.watchers -= 1;
    if (account.watchers > 0) return;
    watched.delete(accountId);
    if (watched.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  async function* follow(
    accountId: string,
    signal: AbortSignal,
  ): AsyncGenerator<Snapshot, never, undefined> {
    const account = join(accountId);
    try {
      let seen: Snapshot | undefined;
      for (;;) {
        if (account.snapshot !== undefined && account.snapshot !== seen) {
          seen = account.snapshot;
          yield seen;
        }
        if (failures >= (seen === undefined ? 1 : PATIENCE)) throw failure;
        await raceAbort(seen === undefined ? read() : next.promise, signal);
      }
    } finally {
      leave(accountId, account);
    }
  }

  return { follow };
}

function toSnapshot(overview: AccountOverview, before: Snapshot | undefined): Snapshot {
  const crawlers = overview.crawlers.map((row) => {
    const { crawlerId } = row.crawler;
    const known = before?.crawlers.get(crawlerId);
    const isSame = known !== undefined && isAlike(known, row);
    return [crawlerId, isSame ? known : row] as const;
  });
  return { observedAt: overview.observedAt, crawlers: new Map(crawlers) };
}

/** Whether nobody could tell them apart, but for how long their rates were measured. */
function isAlike(one: RatedCrawler, other: RatedCrawler): boolean {
  return fingerprint(one) === fingerprint(other);
}

function fingerprint({ crawler, counters, rates }: RatedCrawler): string {
  const { pushed, completed, failed, delivered } = rates ?? {};
  // Every change of a crawler changes `updatedAt`.
  return JSON.stringify([crawler.updatedAt, counters, pushed, completed, failed, delivered]);
}
