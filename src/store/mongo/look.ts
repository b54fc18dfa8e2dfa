import type { DueJob } from '../../domain/job.ts';
import type { QueueLook, TurnReceipt } from '../store.ts';
import type { Collections } from './collections.ts';
import { toJob } from './job-document.ts';
import type { KnownJobs } from './job-facts.ts';
import type { CrawlerState } from './ledger.ts';

/** Finds due jobs of counted pushes; see `QueueLook`. */
export async function look(
  collections: Collections,
  known: KnownJobs,
  { _id: crawlerId, purges, pending }: CrawlerState,
  { limit, maxBytes = Number.POSITIVE_INFINITY, except = [] }: QueueLook,
  now: Date,
): Promise<Pick<TurnReceipt, 'jobs' | 'hasMore' | 'nextDueAt'>> {
  const pushes = pending.map((each) => each.id);
  const cursor = collections.jobs
    .find({
      crawlerId,
      queued: true,
      gen: purges,
      ...(except.length > 0 ? { _id: { $nin: [...except] } } : {}),
      ...(pushes.length > 0 ? { push: { $nin: pushes } } : {}),
      $or: [{ expires: { $exists: false } }, { queueDeadline: { $gt: now } }],
    })
    .sort({ due: 1, _id: 1 })
    .limit(limit);
  const jobs: DueJob[] = [];
  let bytes = 0;
  // Leaving the loop closes the cursor.
  for await (const document of cursor) {
    const dueAt = document.due;
    if (dueAt > now) return { jobs, hasMore: false, nextDueAt: dueAt };
    bytes += document.size ?? document.body?.length() ?? 0;
    if (jobs.length > 0 && bytes > maxBytes) return { jobs, hasMore: true, nextDueAt: undefined };
    known.note(document._id, document);
    jobs.push({ ...toJob(document), dueAt });
  }
  return { jobs, hasMore: jobs.length >= limit, nextDueAt: undefined };
}
