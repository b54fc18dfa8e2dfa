import { toWall } from '../../domain/clock.ts';
import type { HostState } from '../../domain/host-state.ts';
import type { HostStore, QueuedHost } from '../host-store.ts';
import type { Collections } from './collections.ts';
import type { Lanes } from './lanes.ts';
import { isConflict, isDuplicate } from './mongo-errors.ts';
import { freeKeys } from './unique-keys.ts';

/** Reports of processes that are read of one crawler. */
const MAX_REPORTS = 32;

interface Group {
  readonly _id: string;
  readonly queued: number;
  readonly nextDueAt: Date;
}

/** What is known of hosts, and the queue by host. */
export function createHosts(collections: Collections, lanes: Lanes): HostStore {
  const { crawlers, jobs, hosts: known, time } = collections;

  /** Matches the queue of a crawler; undefined if there is no such crawler. */
  async function queueOf(crawlerId: string) {
    const crawler = await crawlers.findOne(
      { _id: crawlerId },
      { projection: { accountId: 1, purges: 1 } },
    );
    if (crawler === null) return undefined;
    const { accountId, purges: gen } = crawler;
    return { accountId, gen, match: { crawlerId, queued: true as const, gen } };
  }

  const byHost = { $group: { _id: '$host', queued: { $sum: 1 }, nextDueAt: { $min: '$due' } } };

  return {
    async save(reports, now) {
      const at = toWall(time, now);
      const writes = reports.map(({ crawlerId, processId, hosts }) => ({
        updateOne: {
          filter: { _id: `${crawlerId}/${processId}` },
          update: { $set: { crawlerId, processId, hosts: JSON.stringify(hosts), at } },
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
      const queue = await queueOf(crawlerId);
      if (queue === undefined) return { hosts: [], total: 0 };
      const groups = [{ $match: queue.match }, byHost];
      const order = { $sort: { queued: -1, _id: 1 } };
      const [found, counted] = await Promise.all([
        jobs.aggregate<Group>([...groups, order, { $limit: limit }]).toArray(),
        jobs.aggregate<{ total: number }>([...groups, { $count: 'total' }]).toArray(),
      ]);
      return { hosts: found.map(toQueuedHost), total: counted[0]?.total ?? 0 };
    },

    purge: (crawlerId, host, limit, now) =>
      lanes.runExclusive(crawlerId, () =>
        lanes.untilWritten(async () => {
          const queue = await queueOf(crawlerId);
          if (queue === undefined) return 0;
          const { accountId, gen, match } = queue;
          const lane = await lanes.enlist(crawlerId, 'turn', now);
          await lanes.raise(crawlerId, gen, now);
          return lanes.unblocked(crawlerId, () =>
            lanes.write(lane, { gen, accountId, now }, async (session, delta) => {
              const found = await jobs
                .find(
                  { ...match, host },
                  { projection: { state: 1, size: 1, uniqueKey: 1 }, session },
                )
                .limit(limit)
                .toArray();
              const ids = found.map(({ _id }) => _id);
              // What another write has changed since the snapshot is a conflict.
              const removed = await jobs.deleteMany(
                { _id: { $in: ids }, queued: true },
                { session },
              );
              if (removed.deletedCount !== ids.length) throw new Error('jobs were not removed');
              const keys = found.map(({ _id: rid, uniqueKey }) => ({ rid, uniqueKey }));
              await freeKeys(collections, crawlerId, keys, session);
              for (const { state, size = 0 } of found) delta.purge({ state, size });
              return ids.length;
            }),
          );
        }),
      ),
  };
}

function toQueuedHost({ _id: host, queued, nextDueAt }: Group): QueuedHost {
  return { host, queued, nextDueAt };
}
