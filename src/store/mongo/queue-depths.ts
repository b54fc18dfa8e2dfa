import { earliest, type QueueDepths } from '../queue-depth.ts';
import type { Collections, CrawlerDocument } from './collections.ts';
import { type CountsSum, sumParts } from './counts-document.ts';
import { nextJob } from './lease.ts';

/** Most crawlers whose oldest job is looked up; each is one step in an index for each reading. */
const LOOKED_AT = 100;

const FIELDS = {
  accountId: 1,
  name: 1,
  purges: 1,
  pausedByUser: 1,
  pausedByMonitor: 1,
} as const;

type Depth = Pick<CountsSum, 'waiting' | 'retrying' | 'running'>;
type Found = Pick<CrawlerDocument, '_id' | keyof typeof FIELDS>;

/** What the queues hold, see `StatsStore.queueDepths`. */
export async function queueDepths(collections: Collections, limit: number): Promise<QueueDepths> {
  const sums = await sumParts(collections, 'crawlerId', ['waiting', 'retrying', 'running']);
  const total = { waiting: 0, retrying: 0, running: 0 };
  for (const each of sums) {
    total.waiting += Math.max(each.waiting, 0);
    total.retrying += Math.max(each.retrying, 0);
    total.running += Math.max(each.running, 0);
  }
  const live = (each: Depth): number => each.waiting + each.retrying + each.running;
  const longest = sums
    .filter((each) => live(each) > 0)
    .sort((a, b) => live(b) - live(a) || (a._id < b._id ? -1 : 1))
    .slice(0, LOOKED_AT);
  const found: Found[] = await collections.crawlers
    .find({ _id: { $in: longest.map(({ _id }) => _id) } }, { projection: FIELDS })
    .toArray();
  const known = new Map(found.map((each) => [each._id, each]));
  const accounts = await accountNames(collections, found);
  const depths = await Promise.all(
    longest.flatMap(({ _id, waiting, retrying, running }) => {
      const crawler = known.get(_id);
      if (crawler === undefined) return [];
      return (async () => ({
        account: accounts.get(crawler.accountId) ?? '',
        crawler: crawler.name,
        waiting: Math.max(waiting, 0),
        retrying: Math.max(retrying, 0),
        running: Math.max(running, 0),
        oldestDueAt: isPaused(crawler) ? undefined : await nextJob(collections, crawler),
      }))();
    }),
  );
  return {
    total: { ...total, oldestDueAt: earliest(depths.map((each) => each.oldestDueAt)) },
    longest: depths.slice(0, limit),
  };
}

async function accountNames(
  collections: Collections,
  crawlers: readonly Found[],
): Promise<Map<string, string>> {
  const ids = [...new Set(crawlers.map((each) => each.accountId))];
  const accounts = await collections.accounts
    .find({ _id: { $in: ids } }, { projection: { name: 1 } })
    .toArray();
  return new Map(accounts.map(({ _id, name }) => [_id, name]));
}

function isPaused({ pausedByUser, pausedByMonitor }: Found): boolean {
  return pausedByUser || pausedByMonitor;
}
