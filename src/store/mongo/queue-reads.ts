import type { QueuedJob } from '../../domain/job.ts';
import type { Collections } from './collections.ts';
import { toJob } from './job-document.ts';

/** See `QueueStore.overdue`. */
export async function overdue(
  collections: Collections,
  now: Date,
  limit: number,
): Promise<QueuedJob[]> {
  for (;;) {
    const found = await collections.jobs
      .find({ expires: true, queueDeadline: { $lte: now } })
      .sort({ queueDeadline: 1 })
      .limit(limit)
      .toArray();
    if (found.length === 0) return [];
    const ids = [...new Set(found.map((each) => each.crawlerId))];
    const crawlers = await collections.crawlers
      .find({ _id: { $in: ids } }, { projection: { purges: 1 } })
      .toArray();
    const purges = new Map(crawlers.map((each) => [each._id, each.purges]));
    const isGone = ({ crawlerId, gen }: (typeof found)[number]): boolean =>
      gen !== purges.get(crawlerId);
    // Leftovers of a removal or a purge must not delay the jobs behind them.
    const gone = found.filter(isGone).map((each) => each._id);
    if (gone.length > 0) await collections.jobs.deleteMany({ _id: { $in: gone }, queued: true });
    const due = found.filter((each) => !isGone(each));
    if (due.length > 0 || found.length < limit) return due.map(toJob);
  }
}

/** How often the crawler was purged; null when it is gone. */
export function readPurges(collections: Collections, crawlerId: string) {
  return collections.crawlers.findOne({ _id: crawlerId }, { projection: { purges: 1 } });
}

/** See `QueueStore.crawlersWithWorkDue`. */
export async function crawlersWithWorkDue(
  collections: Collections,
  now: Date,
  limit: number,
): Promise<string[]> {
  const due = await collections.crawlers
    .find({ wakeAt: { $lte: now } }, { projection: { _id: 1 } })
    .sort({ wakeAt: 1 })
    .limit(limit)
    .toArray();
  return due.map((each) => each._id);
}

/** See `QueueStore.find`. */
export async function findJob(
  collections: Collections,
  crawlerId: string,
  rid: string,
): Promise<QueuedJob | undefined> {
  const [crawler, document] = await Promise.all([
    readPurges(collections, crawlerId),
    collections.jobs.findOne({ _id: rid, crawlerId }),
  ]);
  if (crawler === null || document === null) return undefined;
  const purged = document.state !== 'running' && document.gen < crawler.purges;
  return purged ? undefined : toJob(document);
}

/** See `QueueStore.countScheduled`. */
export async function countScheduled(
  collections: Collections,
  crawlerId: string,
  now: Date,
): Promise<number> {
  const crawler = await readPurges(collections, crawlerId);
  if (crawler === null) return 0;
  const { purges: gen } = crawler;
  return collections.jobs.countDocuments({ crawlerId, gen, notBefore: { $gt: now } });
}
