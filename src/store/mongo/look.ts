import type { DueJob } from '../../domain/job.ts';
import type { QueueLook, TurnReceipt } from '../store.ts';
import type { Collections, CrawlerDocument, JobDocument } from './collections.ts';
import { toJob } from './job-document.ts';
import type { KnownJobs } from './job-facts.ts';

/** Finds due jobs; see `QueueLook`. */
export async function look(
  collections: Collections,
  known: KnownJobs,
  { _id: crawlerId, purges }: Pick<CrawlerDocument, '_id' | 'purges'>,
  { limit, maxBytes = Number.POSITIVE_INFINITY, except = [], digits }: QueueLook,
  now: Date,
): Promise<Pick<TurnReceipt, 'jobs' | 'hasMore' | 'nextDueAt'>> {
  // The jobs that the run has are the first in line. To leave them out here costs one comparison
  // each; for `$nin`, some servers compare every job in the queue with every rid.
  const has = new Set(except);
  const cursor = collections.jobs
    .find({
      crawlerId,
      queued: true,
      gen: purges,
      // The index of the sort has the rids.
      ...(digits === undefined ? {} : { _id: { $regex: `[${digits}]$` } }),
      $or: [{ expires: { $exists: false } }, { queueDeadline: { $gt: now } }],
    })
    .sort({ due: 1, _id: 1 })
    .limit(limit + has.size)
    .batchSize(limit + has.size);
  const found: JobDocument[] = [];
  let hasMore = false;
  let nextDueAt: Date | undefined;
  let bytes = 0;
  // Leaving the loop closes the cursor.
  for await (const document of cursor) {
    if (document.due > now) {
      nextDueAt = document.due;
      break;
    }
    if (has.has(document._id)) continue;
    bytes += document.size ?? document.body?.length() ?? 0;
    hasMore = found.length > 0 && bytes > maxBytes;
    if (hasMore) break;
    found.push(document);
    hasMore = found.length >= limit;
    if (hasMore) break;
  }
  for (const document of found) known.note(document._id, document);
  const jobs = found.map((document): DueJob => ({ ...toJob(document), dueAt: document.due }));
  return { jobs, hasMore, nextDueAt };
}
