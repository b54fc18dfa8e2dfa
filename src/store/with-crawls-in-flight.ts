import type { QueueDepth } from './queue-depth.ts';
import type { Store } from './store.ts';

type Counts = Pick<QueueDepth, 'waiting' | 'retrying' | 'running'>;

/**
 * The same store, for a process that has it to itself: who reads counters finds all crawls running
 * that are in flight (`inFlight`, by crawler), although a turn writes some starts late or not at all.
 */
export function withCrawlsInFlight(
  store: Store,
  inFlight: () => ReadonlyMap<string, number>,
): Store {
  const { crawlers, listings, stats } = store;
  return {
    ...store,
    crawlers: {
      ...crawlers,
      async counters(crawlerIds) {
        const found = await crawlers.counters(crawlerIds);
        const crawls = inFlight();
        return new Map(
          [...found].map(([id, counters]) => [id, withRunning(counters, crawls.get(id))] as const),
        );
      },
    },
    listings: {
      ...listings,
      async crawlers(accountIds, limit) {
        const found = await listings.crawlers(accountIds, limit);
        const crawls = inFlight();
        return found.map(({ crawler, counters }) => {
          return { crawler, counters: withRunning(counters, crawls.get(crawler.crawlerId)) };
        });
      },
    },
    stats: {
      ...stats,
      async queueDepths(limit) {
        const { total, longest } = await stats.queueDepths(limit);
        const crawls = inFlight();
        const all = [...crawls.values()].reduce((sum, each) => sum + each, 0);
        return {
          total: withRunning(total, all),
          longest: longest.map((each) => withRunning(each, crawls.get(each.crawlerId))),
        };
      },
    },
  };
}

/** The counts with at least so many running; the others are among those that wait. */
function withRunning<Counted extends Counts>(counts: Counted, inFlight = 0): Counted {
  const { waiting, retrying, running } = counts;
  const more = Math.min(Math.max(inFlight - running, 0), waiting + retrying);
  if (more === 0) return counts;
  const fromWaiting = Math.min(more, waiting);
  return {
    ...counts,
    waiting: waiting - fromWaiting,
    retrying: retrying - (more - fromWaiting),
    running: running + more,
  };
}
