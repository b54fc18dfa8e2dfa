import type { Filter } from 'mongodb';
import { createLruMap, type LruMap } from '../../domain/lru-map.ts';
import { type AccountIncrements, createAccountIncrements } from './account-increments.ts';
import type { Collections, CrawlerDocument, JobDocument, Tombstone } from './collections.ts';
import { type Batch, batchDelta, type Delta, toUpdate } from './counts.ts';
import { createKeyedMutex } from './keyed-mutex.ts';
import { wakeNow } from './lease.ts';
import { createRareness, recount } from './recount.ts';
import { removeRecordsOf } from './removal.ts';
import { createTombstoneRemovals, type TombstoneRemovals } from './tombstone-removals.ts';
import {
  acceptsBatch,
  appliedPath,
  type BatchId,
  batchFields,
  batchLabel,
  isFenced,
  isUnapplied,
  tombstonesFilter,
} from './tombstones.ts';
import type { Transactions } from './transactions.ts';

/**
 * Keeps a crawler's counters exact without transactions.
 *
 * A job ends by turning into a tombstone: one atomic write, which is the commit. Then one update of
 * the crawler adds the whole batch to the counters and notes the batch as applied, and the
 * tombstones are removed. A process that finds tombstones left by another one completes them: it
 * fences the batch, so that the other process can no longer apply it, and moves its tombstones into
 * a batch of its own. A tombstone that the other process writes even later still names the fenced
 * batch, so it is known as not counted. The batches of one process for one crawler are applied in
 * their order.
 */
export interface Ledger {
  readonly transactions: Transactions;
  /** The totals of accounts. */
  readonly accounts: AccountIncrements;
  /** The removal of tombstones. */
  readonly removals: TombstoneRemovals;
  /** Pushes of this process that are counted, the latest of them: their jobs may be crawled. */
  readonly countedPushes: Pick<LruMap<string, true>, 'has' | 'set'>;
  /** A name for one write, unique among all processes. */
  newWriteId(): string;
  newBatch(): BatchId;
  /**
   * Runs the operations on one crawler one after the other. After an operation that failed midway,
   * repairs the crawler's counters before the next.
   */
  runExclusive<T>(crawlerId: string, work: () => Promise<T>): Promise<T>;
  /**
   * Runs `work`, and retries it before the crawler's next operation if it fails. For what the
   * caller need not wait for, because what it leaves undone is harmless and others find it.
   */
  tidy(crawlerId: string, work: () => Promise<unknown>): Promise<void>;
  /**
   * Applies a batch and removes its tombstones; a batch that was applied before is only tidied up.
   * `read` is the crawler as it was before the batch's first write.
   */
  settle(batch: Batch, now: Date, read: CrawlerGenerations, rider?: Rider): Promise<Settled>;
  /** Applies the batches that a process has left behind. */
  recover(crawlerId: string, processId: string, now: Date): Promise<void>;
}

/** Changes without tombstones that are counted in the same write as a batch. */
export interface Rider {
  /**
   * Adds the starts of crawls, unless they were refused, and what was settled; its pending ones only
   * if no recount may have seen them.
   */
  addTo(delta: Delta, counts: { readonly starts: boolean; readonly pending: boolean }): void;
  readonly hasStarts: boolean;
  readonly hasSettled: boolean;
  /** What must hold for the starts, beside the generations. */
  readonly filter: Filter<CrawlerDocument>;
  /** Called when it does not, before the batch is counted without them. */
  startsRefused(): Promise<void>;
}

/** What became of a batch. */
export interface Settled {
  /** False when the crawler is gone. */
  readonly exists: boolean;
  /** The crawler after the write, unless something else had changed it meanwhile. */
  readonly after?: CrawlerState;
}

/** The purges and recounts of a crawler when a batch's writes began. */
export type CrawlerGenerations = Pick<CrawlerDocument, 'recounts' | 'purges'>;

/** Reads them; null when the crawler is gone. */
export function readGenerations(
  collections: Collections,
  crawlerId: string,
): Promise<CrawlerGenerations | null> {
  return collections.crawlers.findOne(
    { _id: crawlerId },
    { projection: { purges: 1, recounts: 1 } },
  );
}

// A process that cannot reach its database collects work to tidy; `maintain` finds the rest.
const MAX_UNTIDY = 1_000;
const MAX_FENCED = 100;
const MAX_COUNTED = 10_000;

/** The fields of a crawler that tell which batches and starts its counters contain. */
export const BATCH_FIELDS = { applied: 1, fenced: 1, purges: 1, recounts: 1 } as const;

/** The fields that a run needs to know of its crawler. */
export const STATE_FIELDS = {
  accountId: 1,
  pausedByUser: 1,
  pausedByMonitor: 1,
  pending: 1,
  recounts: 1,
  purges: 1,
  miscounted: 1,
  epoch: 1,
  leaseOwner: 1,
  leaseUntil: 1,
  shares: 1,
} as const;

/** A crawler as its run needs to know it. */
export type CrawlerState = Pick<CrawlerDocument, '_id' | keyof typeof STATE_FIELDS>;

/** Creates the ledger of this process. */
export function createLedger(
  collections: Collections,
  transactions: Transactions,
  processId: string,
): Ledger {
  const mutex = createKeyedMutex();
  const accounts = createAccountIncrements(collections);
  const removals = createTombstoneRemovals(collections);
  const mayRecount = createRareness();
  const unsure = new Set<string>();
  const untidy = new Map<string, (() => Promise<unknown>)[]>();
  let lastNo = 0;
  const newBatch = (): BatchId => ({ processId, batchNo: ++lastNo });

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

  async function settle(
    batch: Batch,
    now: Date,
    read: CrawlerGenerations,
    rider?: Rider,
  ): Promise<Settled> {
    const { crawlerId } = batch;
    let { purges } = read;
    // A recount sees jobs and deliveries that the batch has returned or settled, or does not.
    const isAmbiguous = (batch.returned ?? []).length > 0 || rider?.hasSettled === true;
    let recounted = false;
    let withStarts = rider?.hasStarts === true;
    for (;;) {
      const delta = batchDelta(batch, purges, now, !recounted);
      rider?.addTo(delta, { starts: withStarts, pending: !recounted });
      const unchanged = {
        purges,
        ...(isAmbiguous && !recounted ? { recounts: read.recounts } : {}),
        ...(withStarts ? rider?.filter : {}),
      };
      const after = await applyDelta(collections, batch, delta, unchanged);
      if (after !== null) {
        accounts.add(after.accountId, delta);
        await tidy(crawlerId, () => bury(batch, now));
        const all = hasGhosts(after);
        if (all) await tidy(crawlerId, () => recount(collections, crawlerId, now, { all }));
        else if (recounted) await tidy(crawlerId, () => recountRarely(crawlerId, now));
        return { exists: true, after };
      }
      const current = await readBatchFields(crawlerId);
      if (current !== null && isFenced(current, batch)) {
        if (withStarts) await rider?.startsRefused();
        await recover(crawlerId, batch.processId, now);
        if (isAmbiguous) await recount(collections, crawlerId, now);
        return { exists: true };
      }
      if (current === null || !isUnapplied(current, batch)) {
        if (withStarts && current === null) await rider?.startsRefused();
        await tidy(crawlerId, () => bury(batch, now));
        return { exists: current !== null };
      }
      const isPurged = current.purges !== purges;
      purges = current.purges;
      if (isAmbiguous && !recounted && current.recounts !== read.recounts) {
        recounted = true;
        if (!isPurged) continue;
      }
      // A purge has counted the started jobs as waiting ones.
      if (withStarts) await rider?.startsRefused();
      withStarts = false;
    }
  }

  /** Recounts, or leaves that to the lead when this process has done so a moment ago. */
  async function recountRarely(crawlerId: string, now: Date): Promise<void> {
    if (mayRecount(crawlerId)) await recount(collections, crawlerId, now);
    else {
      await collections.crawlers.updateOne({ _id: crawlerId }, { $set: { miscounted: true } });
    }
  }

  function readBatchFields(crawlerId: string) {
    return collections.crawlers.findOne({ _id: crawlerId }, { projection: BATCH_FIELDS });
  }

  /** Hands over the deliveries that waited for the end of their jobs, and has the tombstones removed. */
  async function bury(batch: Batch, now: Date): Promise<void> {
    const { crawlerId, ended } = batch;
    if (ended.length === 0) return;
    const delivering = ended.filter((each) => each.tombstone.delivers === true);
    if (delivering.length > 0) {
      await collections.deliveries.updateMany(
        { _id: { $in: delivering.map((each) => each.rid) }, state: 'staged' },
        { $set: { state: 'due' } },
      );
      await wakeNow(collections, crawlerId, now, 'delivery');
    }
    removals.add(
      batch,
      ended.map((each) => each.rid),
    );
  }

  async function recover(crawlerId: string, owner: string, now: Date): Promise<void> {
    // Those that are counted are no work.
    await removals.flush();
    const left = await collections.jobs.find(tombstonesFilter(crawlerId, owner)).toArray();
    const numbers = [...new Set(left.map((each) => each.seq ?? 0))].sort((a, b) => a - b);
    for (const batchNo of numbers) {
      const ended = left.filter((each) => each.seq === batchNo).map(toEnded);
      await recoverBatch({ crawlerId, processId: owner, batchNo, ended }, now);
    }
  }

  /** The process that removed these jobs may have died before it removed what their crawls brought. */
  async function removeRecordsOfRemoved(
    crawlerId: string,
    tombstones: readonly JobDocument[],
    now: Date,
  ): Promise<void> {
    const removed = tombstones.filter(({ end }) => end === 'deleted' || end === 'purged');
    if (removed.length === 0) return;
    const rids = removed.map((each) => each._id);
    await removeRecordsOf(collections, crawlerId, rids, now);
  }

  async function recoverBatch(batch: Batch, now: Date): Promise<void> {
    const { crawlerId } = batch;
    await collections.crawlers.updateOne(
      { _id: crawlerId, ...acceptsBatch(batch) },
      {
        $push: { fenced: { $each: [batchLabel(batch)], $slice: -MAX_FENCED } },
        $inc: { moves: 1 },
      },
    );
    const crawler = await readBatchFields(crawlerId);
    if (crawler === null || !isUnapplied(crawler, batch)) {
      return bury(batch, now);
    }
    const own = newBatch();
    const ended = { _id: { $in: batch.ended.map((each) => each.rid) }, state: 'ended' } as const;
    await collections.jobs.updateMany(
      { ...ended, ...batchFields(batch) },
      { $set: batchFields(own) },
    );
    const taken = await collections.jobs.find({ ...ended, ...batchFields(own) }).toArray();
    await removeRecordsOfRemoved(crawlerId, taken, now);
    const endedAt = taken[0]?.endedAt ?? now;
    await settle({ crawlerId, ...own, ended: taken.map(toEnded) }, endedAt, crawler);
  }

  return {
    transactions,
    accounts,
    removals,
    countedPushes: createLruMap({ maxEntries: MAX_COUNTED }),
    newWriteId: () => batchLabel(newBatch()),
    newBatch,
    runExclusive: (crawlerId, work) =>
      mutex.runExclusive(crawlerId, async () => {
        await tidyUp(crawlerId);
        if (unsure.has(crawlerId)) {
          const now = new Date();
          await recover(crawlerId, processId, now);
          const settledUpTo = { processId, batchNo: lastNo };
          await recount(collections, crawlerId, now, { settledUpTo });
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

/** Adds a batch to the counters; null when it is applied, fenced, or the crawler has changed. */
function applyDelta(
  collections: Collections,
  batch: Batch,
  delta: Delta,
  unchanged: Filter<CrawlerDocument>,
) {
  return collections.crawlers.findOneAndUpdate(
    { _id: batch.crawlerId, $and: [acceptsBatch(batch), unchanged] },
    { ...toUpdate(delta), $set: { [appliedPath(batch)]: batch.batchNo } },
    {
      returnDocument: 'after',
      projection: { ...STATE_FIELDS, live: 1, liveBytes: 1, running: 1, retrying: 1 },
    },
  );
}

/** Whether the counters of an empty crawler are not zero: a crash has left them so. */
function hasGhosts({
  live,
  liveBytes = 0,
  running,
  retrying,
}: Pick<CrawlerDocument, 'live' | 'liveBytes' | 'running' | 'retrying'>): boolean {
  return live === 0 && (running !== 0 || retrying !== 0 || liveBytes !== 0);
}

function toEnded(document: JobDocument) {
  return { rid: document._id, gen: document.gen, tombstone: document as Tombstone };
}
