import type { HeldUp } from '../../domain/attention.ts';
import { toWall } from '../../domain/clock.ts';
import { defined } from '../../domain/defined.ts';
import type { HostState } from '../../domain/host-state.ts';
import type { HostStore, QueuedHost } from '../host-store.ts';
import type { Collections } from './collections.ts';
import type { Lanes } from './lanes.ts';
import { isConflict, isDuplicate } from './mongo-errors.ts';
import { readPurges } from './queue-reads.ts';
import { removeJobs } from './queue-removals.ts';

/** Reports of processes that are read of one crawler. */
const MAX_REPORTS = 32;

interface LongestHosts {
  readonly hosts: readonly QueuedHost[];
  readonly counted: readonly { readonly total: number }[];
}

/** What is known of hosts, and the queue by host. */
export function createHosts(collections: Collections, lanes: Lanes): HostStore {
  const { jobs, hosts: known, time } = collections;

  const byHost = { $group: { _id: '$host', queued: { $sum: 1 }, nextDueAt: { $min: '$due' } } };

  return {
    async save(reports, now) {
      const at = toWall(time, now);
      const writes = reports.map(({ hosts, ...report }) => ({
        replaceOne: {
          filter: { _id: `${report.crawlerId}/${report.processId}` },
          replacement: { ...defined(report), hosts: JSON.stringify(hosts), at },
          upsert: true,
        },
      }));
      if (writes.length === 0) return;
      try {
        await known.bulkWrite(writes, { ordered: false });
      } catch (error) {
        // The next report follows soon.
        if (!isDuplicate(error) && !isConflict(error)) throw error;
      }
    },

    async reports(crawlerId) {
      const found = await known.find({ crawlerId }).sort({ at: -1 }).limit(MAX_REPORTS).toArray();
      return found.map(({ processId, hosts }) => {
        return { crawlerId, processId, hosts: JSON.parse(hosts) as HostState[] };
      });
    },

    async longest(crawlerId, limit) {
      const crawler = await readPurges(collections, crawlerId);
      if (crawler === null) return { hosts: [], total: 0 };
      const match = { crawlerId, queued: true, gen: crawler.purges };
      const order = { $sort: { queued: -1, _id: 1 } };
      const shown = { $project: { _id: 0, host: '$_id', queued: 1, nextDueAt: 1 } };
      const parts = { hosts: [order, { $limit: limit }, shown], counted: [{ $count: 'total' }] };
      const [found] = await jobs
        .aggregate<LongestHosts>([{ $match: match }, byHost, { $facet: parts }])
        .toArray();
      return { hosts: found?.hosts ?? [], total: found?.counted[0]?.total ?? 0 };
    },

    async purge(crawlerId, host, limit, now) {
      const which = (gen: number) => ({ queued: true as const, gen, host });
      const removal = { crawlerId, which, limit, end: 'purged', now } as const;
      return (await removeJobs(collections, lanes, removal)).length;
    },
  };
}

/** What the latest reports say that holds up these crawlers, or any. */
export async function readHeldUp(
  { hosts }: Pick<Collections, 'hosts'>,
  crawlerIds?: readonly string[],
): Promise<ReadonlyMap<string, HeldUp>> {
  const which = crawlerIds === undefined ? {} : { crawlerId: { $in: [...crawlerIds] } };
  const found = await hosts
    .find({ ...which, heldUp: { $exists: true } }, { projection: { crawlerId: 1, heldUp: 1 } })
    .sort({ crawlerId: 1, at: 1 })
    .toArray();
  return new Map(found.flatMap(({ crawlerId, heldUp }) => (heldUp ? [[crawlerId, heldUp]] : [])));
}
