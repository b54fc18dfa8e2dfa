import type { Filter } from 'mongodb';
import type { Collections, CrawlerDocument, JobDocument, Tombstone } from './collections.ts';
import { type Batch, batchDelta, toUpdate } from './counts.ts';
import { createKeyedMutex, type KeyedMutex } from './keyed-mutex.ts';
import { wakeNow } from './lease.ts';
import { batchLabel, isUnapplied, recount } from './recount.ts';

/**
 * Keeps a crawler's counters exact without transactions. A job ends by turning into a tombstone, one atomic write that is the
 * commit. The counters then take in the whole batch in one update of the crawler, which notes the batch as applied, and the
 * tombstones go. Whoever finds tombstones that a process left behind does the rest in its place: it fences the batch, so that its
 * process cannot apply it any more, and gives what is there a name of its own. So a tombstone that appears later still is
 * known as one that nobody has counted. Batches of one process for one crawler are applied in their order.
 */
export interface Ledger {
  readonly processId: string;
  nextSeq(): number;
  /** Runs one operation after the other for each crawler; after one that failed midway, puts its counters right first. */
  runExclusive<T>(crawlerId: string, work: () => Promise<T>): Promise<T>;
  /**
   * Does what the caller need not wait for to succeed, because what it leaves undone is harmless and found by others: when it fails,
   * it is tried again in the crawler's next turn.
   */
  tidy(crawlerId: string, work: () => Promise<unknown>): Promise<void>;
  /**
   * Applies a batch and removes its tombstones. False when the crawler is gone. What was applied before is only tidied up.
   * `read` is the crawler as it was before the first of the batch's moves.
   */
  settle(batch: Batch, now: Date, read: AsRead): Promise<boolean>;
  /** Applies the batches that a process has left behind. */
  recover(crawlerId: string, by: string, now: Date): Promise<void>;
}

/** How a crawler was when a move began. */
export type AsRead = Pick<CrawlerDocument, 'recounts' | 'purges'>;

// A process that cannot reach its database gathers what it would tidy; the rest is found by `maintain`.
const MAX_UNTIDY = 1_000;
const FENCES = 100;

/** Makes the ledger of this process. */
export function createLedger(collections: Collections, processId: string): Ledger {
  const mutex: KeyedMutex = createKeyedMutex();
  const unsure = new Set<string>();
  const untidy = new Map<string, (() => Promise<unknown>)[]>();
  let seq = 0;
  const nextSeq = (): number => ++seq;

  async function tidy(crawlerId: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch {
      const left = untidy.get(crawlerId) ?? [];
      if (left.length < MAX_UNTIDY) untidy.set(crawlerId, [...left, work]);
    }
  }

  async function tidyUp(crawlerId: string): Promise<void> {
    const left = untidy.get(crawlerId);
    if (left === undefined) return;
    untidy.delete(crawlerId);
    for (const work of left) await tidy(crawlerId, work);
  }

  async function settle(batch: Batch, now: Date, read: AsRead): Promise<boolean> {
    const { crawlerId, by } = batch;
    const label = batchLabel(by, batch.seq);
    const mark = `applied.${by}`;
    let { purges } = read;
    let returns = (batch.returned ?? []).length > 0;
    let miscounts = false;
    for (;;) {
      const delta = batchDelta(batch, purges, now, returns);
      const unapplied = {
        _id: crawlerId,
        $or: [{ [mark]: { $lt: batch.seq } }, { [mark]: { $exists: false } }],
        fenced: { $ne: label },
        purges,
        ...(returns ? { recounts: read.recounts } : {}),
      } as Filter<CrawlerDocument>;
      const after = await collections.crawlers.findOneAndUpdate(
        unapplied,
        { ...toUpdate(delta), $set: { [mark]: batch.seq } },
        {
          returnDocument: 'after',
          projection: { accountId: 1, live: 1, liveBytes: 1, running: 1, retrying: 1 },
        },
      );
      if (after !== null) {
        await countInAccount(collections, after.accountId, delta);
        await tidy(crawlerId, () => removeTombstones(batch, now));
        // Nothing is left, so a crash has left these behind.
        const { live, liveBytes = 0, running, retrying } = after;
        const ghosts = live === 0 && (running !== 0 || retrying !== 0 || liveBytes !== 0);
        if (ghosts || miscounts)
          await tidy(crawlerId, () => recount(collections, crawlerId, ghosts));
        return true;
      }
      const current = await collections.crawlers.findOne(
        { _id: crawlerId },
        { projection: { applied: 1, fenced: 1, purges: 1, recounts: 1 } },
      );
      if (current === null) {
        await tidy(crawlerId, () => removeTombstones(batch, now));
        return false;
      }
      if (current.fenced?.includes(label) === true) {
        await recover(crawlerId, by, now);
        if (returns) await recount(collections, crawlerId);
        return true;
      }
      if ((current.applied[by] ?? 0) >= batch.seq) {
        await tidy(crawlerId, () => removeTombstones(batch, now));
        return true;
      }
      purges = current.purges;
      // They were counted anew since these moves began: nobody knows whether they were seen.
      if (returns && current.recounts !== read.recounts) {
        returns = false;
        miscounts = true;
      }
    }
  }

  /** Hands over the deliveries that waited for their job's end, and removes the tombstones. */
  async function removeTombstones(
    { crawlerId, ended, by, seq: of }: Batch,
    now: Date,
  ): Promise<void> {
    if (ended.length === 0) return;
    const delivering = ended.filter((each) => each.tombstone.delivers === true);
    if (delivering.length > 0) {
      const rids = delivering.map((each) => each.rid);
      await collections.deliveries.updateMany(
        { _id: { $in: rids }, state: 'staged' },
        { $set: { state: 'due' } },
      );
      await wakeNow(collections, crawlerId, now, 'delivery');
    }
    const rids = ended.map((each) => each.rid);
    await collections.jobs.deleteMany({ _id: { $in: rids }, state: 'ended', by, seq: of });
  }

  async function recover(crawlerId: string, by: string, now: Date): Promise<void> {
    const left = await collections.jobs
      .find({ state: 'ended', endedAt: { $gte: new Date(0) }, crawlerId, by })
      .toArray();
    const seqs = [...new Set(left.map((each) => each.seq ?? 0))].sort((a, b) => a - b);
    for (const each of seqs) {
      const ended = left.filter((document) => document.seq === each);
      await recoverBatch({ crawlerId, by, seq: each, ended: ended.map(toEnded) }, now);
    }
  }

  async function recoverBatch(batch: Batch, now: Date): Promise<void> {
    const { crawlerId, by, seq: of } = batch;
    const label = batchLabel(by, of);
    const mark = `applied.${by}`;
    await collections.crawlers.updateOne(
      {
        _id: crawlerId,
        $or: [{ [mark]: { $lt: of } }, { [mark]: { $exists: false } }],
        fenced: { $ne: label },
      },
      { $push: { fenced: { $each: [label], $slice: -FENCES } }, $inc: { moves: 1 } },
    );
    const crawler = await collections.crawlers.findOne(
      { _id: crawlerId },
      { projection: { applied: 1, fenced: 1, purges: 1, recounts: 1 } },
    );
    if (crawler === null || !isUnapplied(crawler, { by, seq: of }))
      return removeTombstones(batch, now);
    const renamed = { by: processId, seq: nextSeq() };
    const rids = batch.ended.map((each) => each.rid);
    await collections.jobs.updateMany(
      { _id: { $in: rids }, state: 'ended', by, seq: of },
      { $set: renamed },
    );
    const own = await collections.jobs
      .find({ _id: { $in: rids }, state: 'ended', ...renamed })
      .toArray();
    const at = own[0]?.endedAt ?? now;
    await settle({ crawlerId, ...renamed, ended: own.map(toEnded) }, at, crawler);
  }

  return {
    processId,
    nextSeq,
    runExclusive: (crawlerId, work) =>
      mutex.runExclusive(crawlerId, async () => {
        await tidyUp(crawlerId);
        if (unsure.has(crawlerId)) {
          await recover(crawlerId, processId, new Date());
          await recount(collections, crawlerId);
          unsure.delete(crawlerId);
        }
        try {
          return await work();
        } catch (error) {
          unsure.add(crawlerId);
          throw error;
        }
      }),
    tidy,
    settle,
    recover,
  };
}

/**
 * Adds to the totals of an account. Never fails: an increment must not be made twice, and what is lost is found when `maintain`
 * compares the totals.
 */
export async function countInAccount(
  collections: Collections,
  accountId: string,
  by: { readonly queued: number; readonly queuedBytes?: number; readonly storedBytes?: number },
): Promise<void> {
  const { queued, queuedBytes = 0, storedBytes = 0 } = by;
  if (queued === 0 && queuedBytes === 0 && storedBytes === 0) return;
  await collections.accounts
    .updateOne({ _id: accountId }, { $inc: { queued, queuedBytes, storedBytes } })
    .catch(() => undefined);
}

function toEnded(document: JobDocument) {
  return { rid: document._id, gen: document.gen, tombstone: document as Tombstone };
}
