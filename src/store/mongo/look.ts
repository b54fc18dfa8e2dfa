import type { DueJob } from '../../domain/job.ts';
import type { QueueLook, TurnReceipt } from '../store.ts';
import type { Collections, CrawlerDocument, JobDocument } from './collections.ts';
import { toJob } from './job-document.ts';
import type { KnownJobs } from './job-facts.ts';
import type { CrawlerState, Ledger } from './ledger.ts';

/** A push that is older has been counted, or is among those that the crawler's reader knows. */
const YOUNG_MS = 10 * 60_000;

/** Finds due jobs of counted pushes; see `QueueLook`. */
export async function look(
  collections: Collections,
  countedPushes: Ledger['countedPushes'],
  known: KnownJobs,
  { _id: crawlerId, purges, pending }: CrawlerState,
  { limit, maxBytes = Number.POSITIVE_INFINITY, except = [], digits }: QueueLook,
  now: Date,
): Promise<Pick<TurnReceipt, 'jobs' | 'hasMore' | 'nextDueAt'>> {
  const pushes = pending.map((each) => each.id);
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
      ...(pushes.length > 0 ? { push: { $nin: pushes } } : {}),
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
  const young = now.getTime() - YOUNG_MS;
  const isCertain = ({ createdAt, push }: JobDocument): boolean =>
    createdAt.getTime() <= young || countedPushes.has(push);
  const counted = found.every(isCertain)
    ? found
    : await withoutPending(collections, crawlerId, found);
  for (const document of counted) known.note(document._id, document);
  const jobs = counted.map((document): DueJob => ({ ...toJob(document), dueAt: document.due }));
  return { jobs, hasMore, nextDueAt };
}

/**
 * Leaves out the jobs of pushes that are not counted yet. A push that reserved its room after the
 * crawler was read is not among those that the query has excluded; read now, the crawler still has
 * its entry, or the push is counted.
 */
async function withoutPending(
  collections: Collections,
  crawlerId: string,
  found: readonly JobDocument[],
): Promise<readonly JobDocument[]> {
  const crawler: Pick<CrawlerDocument, 'pending'> | null = await collections.crawlers.findOne(
    { _id: crawlerId },
    { projection: { pending: 1 } },
  );
  const pending = new Set(crawler?.pending.map((each) => each.id));
  return crawler === null ? [] : found.filter(({ push }) => !pending.has(push));
}
