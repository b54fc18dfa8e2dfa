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

// A claim that meets a push or a purge under way begins again; after this many times it leaves the jobs to the next.
const TRIES = 3;
const COUNT_AGAIN_MS = 10_000;
const MAX_COUNTED = 1_000;

/** Makes `QueueStore.claim`. */
export function createClaim(collections: Collections, ledger: Ledger): QueueStore['claim'] {
  const countedAt = new Map<string, number>();

  /** Not with every claim: beside many pushes it may not come to its end. */
  async function countAgain(crawlerId: string, now: Date): Promise<void> {
    const since = performance.now() - (countedAt.get(crawlerId) ?? Number.NEGATIVE_INFINITY);
    if (since < COUNT_AGAIN_MS) return;
    if (countedAt.size >= MAX_COUNTED) countedAt.clear();
    countedAt.set(crawlerId, performance.now());
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
      if (crawler.miscounted === true) await countAgain(lease.crawlerId, now);
      if (crawler.pausedByUser || crawler.pausedByMonitor) return { jobs: [], leaseLost: false };
      const jobs = await claimOnce(crawler, lease, limit, now, maxBytes);
      if (jobs !== undefined) return { jobs, leaseLost: false };
    }
    return { jobs: [], leaseLost: false };
  }

  /** Undefined when something came between, and nothing was claimed. */
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
      // A push that reserved room after the look above is not counted yet; what was purged or counted anew since then
      // was so without these.
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
      // Its caller gets none of them. Before the next turn counts what is running, they are back.
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

/** The first documents whose bodies are together at most `maxBytes`; at least one. The cursor is closed. */
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
