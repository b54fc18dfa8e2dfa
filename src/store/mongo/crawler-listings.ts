import { LEAST_STREAK } from '../../domain/attention.ts';
import { hasNameCharacters } from '../../domain/crawler-name.ts';
import type { CrawlerOverview, ListingStore } from '../listing-store.ts';
import type { Collections, CrawlerDocument } from './collections.ts';
import { readParts, sumParts } from './counts-document.ts';
import { toCounters, toCrawler } from './crawler-document.ts';
import { findIds } from './find-ids.ts';
import { readHeldUp } from './hosts.ts';

/** The crawlers of accounts, and those in trouble, with their counters. */
export function createCrawlerListings(
  collections: Collections,
): Pick<ListingStore, 'crawlers' | 'troubled'> {
  async function crawlersOf(
    ids: readonly string[],
    limit: number,
    nameContains = '',
  ): Promise<CrawlerDocument[]> {
    // The database refuses an expression with a NUL.
    if (!hasNameCharacters(nameContains)) return [];
    const name = { $regex: nameContains.replaceAll(/\W/g, String.raw`\$&`), $options: 'i' };
    const found = await collections.crawlers
      .find({ accountId: { $in: [...ids] }, ...(nameContains === '' ? {} : { name }) })
      .sort({ accountId: 1, name: 1 })
      .limit(limit * ids.length)
      .toArray();
    if (ids.length === 1) return found;
    if (found.length < limit * ids.length) {
      const byAccount = [...Map.groupBy(found, (each) => each.accountId).values()];
      return byAccount.flatMap((own) => own.slice(0, limit));
    }
    // Accounts with more may have taken the places of others.
    const alone: CrawlerDocument[] = [];
    for (const accountId of ids)
      alone.push(...(await crawlersOf([accountId], limit, nameContains)));
    return alone;
  }

  async function overviews(found: readonly CrawlerDocument[]): Promise<CrawlerOverview[]> {
    if (found.length === 0) return [];
    const ids = found.map(({ _id }) => _id);
    const [parts, heldUp] = await Promise.all([
      readParts(collections, ids),
      readHeldUp(collections, ids),
    ]);
    return found.map((each) => {
      const { _id } = each;
      return {
        crawler: toCrawler(each),
        counters: toCounters(each, parts.get(_id), heldUp.get(_id)),
      };
    });
  }

  return {
    crawlers: async (accountIds, limit, nameContains) =>
      overviews(await crawlersOf(accountIds, limit, nameContains)),

    async troubled({ queueLimit, heldAccounts }, limit) {
      const isEach = heldAccounts === 'all';
      const [paused, held] = await Promise.all([
        findIds(collections.crawlers, { pausedByMonitor: true }),
        isEach ? [] : findIds(collections.crawlers, { accountId: { $in: [...heldAccounts] } }),
      ]);
      const [counted, heldUp] = await Promise.all([
        troubledCounts(collections, isEach ? 1 : queueLimit, held),
        readHeldUp(collections),
      ]);
      const ids = new Set([...paused, ...counted, ...heldUp.keys()]);
      const found = await collections.crawlers
        .find({ _id: { $in: [...ids].toSorted().slice(0, limit) } })
        .toArray();
      return overviews(found);
    },
  };
}

/**
 * Crawlers whose parts have many failed tries or queued jobs, or any queued job if they are among
 * `held`. Jobs of an earlier purge count, too.
 */
async function troubledCounts(
  collections: Collections,
  queueLimit: number,
  held: readonly string[],
): Promise<string[]> {
  const queued = { $add: ['$waiting', '$retrying'] };
  const sums = await sumParts(collections, 'crawlerId', ['waiting', 'retrying'], {
    paths: { crawl: 'failing.crawl.count', delivery: 'failing.delivery.count' },
    where: {
      $or: [
        { $expr: { $gte: [queued, queueLimit] } },
        { _id: { $in: [...held] }, $expr: { $gt: [queued, 0] } },
        { crawl: { $gte: LEAST_STREAK.crawl } },
        { delivery: { $gte: LEAST_STREAK.delivery } },
      ],
    },
  });
  return sums.map(({ _id }) => _id);
}
