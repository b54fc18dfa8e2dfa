import type { TokenOwner } from '../../domain/account.ts';
import { type CrawlerCounters, type CrawlerMoments, counterNames } from '../../domain/crawler.ts';
import { isInternal } from '../../domain/crawler-name.ts';
import type { PushLimits } from '../../store/store.ts';
import { type AccountOverview, type ActivityRates, type Overviews, sumRates } from './overviews.ts';

/** Whether an account may push. */
export interface AdmissionState {
  /** Waiting and retrying URLs of all crawlers. */
  readonly queued: number;
  readonly limits: PushLimits;
  readonly pushesPaused: boolean;
  /** The first by name of those whose queue is full, {@link MAX_FULL} at most. */
  readonly fullCrawlers: readonly string[];
  /** 0 for no limit. */
  readonly pushesPerSecond: number;
}

/** What an account does. */
export interface AccountActivity {
  readonly observedAt: Date;
  readonly admission: AdmissionState;
  readonly running: number;
  /** Paused by both counts as by the user. */
  readonly pausedByUser: number;
  readonly pausedByMonitor: number;
  /** Over all crawlers, those of the service itself included. */
  readonly totals: CrawlerCounters;
  readonly rates: ActivityRates | undefined;
  readonly concurrency: number;
}

/** Says what an account does, over both tokens. */
export interface AccountActivities {
  read(owner: TokenOwner): Promise<AccountActivity>;
  /** The same, of an overview that has been read. */
  of(overview: AccountOverview): AccountActivity;
}

const MAX_FULL = 20;

/** Makes the use case. */
export function createAccountActivities(deps: {
  readonly overviews: Pick<Overviews, 'read'>;
  readonly limits: PushLimits;
  readonly pushesPerSecond: number;
}): AccountActivities {
  const { limits, pushesPerSecond } = deps;

  function of({ observedAt, crawlers }: AccountOverview): AccountActivity {
    const own = crawlers.filter(({ crawler }) => !isInternal(crawler));
    const byUser = own.filter(({ crawler }) => crawler.pausedByUser).length;
    const byMonitor = own.filter(
      ({ crawler }) => crawler.pausedByMonitor && !crawler.pausedByUser,
    ).length;
    const totals = sumCounters(crawlers.map(({ counters }) => counters));
    const queued = totals.waiting + totals.retrying;
    const full = own.filter(
      ({ counters }) => counters.waiting + counters.retrying >= limits.crawlerQueue,
    );
    return {
      observedAt,
      admission: {
        queued,
        limits,
        pushesPaused: queued > limits.accountQueue,
        fullCrawlers: full.slice(0, MAX_FULL).map(({ crawler }) => crawler.name),
        pushesPerSecond,
      },
      running: own.length - byUser - byMonitor,
      pausedByUser: byUser,
      pausedByMonitor: byMonitor,
      totals,
      rates: sumRates(crawlers.map(({ rates }) => rates)),
      concurrency: own.reduce((sum, { crawler }) => sum + crawler.concurrency, 0),
    };
  }

  return { of, read: async ({ account }) => of(await deps.overviews.read(account.accountId)) };
}

function sumCounters(all: readonly CrawlerCounters[]): CrawlerCounters {
  const numbers = counterNames.map(
    (name) => [name, all.reduce((sum, each) => sum + each[name], 0)] as const,
  );
  const latest = (moment: keyof CrawlerMoments): CrawlerMoments => {
    const times = all.flatMap(({ last }) => last[moment]?.getTime() ?? []);
    return times.length === 0 ? {} : { [moment]: new Date(Math.max(...times)) };
  };
  return {
    ...(Object.fromEntries(numbers) as Record<(typeof counterNames)[number], number>),
    delivered: all.reduce((sum, each) => sum + each.delivered, 0),
    failing: {},
    last: { ...latest('push'), ...latest('crawl'), ...latest('delivery'), ...latest('probe') },
  };
}
