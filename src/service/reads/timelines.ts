import type { TokenOwner } from '../../domain/account.ts';
import { type ServiceClock, wallNow } from '../../domain/clock.ts';
import { isInternal } from '../../domain/crawler-name.ts';
import { crawlerNotFound, invalidField } from '../../domain/errors.ts';
import { toDay } from '../../domain/stats.ts';
import {
  type TimelinePoint,
  type TimelineRange,
  timelineOf,
  timelineOfDays,
  timelineSteps,
} from '../../domain/timeline.ts';
import type { Store } from '../../store/store.ts';

/** The timeline of one crawler. */
export interface CrawlerTimeline {
  readonly name: string;
  /** Oldest first; the last one is not over. */
  readonly points: readonly TimelinePoint[];
}

/** Reads what crawlers did over time. */
export interface Timelines {
  /**
   * The timelines of crawlers of an account, of either token. Throws `invalid` for none or too many
   * names, and `not_found` for a crawler that does not exist.
   */
  read(
    owner: TokenOwner,
    names: readonly string[],
    range: TimelineRange,
  ): Promise<CrawlerTimeline[]>;
}

/** Most crawlers of one call. */
const MAX_CRAWLERS = 10;

/** Makes the use case. Its cost depends on the number of crawlers and the range only. */
export function createTimelines(deps: {
  readonly store: Pick<Store, 'crawlers' | 'stats'>;
  readonly clock: ServiceClock;
}): Timelines {
  const { crawlers, stats } = deps.store;

  async function find({ account }: TokenOwner, name: string): Promise<string> {
    const crawler = await crawlers.findByName(account.accountId, name);
    if (crawler === undefined || isInternal(crawler)) throw crawlerNotFound(name, 'crawlers');
    return crawler.crawlerId;
  }

  return {
    async read(owner, given, range) {
      const names = [...new Set(given)];
      if (names.length === 0 || names.length > MAX_CRAWLERS) {
        throw invalidField('crawlers', `crawlers must name 1 to ${MAX_CRAWLERS} crawlers.`);
      }
      const ids = await Promise.all(names.map((name) => find(owner, name)));
      const now = wallNow(deps.clock);
      const [from = now] = timelineSteps(range, now);
      if (range === 'quarter') {
        const days = await stats.history(ids, { from: toDay(from) });
        return names.map((name, at) => ({
          name,
          points: timelineOfDays(now, days.get(ids[at] ?? '') ?? []),
        }));
      }
      const samples = await stats.samples(['', ...ids], from);
      const taken = (samples.get('') ?? []).map(({ at }) => at);
      return names.map((name, at) => ({
        name,
        points: timelineOf(range, now, samples.get(ids[at] ?? '') ?? [], taken),
      }));
    },
  };
}
