import type { QueueStore } from '../store.ts';
import type { Collections } from './collections.ts';
import { findIds } from './find-ids.ts';
import { toJob } from './job-document.ts';

/** How often the crawler was purged, and whose it is; null when it is gone. */
export function readPurges({ crawlers }: Pick<Collections, 'crawlers'>, crawlerId: string) {
  return crawlers.findOne({ _id: crawlerId }, { projection: { purges: 1, accountId: 1 } });
}

/** Reads of the queue outside of a run. */
export function createQueueReads(
  collections: Collections,
): Pick<QueueStore, 'overdue' | 'crawlersWithWorkDue' | 'find' | 'countScheduled'> {
  const { crawlers, jobs } = collections;
  return {
    async overdue(now, limit) {
      for (;;) {
        const found = await jobs
          .find({ expires: true, queueDeadline: { $lte: now } })
          .sort({ queueDeadline: 1 })
          .limit(limit)
          .toArray();
        if (found.length === 0) return [];
        const ids = [...new Set(found.map((each) => each.crawlerId))];
        const owners = await crawlers
          .find({ _id: { $in: ids } }, { projection: { purges: 1 } })
          .toArray();
        const purges = new Map(owners.map((each) => [each._id, each.purges]));
        const isGone = ({ crawlerId, gen }: (typeof found)[number]): boolean =>
          gen !== purges.get(crawlerId);
        // Leftovers of a removal or a purge must not delay the jobs behind them.
        const gone = found.filter(isGone).map((each) => each._id);
        if (gone.length > 0) await jobs.deleteMany({ _id: { $in: gone }, queued: true });
        const due = found.filter((each) => !isGone(each));
        if (due.length > 0 || found.length < limit) return due.map(toJob);
      }
    },

    crawlersWithWorkDue: (now, limit) =>
      findIds(crawlers, { wakeAt: { $lte: now } }, { sort: { wakeAt: 1 }, limit }),

    async find(crawlerId, rid) {
      const [crawler, document] = await Promise.all([
        readPurges(collections, crawlerId),
        jobs.findOne({ _id: rid, crawlerId }),
      ]);
      if (crawler === null || document === null) return undefined;
      const purged = document.state !== 'running' && document.gen < crawler.purges;
      return purged ? undefined : toJob(document);
    },

    async countScheduled(crawlerId, now) {
      const crawler = await readPurges(collections, crawlerId);
      if (crawler === null) return 0;
      return jobs.countDocuments({ crawlerId, gen: crawler.purges, notBefore: { $gt: now } });
    },
  };
}
