import type { Filter, UpdateFilter } from 'mongodb';
import type { CrawlerMoments } from '../../domain/crawler.ts';
import { dayOf } from '../../domain/stats.ts';
import { type Chain, createChain } from './chain.ts';
import type { Collections, CrawlerDocument, DayField, Tombstone } from './collections.ts';
import { recount, wakeNow } from './lease.ts';

type Counter =
  | 'live'
  | 'liveBytes'
  | 'running'
  | 'retrying'
  | 'completed'
  | 'failed'
  | 'deleted'
  | 'purged'
  | 'deliveriesPending';

/** Changes of one crawler's counters and of a day of its history, written in one update. */
export interface Delta {
  readonly day: string;
  /** What happened now, by path. */
  readonly moments: Readonly<Record<string, Date>>;
  /** Increments by path. */
  readonly increments: Readonly<Record<string, number>>;
  /** Change of the account's waiting and retrying URLs. */
  readonly queued: number;
  /** Changes of what the account counts as queued and stored. */
  readonly queuedBytes: number;
  readonly storedBytes: number;
  add(counter: Counter, by: number): void;
  addQueued(by: number): void;
  addBytes(what: 'queuedBytes' | 'storedBytes', by: number): void;
  addDay(field: DayField, by: number): void;
  addStatus(cbStatus: number): void;
  /** Notes that it happened at the delta's moment. */
  happened(moment: keyof CrawlerMoments): void;
}

/** Starts gathering changes that happened at `now`. */
export function createDelta(now: Date): Delta {
  const day = dayOf(now);
  const increments: Record<string, number> = {};
  const moments: Record<string, Date> = {};
  let queued = 0;
  const bytes = { queuedBytes: 0, storedBytes: 0 };
  const add = (path: string, by: number): void => {
    const sum = (increments[path] ?? 0) + by;
    if (sum === 0) delete increments[path];
    else increments[path] = sum;
  };
  return {
    day,
    increments,
    moments,
    get queued() {
      return queued;
    },
    get queuedBytes() {
      return bytes.queuedBytes;
    },
    get storedBytes() {
      return bytes.storedBytes;
    },
    add,
    addBytes: (what, by) => void (bytes[what] += by),
    addQueued: (by) => void (queued += by),
    addDay: (field, by) => add(`days.${day}.${field}`, by),
    happened: (moment) => void (moments[`last.${moment}`] = now),
    addStatus: (cbStatus) => add(`days.${day}.byCbStatus.${cbStatus}`, 1),
  };
}

/** The update that writes a delta. */
export function updateOf(delta: Delta): UpdateFilter<CrawlerDocument> {
  const paths = Object.keys(delta.increments);
  return {
    ...(paths.length > 0 ? { $inc: delta.increments } : {}),
    ...(Object.keys(delta.moments).length > 0 ? { $max: delta.moments } : {}),
    ...(paths.some((path) => path.startsWith('days.')) ? { $min: { firstDay: delta.day } } : {}),
  };
}

/** An ended job and what it left. */
export interface Ended {
  readonly rid: string;
  readonly tombstone: Tombstone;
}

/** One batch of ends of one crawler. */
export interface Batch {
  readonly crawlerId: string;
  /** The process whose batch it is. */
  readonly by: string;
  readonly seq: number;
  readonly ended: readonly Ended[];
}

/**
 * Keeps a crawler's counters exact without transactions. A job ends by turning into a tombstone, one atomic write that is the
 * commit. The counters then take in the whole batch in one update of the crawler, which notes the batch as applied, and the
 * tombstones go. Whoever finds tombstones that a process left behind does the rest in its place: a batch that the
 * crawler notes as applied is not applied twice. Batches of one process for one crawler are applied in their order.
 */
export interface Ledger {
  readonly processId: string;
  nextSeq(): number;
  /** Runs one operation after the other for each crawler; after one that failed midway, puts its counters right first. */
  inTurn<T>(crawlerId: string, work: () => Promise<T>): Promise<T>;
  /**
   * Applies a batch and removes its tombstones; `more` goes into the same update. False when the crawler is gone. What was
   * applied before is only tidied up.
   */
  settle(batch: Batch, now: Date, more?: Delta): Promise<boolean>;
  /** Applies the batches that a process has left behind. */
  recover(crawlerId: string, by: string, now: Date): Promise<void>;
}

/** Makes the ledger of this process. */
export function createLedger(c: Collections, processId: string): Ledger {
  const chain: Chain = createChain();
  const unsure = new Set<string>();
  let seq = 0;

  async function settle(batch: Batch, now: Date, more = createDelta(now)): Promise<boolean> {
    const { crawlerId, by, ended } = batch;
    for (const { tombstone } of ended) addEnd(more, tombstone);
    const mark = `applied.${by}`;
    const unapplied = {
      _id: crawlerId,
      $or: [{ [mark]: { $lt: batch.seq } }, { [mark]: { $exists: false } }],
    } as Filter<CrawlerDocument>;
    const update = { ...updateOf(more), $set: { [mark]: batch.seq } };
    const after = await c.crawlers.findOneAndUpdate(unapplied, update, {
      returnDocument: 'after',
      projection: { accountId: 1, live: 1, liveBytes: 1, running: 1, retrying: 1, pending: 1 },
    });
    const crawler =
      after ?? (await c.crawlers.findOne({ _id: crawlerId }, { projection: { _id: 1 } }));
    if (after !== null) await countInAccount(c, after.accountId, more);
    await bury(batch, now);
    const { running = 0, retrying = 0, liveBytes = 0 } = after ?? {};
    if (after?.live === 0 && (running !== 0 || retrying !== 0 || liveBytes !== 0)) {
      // Nothing is left, so a crash has left these behind.
      await c.crawlers.updateOne(
        { _id: crawlerId, live: 0 },
        { $set: { running: 0, retrying: 0, liveBytes: 0 } },
      );
    }
    return crawler !== null;
  }

  /** Hands over the deliveries that waited for their job's end, and removes the tombstones. */
  async function bury({ crawlerId, ended, by, seq: batchSeq }: Batch, now: Date): Promise<void> {
    const delivering = ended.filter((each) => each.tombstone.delivers === true);
    if (delivering.length > 0) {
      const rids = delivering.map((each) => each.rid);
      await c.deliveries.updateMany(
        { _id: { $in: rids }, state: 'staged' },
        { $set: { state: 'due' } },
      );
      await wakeNow(c, crawlerId, now, 'delivery');
    }
    const endedAt = ended[0]?.tombstone.endedAt;
    if (endedAt !== undefined) {
      await c.jobs.deleteMany({ state: 'ended', endedAt, by, seq: batchSeq, crawlerId });
    }
  }

  async function recover(crawlerId: string, by: string, now: Date): Promise<void> {
    const left = await c.jobs
      .find({ state: 'ended', endedAt: { $gte: new Date(0) }, crawlerId, by })
      .toArray();
    const seqs = [...new Set(left.map((each) => each.seq ?? 0))].sort((a, b) => a - b);
    for (const each of seqs) {
      const ended = left
        .filter((document) => document.seq === each)
        .map((document) => ({ rid: document._id, tombstone: document as Tombstone }));
      const at = ended[0]?.tombstone.endedAt ?? now;
      await settle({ crawlerId, by, seq: each, ended }, now, createDelta(at));
    }
  }

  return {
    processId,
    nextSeq: () => ++seq,
    inTurn: (crawlerId, work) =>
      chain.run(crawlerId, async () => {
        if (unsure.has(crawlerId)) {
          await recover(crawlerId, processId, new Date());
          await recount(c, crawlerId);
          unsure.delete(crawlerId);
        }
        try {
          return await work();
        } catch (error) {
          unsure.add(crawlerId);
          throw error;
        }
      }),
    settle,
    recover,
  };
}

async function countInAccount(c: Collections, accountId: string, delta: Delta): Promise<void> {
  const { queued, queuedBytes, storedBytes } = delta;
  if (queued === 0 && queuedBytes === 0 && storedBytes === 0) return;
  await c.accounts.updateOne({ _id: accountId }, { $inc: { queued, queuedBytes, storedBytes } });
}

function addEnd(delta: Delta, tombstone: Tombstone): void {
  const { from, end, cbStatus, size = 0, kept = 0 } = tombstone;
  delta.add('live', -1);
  delta.add('liveBytes', -size);
  delta.addBytes('queuedBytes', -size);
  delta.addBytes('storedBytes', kept);
  if (from !== 'waiting') delta.add(from, -1);
  if (from !== 'running') delta.addQueued(-1);
  delta.add(end, 1);
  if (from === 'running' && (end === 'completed' || end === 'failed')) delta.happened('crawl');
  if (end === 'deleted' || end === 'purged') delta.addDay(end, 1);
  else delta.addDay(end === 'completed' ? 'success' : 'failed', 1);
  if (cbStatus !== undefined) delta.addStatus(cbStatus);
  if (tombstone.billed === true) delta.addDay('billed', 1);
  if (tombstone.timedOut === true) delta.addDay('timeouts', 1);
  if (tombstone.delivers !== undefined) delta.add('deliveriesPending', 1);
}
