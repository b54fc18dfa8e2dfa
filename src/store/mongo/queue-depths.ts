import { earliest, type QueueDepths } from '../queue-depth.ts';
import type { Collections, CrawlerDocument } from './collections.ts';

/** Crawlers whose oldest job is looked up: so many steps in an index for each reading. */
const LOOKED_AT = 100;

const FIELDS = { accountId: 1, name: 1, live: 1, running: 1, retrying: 1, purges: 1 } as const;

type Found = Pick<CrawlerDocument, '_id' | keyof typeof FIELDS>;

/** What the queues hold, see `StatsStore.queueDepths`. */
export async function queueDepths(collections: Collections, limit: number): Promise<QueueDepths> {
  const [[sums], found] = await Promise.all([
    collections.crawlers
      .aggregate<Pick<CrawlerDocument, 'live' | 'running' | 'retrying'>>([
        {
          $group: {
            _id: null,
            live: { $sum: '$live' },
            running: { $sum: '$running' },
            retrying: { $sum: '$retrying' },
          },
        },
      ])
      .toArray(),
    collections.crawlers
      .find<Found>({ live: { $gt: 0 } }, { projection: FIELDS })
      .sort({ live: -1, _id: 1 })
      .limit(LOOKED_AT)
      .toArray(),
  ]);
  const accounts = await accountNames(collections, found);
  const depths = await Promise.all(
    found.map(async (crawler) => ({
      account: accounts.get(crawler.accountId) ?? '',
      crawler: crawler.name,
      ...counts(crawler),
      oldestDueAt: await oldestDueAt(collections, crawler),
    })),
  );
  return {
    total: {
      ...counts(sums ?? { live: 0, running: 0, retrying: 0 }),
      oldestDueAt: earliest(depths.map((each) => each.oldestDueAt)),
    },
    longest: depths.slice(0, limit),
  };
}

function counts({ live, running, retrying }: Pick<Found, 'live' | 'running' | 'retrying'>) {
  return { waiting: Math.max(live - running - retrying, 0), retrying, running };
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

async function oldestDueAt(
  collections: Collections,
  { _id: crawlerId, purges: gen }: Found,
): Promise<Date | undefined> {
  const oldest = await collections.jobs.findOne(
    { crawlerId, gen, queued: true },
    { projection: { due: 1 }, sort: { due: 1, _id: 1 } },
  );
  return oldest?.due;
}
