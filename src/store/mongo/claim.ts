import type { QueuedJob } from '../../domain/job.ts';
import type { Lease, QueueStore } from '../store.ts';
import type { Collections, CrawlerDocument, JobDocument } from './collections.ts';
import { createDelta, toUpdate } from './counts.ts';
import { toJob, untriedUpdate } from './job-document.ts';
import { currentLease } from './lease.ts';
import { countInAccount, type Ledger } from './ledger.ts';
import { recount } from './recount.ts';

// A claim that meets a concurrent push or purge starts again. After this many tries it leaves the
// jobs to the next claim.
const TRIES = 3;
const RECOUNT_EVERY_MS = 10_000;
const MAX_REMEMBERED = 1_000;

/** What a claim asks for. */
interface ClaimRequest {
  readonly lease: Lease;
  readonly limit: number;
  readonly now: Date;
  readonly maxBytes: number;
}

const READ_FIELDS = {
  pausedByUser: 1,
  pausedByMonitor: 1,
  pending: 1,
  accountId: 1,
  recounts: 1,
  purges: 1,
  miscounted: 1,
} as const;

type ReadCrawler = Pick<CrawlerDocument, '_id' | keyof typeof READ_FIELDS>;

/** Creates `QueueStore.claim`. */
export function createClaim(collections: Collections, ledger: Ledger): QueueStore['claim'] {
  const recountMiscounted = createRareRecount(collections);

  async function claim(request: ClaimRequest): ReturnType<QueueStore['claim']> {
    const { lease, now } = request;
    for (let n = 0; n < TRIES; n++) {
      const crawler: ReadCrawler | null = await collections.crawlers.findOne(
        currentLease(lease, now),
        { projection: READ_FIELDS },
      );
      if (crawler === null) return { jobs: [], leaseLost: true };
      if (crawler.miscounted === true) await recountMiscounted(lease.crawlerId, now);
      if (crawler.pausedByUser || crawler.pausedByMonitor) return { jobs: [], leaseLost: false };
      const jobs = await claimOnce(collections, ledger, crawler, request);
      if (jobs !== undefined) return { jobs, leaseLost: false };
    }
    return { jobs: [], leaseLost: false };
  }

  return (lease, limit, now, maxBytes = Number.POSITIVE_INFINITY) =>
    ledger.runExclusive(lease.crawlerId, () => claim({ lease, limit, now, maxBytes }));
}

/**
 * Recounts a crawler that was found miscounted. Not with every claim, because a recount may fail
 * while there are many pushes.
 */
function createRareRecount(collections: Collections) {
  const recountedAt = new Map<string, number>();
  return async (crawlerId: string, now: Date): Promise<void> => {
    const since = performance.now() - (recountedAt.get(crawlerId) ?? Number.NEGATIVE_INFINITY);
    if (since < RECOUNT_EVERY_MS) return;
    if (recountedAt.size >= MAX_REMEMBERED) recountedAt.clear();
    recountedAt.set(crawlerId, performance.now());
    await recount(collections, crawlerId, now, true);
  };
}

/** Claims jobs; undefined when the crawler changed meanwhile and nothing was claimed. */
async function claimOnce(
  collections: Collections,
  ledger: Ledger,
  crawler: ReadCrawler,
  request: ClaimRequest,
): Promise<QueuedJob[] | undefined> {
  const { lease, now } = request;
  const { crawlerId } = lease;
  const found = await findDue(collections, crawler, request);
  if (found.length === 0) return [];
  const writeId = ledger.newWriteId();
  const rids = found.map((each) => each._id);
  const giveBack = () =>
    collections.jobs.updateMany(
      { _id: { $in: rids }, mark: writeId, state: 'running' },
      untriedUpdate(writeId),
    );
  try {
    const won = await take(collections, found, writeId, request);
    if (won.length === 0) return [];
    if (!(await countClaimed(collections, crawler, won, request))) {
      await giveBack();
      const after = await collections.crawlers.findOne(
        { _id: crawlerId },
        { projection: { recounts: 1 } },
      );
      const recounted = after !== null && after.recounts !== crawler.recounts;
      if (recounted) await recount(collections, crawlerId, now);
      return undefined;
    }
    await countInAccount(collections, crawler.accountId, { queued: -won.length });
    return won.map((document): QueuedJob => {
      const job = toJob(document);
      const firstTriedAt = job.firstTriedAt ?? now;
      return { ...job, state: 'running', attempt: job.attempt + 1, firstTriedAt };
    });
  } catch (error) {
    // The caller gets no jobs, so they are returned before the crawler's next operation.
    await ledger.tidy(crawlerId, giveBack);
    throw error;
  }
}

/** The due jobs of counted pushes whose bodies have at most `maxBytes` together, but at least one. */
async function findDue(
  collections: Collections,
  crawler: ReadCrawler,
  { limit, now, maxBytes }: ClaimRequest,
): Promise<JobDocument[]> {
  const pending = crawler.pending.map((each) => each.id);
  const cursor = collections.jobs
    .find({
      crawlerId: crawler._id,
      queued: true,
      gen: crawler.purges,
      due: { $lte: now },
      ...(pending.length > 0 ? { push: { $nin: pending } } : {}),
      $or: [{ expires: { $exists: false } }, { queueDeadline: { $gt: now } }],
    })
    .sort({ due: 1, _id: 1 })
    .limit(limit);
  const found: JobDocument[] = [];
  let bytes = 0;
  // Leaving the loop closes the cursor.
  for await (const document of cursor) {
    bytes += document.body?.length() ?? 0;
    if (found.length > 0 && bytes > maxBytes) break;
    found.push(document);
  }
  return found;
}

/** Sets the jobs running, and returns those that were still in the queue. */
async function take(
  collections: Collections,
  found: readonly JobDocument[],
  writeId: string,
  { lease, now }: ClaimRequest,
): Promise<JobDocument[]> {
  const rids = found.map((each) => each._id);
  const { modifiedCount } = await collections.jobs.updateMany(
    { _id: { $in: rids }, queued: true },
    [
      {
        $set: {
          state: 'running',
          attempt: { $add: ['$attempt', 1] },
          epoch: lease.epoch,
          mark: writeId,
          firstTriedAt: { $ifNull: ['$firstTriedAt', now] },
        },
      },
      { $unset: ['queued', 'expires'] },
    ],
  );
  if (modifiedCount === found.length) return [...found];
  const marked = await collections.jobs
    .find({ _id: { $in: rids }, mark: writeId }, { projection: { _id: 1 } })
    .toArray();
  const taken = new Set(marked.map((each) => each._id));
  return found.filter((each) => taken.has(each._id));
}

/**
 * Counts the jobs as running; false if the lease was lost or the crawler changed since it was read.
 * A push that reserved room since then is not counted yet; a purge or recount since then did not see
 * these jobs as running.
 */
async function countClaimed(
  collections: Collections,
  { recounts, purges }: ReadCrawler,
  won: readonly JobDocument[],
  { lease, now }: ClaimRequest,
): Promise<boolean> {
  const delta = createDelta(now);
  delta.add('running', won.length);
  delta.add('retrying', -won.filter((each) => each.retry > 0).length);
  delta.add(
    'runningBytes',
    won.reduce((sum, { size = 0 }) => sum + size, 0),
  );
  const pushes = [...new Set(won.map((each) => each.push))];
  const unchanged = { recounts, purges, 'pending.id': { $nin: pushes } };
  const { matchedCount } = await collections.crawlers.updateOne(
    { ...currentLease(lease, now), ...unchanged },
    toUpdate(delta),
  );
  return matchedCount > 0;
}
