import type { FindCursor } from 'mongodb';
import type { QueuedJob } from '../../domain/job.ts';
import type { Lease, QueueStore } from '../store.ts';
import type { Collections, CrawlerDocument, JobDocument } from './collections.ts';
import { createDelta, toUpdate } from './counts.ts';
import { toJob, untriedUpdate } from './job-document.ts';
import { currentLease } from './lease.ts';
import { countInAccount, type Ledger } from './ledger.ts';
import { recount } from './recount.ts';

type Claimed = Awaited<ReturnType<QueueStore['claim']>>;
type Read = Pick<CrawlerDocument, 'pending' | 'accountId' | 'recounts' | 'purges'>;

// A claim that meets a concurrent push or purge starts again. After this many tries it leaves the
// jobs to the next claim.
const TRIES = 3;
const RECOUNT_EVERY_MS = 10_000;
const MAX_REMEMBERED = 1_000;

/** Creates `QueueStore.claim`. */
export function createClaim(collections: Collections, ledger: Ledger): QueueStore['claim'] {
  const recountedAt = new Map<string, number>();

  /**
   * Recounts a crawler that was found miscounted. Not with every claim, because a recount may fail
   * while there are many pushes.
   */
  async function recountMiscounted(crawlerId: string, now: Date): Promise<void> {
    const since = performance.now() - (recountedAt.get(crawlerId) ?? Number.NEGATIVE_INFINITY);
    if (since < RECOUNT_EVERY_MS) return;
    if (recountedAt.size >= MAX_REMEMBERED) recountedAt.clear();
    recountedAt.set(crawlerId, performance.now());
    await recount(collections, crawlerId, now, true);
  }

  async function claimNow(
    lease: Lease,
    limit: number,
    now: Date,
    maxBytes: number,
  ): Promise<Claimed> {
    for (let n = 0; n < TRIES; n++) {
      const crawler = await collections.crawlers.findOne(currentLease(lease, now), {
        projection: {
          pausedByUser: 1,
          pausedByMonitor: 1,
          pending: 1,
          accountId: 1,
          recounts: 1,
          purges: 1,
          miscounted: 1,
        },
      });
      if (crawler === null) return { jobs: [], leaseLost: true };
      if (crawler.miscounted === true) await recountMiscounted(lease.crawlerId, now);
      if (crawler.pausedByUser || crawler.pausedByMonitor) return { jobs: [], leaseLost: false };
      const jobs = await claimOnce(crawler, lease, limit, now, maxBytes);
      if (jobs !== undefined) return { jobs, leaseLost: false };
    }
    return { jobs: [], leaseLost: false };
  }

  /** Undefined when the crawler changed meanwhile and nothing was claimed. */
  async function claimOnce(
    crawler: Read,
    lease: Lease,
    limit: number,
    now: Date,
    maxBytes: number,
  ): Promise<QueuedJob[] | undefined> {
    const { crawlerId, epoch } = lease;
    const { purges, recounts } = crawler;
    const pending = crawler.pending.map((each) => each.id);
    const cursor = collections.jobs
      .find({
        crawlerId,
        queued: true,
        gen: purges,
        due: { $lte: now },
        ...(pending.length > 0 ? { push: { $nin: pending } } : {}),
        $or: [{ expires: { $exists: false } }, { queueDeadline: { $gt: now } }],
      })
      .sort({ due: 1, _id: 1 })
      .limit(limit);
    const found = await documentsWithin(maxBytes, cursor);
    if (found.length === 0) return [];
    const writeId = ledger.newWriteId();
    const rids = found.map((each) => each._id);
    try {
      const won = await take(found, writeId, epoch, now);
      if (won.length === 0) return [];
      const retrying = won.filter((each) => each.retry > 0).length;
      const delta = createDelta(now);
      delta.add('running', won.length);
      delta.add('retrying', -retrying);
      delta.add(
        'runningBytes',
        won.reduce((sum, { size = 0 }) => sum + size, 0),
      );
      const pushes = [...new Set(won.map((each) => each.push))];
      // Matches only if nothing changed since the crawler was read. A push that reserved room since
      // then is not counted yet; a purge or recount since then did not see these jobs as running.
      const same = { recounts, purges, 'pending.id': { $nin: pushes } };
      const counted = await collections.crawlers.updateOne(
        { ...currentLease(lease, now), ...same },
        toUpdate(delta),
      );
      if (counted.matchedCount === 0) {
        await giveBack(rids, writeId);
        const after = await collections.crawlers.findOne(
          { _id: crawlerId },
          { projection: { recounts: 1 } },
        );
        if (after !== null && after.recounts !== recounts)
          await recount(collections, crawlerId, now);
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
      await ledger.tidy(crawlerId, () => giveBack(rids, writeId));
      throw error;
    }
  }

  async function take(
    found: readonly JobDocument[],
    writeId: string,
    epoch: number,
    now: Date,
  ): Promise<JobDocument[]> {
    const rids = found.map((each) => each._id);
    const { modifiedCount } = await collections.jobs.updateMany(
      { _id: { $in: rids }, queued: true },
      [
        {
          $set: {
            state: 'running',
            attempt: { $add: ['$attempt', 1] },
            epoch,
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

  /** Undoes a claim. */
  async function giveBack(rids: readonly string[], writeId: string): Promise<void> {
    await collections.jobs.updateMany(
      { _id: { $in: [...rids] }, mark: writeId, state: 'running' },
      untriedUpdate(writeId),
    );
  }

  return (lease, limit, now, maxBytes = Number.POSITIVE_INFINITY) =>
    ledger.runExclusive(lease.crawlerId, () => claimNow(lease, limit, now, maxBytes));
}

/**
 * The first documents whose bodies have at most `maxBytes` together, but at least one. Closes the
 * cursor.
 */
async function documentsWithin(
  maxBytes: number,
  cursor: FindCursor<JobDocument>,
): Promise<JobDocument[]> {
  const taken: JobDocument[] = [];
  let bytes = 0;
  for await (const document of cursor) {
    bytes += document.body?.length() ?? 0;
    if (taken.length > 0 && bytes > maxBytes) break;
    taken.push(document);
  }
  return taken;
}
