import type { FindCursor } from 'mongodb';
import type { QueuedJob } from '../../domain/job.ts';
import type { Lease, ListedJob, QueuePlace, QueueStore } from '../store.ts';
import type { Collections, JobDocument, Tombstone } from './collections.ts';
import { createDelta, type Ledger, updateOf } from './counts.ts';
import { createFinish, SHED } from './finish.ts';
import { jobFrom } from './job-row.ts';
import { currentLease, forgetProcesses, nextWake, recount, requeue, setWake } from './lease.ts';
import { createPush } from './push.ts';

/** The queue: admission, leases, claims and ends. */
export function createQueue(c: Collections, ledger: Ledger): QueueStore {
  const newMark = (): string => `${ledger.processId}.${ledger.nextSeq()}`;

  async function acquire(
    crawlerId: string,
    owner: string,
    ttlMs: number,
    now: Date,
  ): Promise<Lease | undefined> {
    const leaseUntil = new Date(now.getTime() + ttlMs);
    const before = await c.crawlers.findOneAndUpdate(
      { _id: crawlerId, $or: [{ leaseUntil: { $lte: now } }, { leaseOwner: owner }] },
      // It is looked at when the lease ends: its holder may crash.
      { $inc: { epoch: 1 }, $set: { leaseOwner: owner, leaseUntil, wakeAt: leaseUntil } },
      { returnDocument: 'before', projection: { epoch: 1, leaseOwner: 1, applied: 1 } },
    );
    if (before === null) return undefined;
    const epoch = before.epoch + 1;
    await forgetProcesses(c, before, now);
    if (before.leaseOwner !== null) {
      await ledger.inTurn(crawlerId, async () => {
        await requeue(c, crawlerId, epoch, now, newMark(), before.leaseOwner !== owner);
        await recount(c, crawlerId);
      });
    }
    return { crawlerId, owner, epoch };
  }

  async function renew(lease: Lease, ttlMs: number, now: Date): Promise<boolean> {
    const leaseUntil = new Date(now.getTime() + ttlMs);
    const { matchedCount } = await c.crawlers.updateOne(currentLease(lease, now), {
      $set: { leaseUntil, wakeAt: leaseUntil },
    });
    if (matchedCount === 0) return false;
    const { crawlerId, epoch } = lease;
    // A former holder that slept between its look at the lease and its claim may have taken something since.
    const stray = await c.jobs.findOne(
      { crawlerId, state: 'running', epoch: { $lt: epoch } },
      { projection: { _id: 1 } },
    );
    if (stray !== null) {
      await ledger.inTurn(crawlerId, () => requeue(c, crawlerId, epoch, now, newMark()));
    }
    return true;
  }

  async function release(lease: Lease, now: Date): Promise<{ wakeAt: Date | undefined }> {
    const { crawlerId, epoch, owner } = lease;
    return ledger.inTurn(crawlerId, async () => {
      const crawler = await c.crawlers.findOne(
        { _id: crawlerId, epoch, leaseOwner: owner },
        { projection: { live: 1, pending: 1 } },
      );
      if (crawler !== null) {
        await requeue(c, crawlerId, epoch + 1, now, newMark());
        if (crawler.live !== 0 && crawler.pending.length === 0) {
          const job = await c.jobs.findOne({ crawlerId, queued: true }, { projection: { _id: 1 } });
          if (job === null) await recount(c, crawlerId, true);
        }
      }
      return { wakeAt: await setWake(c, crawlerId, lease) };
    });
  }

  function claim(lease: Lease, limit: number, now: Date, maxBytes = Number.POSITIVE_INFINITY) {
    return ledger.inTurn(lease.crawlerId, () => claimNow(lease, limit, now, maxBytes));
  }

  async function claimNow(lease: Lease, limit: number, now: Date, maxBytes: number) {
    const { crawlerId, epoch } = lease;
    const crawler = await c.crawlers.findOne(currentLease(lease, now), {
      projection: { pausedByUser: 1, pausedByMonitor: 1, pending: 1, accountId: 1 },
    });
    if (crawler === null) return { jobs: [], leaseLost: true };
    if (crawler.pausedByUser || crawler.pausedByMonitor) return { jobs: [], leaseLost: false };
    const pending = crawler.pending.map((each) => each.id);
    const cursor = c.jobs
      .find({
        crawlerId,
        queued: true,
        due: { $lte: now },
        ...(pending.length > 0 ? { push: { $nin: pending } } : {}),
        $or: [{ expires: { $exists: false } }, { queueDeadline: { $gt: now } }],
      })
      .sort({ due: 1, _id: 1 })
      .limit(limit);
    const found = await documentsWithin(maxBytes, cursor);
    if (found.length === 0) return { jobs: [], leaseLost: false };
    const mark = newMark();
    const rids = found.map((each) => each._id);
    const { modifiedCount } = await c.jobs.updateMany(
      { _id: { $in: rids }, queued: true, attempt: { $gte: 0 } },
      [
        {
          $set: {
            state: 'running',
            attempt: { $add: ['$attempt', 1] },
            epoch,
            mark,
            firstTriedAt: { $ifNull: ['$firstTriedAt', now] },
          },
        },
        { $unset: ['queued', 'expires'] },
      ],
    );
    const taken = modifiedCount === found.length ? undefined : await ridsMarked(rids, mark);
    const won = found.filter((each) => taken === undefined || taken.has(each._id));
    if (won.length === 0) return { jobs: [], leaseLost: false };
    const retrying = won.filter((each) => each.retry > 0).length;
    const delta = createDelta(now);
    delta.add('running', won.length);
    delta.add('retrying', -retrying);
    const counted = await c.crawlers.updateOne(currentLease(lease, now), updateOf(delta));
    if (counted.matchedCount === 0) {
      await giveBack(rids, mark);
      return { jobs: [], leaseLost: true };
    }
    await c.accounts.updateOne({ _id: crawler.accountId }, { $inc: { queued: -won.length } });
    const jobs = won.map((document): QueuedJob => {
      const job = jobFrom(document);
      const firstTriedAt = job.firstTriedAt ?? now;
      return { ...job, state: 'running', attempt: job.attempt + 1, firstTriedAt };
    });
    return { jobs, leaseLost: false };
  }

  async function ridsMarked(rids: readonly string[], mark: string): Promise<Set<string>> {
    const marked = await c.jobs
      .find({ _id: { $in: [...rids] }, mark }, { projection: { _id: 1 } })
      .toArray();
    return new Set(marked.map((each) => each._id));
  }

  /** Undoes a claim whose lease ended while it was made; nothing has been counted yet. */
  async function giveBack(rids: readonly string[], mark: string): Promise<void> {
    await c.jobs.updateMany({ _id: { $in: [...rids] }, mark, state: 'running' }, [
      {
        $set: { state: { $cond: [{ $gt: ['$retry', 0] }, 'retrying', 'waiting'] }, queued: true },
      },
      { $unset: 'epoch' },
    ]);
  }

  async function overdue(now: Date, limit: number): Promise<QueuedJob[]> {
    const found = await c.jobs
      .find({ expires: true, queueDeadline: { $lte: now } })
      .sort({ queueDeadline: 1 })
      .limit(limit)
      .toArray();
    return found.map(jobFrom);
  }

  async function wakeable(now: Date, limit: number): Promise<string[]> {
    const found = await c.crawlers
      .find({ wakeAt: { $lte: now } }, { projection: { _id: 1 } })
      .sort({ wakeAt: 1 })
      .limit(limit)
      .toArray();
    return found.map((each) => each._id);
  }

  async function find(crawlerId: string, rid: string): Promise<QueuedJob | undefined> {
    const document = await c.jobs.findOne({ _id: rid, crawlerId, state: { $ne: 'ended' } });
    return document === null ? undefined : jobFrom(document);
  }

  async function listQueued(
    crawlerId: string,
    limit: number,
    after?: QueuePlace,
  ): Promise<ListedJob[]> {
    const behind =
      after === undefined
        ? {}
        : {
            due: { $gte: after.dueAt },
            $or: [{ due: { $gt: after.dueAt } }, { due: after.dueAt, _id: { $gt: after.rid } }],
          };
    const found = await c.jobs
      .find(
        { crawlerId, queued: true, ...behind },
        { projection: { url: 1, retry: 1, createdAt: 1, due: 1 } },
      )
      .sort({ due: 1, _id: 1 })
      .limit(limit)
      .toArray();
    return found.map(({ _id, url, retry, createdAt, due }) => {
      return { rid: _id, url, retry, createdAt, dueAt: due };
    });
  }

  function deleteJob(crawlerId: string, rid: string, now: Date): Promise<boolean> {
    return ledger.inTurn(crawlerId, async () => {
      const by = ledger.processId;
      const seq = ledger.nextSeq();
      const before = await c.jobs.findOneAndUpdate(
        { _id: rid, crawlerId, state: { $ne: 'ended' } },
        ending('deleted', now, by, seq),
        { returnDocument: 'before', projection: { state: 1, size: 1 } },
      );
      if (before === null) return false;
      const from = before.state as QueuedJob['state'];
      const { size = 0 } = before;
      const tombstone: Tombstone = { from, end: 'deleted', size, endedAt: now, by, seq };
      return ledger.settle({ crawlerId, by, seq, ended: [{ rid, tombstone }] }, now);
    });
  }

  function purge(crawlerId: string, now: Date): Promise<number> {
    return ledger.inTurn(crawlerId, async () => {
      const by = ledger.processId;
      const seq = ledger.nextSeq();
      const crawler = await c.crawlers.findOne({ _id: crawlerId }, { projection: { pending: 1 } });
      if (crawler === null) return 0;
      const pending = crawler.pending.map((each) => each.id);
      await c.jobs.updateMany(
        { crawlerId, queued: true, ...(pending.length > 0 ? { push: { $nin: pending } } : {}) },
        ending('purged', now, by, seq),
      );
      const gone = await c.jobs
        .find({ state: 'ended', endedAt: now, by, seq }, { projection: { from: 1, size: 1 } })
        .toArray();
      if (gone.length === 0) return 0;
      const ended = gone.map((each) => ({
        rid: each._id,
        tombstone: {
          from: each.from ?? 'waiting',
          end: 'purged',
          size: each.size ?? 0,
          endedAt: now,
          by,
          seq,
        } as const,
      }));
      await ledger.settle({ crawlerId, by, seq, ended }, now);
      await setWake(c, crawlerId);
      return ended.length;
    });
  }

  return {
    push: createPush(c, ledger),
    acquire,
    renew,
    release,
    claim,
    finish: createFinish(c, ledger),
    overdue,
    async nextWake(crawlerId) {
      const crawler = await c.crawlers.findOne(
        { _id: crawlerId },
        { projection: { pausedByUser: 1, pausedByMonitor: 1 } },
      );
      return crawler === null ? undefined : nextWake(c, crawler);
    },
    wakeable,
    find,
    listQueued,
    deleteJob,
    purge,
  };
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

/** Turns a job into a tombstone that remembers the state it was in. */
function ending(end: 'deleted' | 'purged', endedAt: Date, by: string, seq: number) {
  return [
    { $set: { from: '$state', state: 'ended', end, endedAt, by, seq } },
    { $unset: Object.keys(SHED) },
  ];
}
