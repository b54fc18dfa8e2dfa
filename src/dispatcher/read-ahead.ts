import type { Crawler } from '../domain/crawler.ts';
import type { DueJob } from '../domain/job.ts';
import { chargedJobBytes } from '../domain/quotas.ts';
import { createTransientMap } from '../domain/transient-map.ts';
import type { FairPool, Grant } from '../fairness/fair-pool.ts';
import type { QueueLook, TurnReceipt } from '../store/store.ts';

/**
 * Jobs that a run has found in the queue and not started yet. To everyone else they wait: a pause, a
 * purge, a deletion or a queue deadline applies to them until they start. Bounded in number and, by
 * the memory that the accounts share, in bytes.
 */
export interface ReadAhead {
  readonly size: number;
  /** Whether half of the room is free, and the queue may have more. */
  readonly wantsMore: boolean;
  /** Whether all are gone, and the last look has left due jobs in the queue. */
  readonly ranDry: boolean;
  /** When the next job falls due, as far as the last look and `expectAt` tell. */
  readonly nextDueAt: Date | undefined;
  /** The queue may have jobs that the last look has not found. */
  expect(): void;
  /** A job goes back to the queue and falls due at that moment. */
  expectAt(moment: Date): void;
  /** The job that starts next. Those whose queue deadline has passed are left to the timeouts. */
  first(now: Date): DueJob | undefined;
  remove(rid: string): void;
  /** Reads only jobs of these digits from now on, and forgets the others; undefined for all. */
  keepTo(digits: string | undefined): void;
  /** Forgets all jobs; the next ones come from a look that is still to be begun, or to end. */
  drop(): void;
  /** Forgets all jobs, and looks for none before that moment. */
  rest(until: Date): void;
  /** Forgets all jobs, and those of a look that is under way; the queue may have others. */
  clear(): void;
  /**
   * The look that a turn takes, which leaves out the rids of `begun`, too. Undefined when none is
   * wanted, or when there is no memory for what it would find.
   */
  beginLook(
    crawler: Pick<Crawler, 'accountId'>,
    slots: number,
    begun: readonly string[],
  ): QueueLook | undefined;
  /** Takes in what the look has found, if it was not given up. */
  endLook(receipt: Pick<TurnReceipt, 'jobs' | 'hasMore' | 'nextDueAt'>): void;
  /** Gives the look up; does nothing after `endLook`. */
  cancelLook(): void;
}

/** Jobs read ahead: one for each slot of the crawler, or more, so that few looks find none left. */
const LEAST = 8;
const MOST = 1_024;
/**
 * The part of the jobs read ahead that is left when the next ones come. If less is left, the next
 * look reads twice as many ahead, and four times as many if none is. If more is left, it reads a
 * tenth fewer: a slot that waits costs a crawl, a job too many some hundred bytes.
 */
const LITTLE_LEFT = 0.15;
const MUCH_LEFT = 0.4;
const SHRINKING = 0.9;
/** What a job may be charged for in the memory that is reserved for a look. */
const JOB_BYTES = 1_024;
/** Bytes that jobs may be charged for beyond that in one look, such as for bodies. */
const BODY_BYTES = 2 * 1024 * 1024;

interface Entry {
  readonly job: DueJob;
  /** The memory that it holds. */
  readonly held: Grant;
}

/** Makes an empty one, for a queue that may have jobs. */
export function createReadAhead(deps: {
  readonly crawlerId: string;
  readonly memory: FairPool;
}): ReadAhead {
  const { crawlerId, memory } = deps;
  const entries = createTransientMap<string, Entry>();
  let looking: { readonly room: Grant } | undefined;
  let expects = true;
  let hasMore = false;
  let nextDueAt: Date | undefined;
  let target = LEAST;
  /** Fewest entries since the last look began. */
  let lowest = 0;
  let digits: string | undefined;

  function remove(rid: string): void {
    entries.get(rid)?.held.release();
    entries.delete(rid);
    lowest = Math.min(lowest, entries.size);
  }

  function drop(): void {
    for (const rid of entries.keys()) remove(rid);
  }

  function cancelLook(): void {
    looking?.room.release();
    looking = undefined;
  }

  function isOurs(rid: string): boolean {
    return digits === undefined || digits.includes(rid.at(-1) ?? '');
  }

  /** How many jobs to read ahead for so many slots. */
  function setTarget(slots: number): void {
    const base = Math.min(Math.max(slots, LEAST), MOST / 2);
    if (hasMore && lowest < target * LITTLE_LEFT) target *= lowest === 0 ? 4 : 2;
    else if (lowest > target * MUCH_LEFT) target *= SHRINKING;
    target = Math.min(Math.max(Math.floor(target), base), MOST);
  }

  return {
    get size() {
      return entries.size;
    },
    get wantsMore() {
      return expects && digits !== '' && entries.size <= target / 2;
    },
    get ranDry() {
      return hasMore && entries.size === 0;
    },
    get nextDueAt() {
      return nextDueAt;
    },
    expect() {
      expects = true;
    },
    expectAt(moment) {
      if (nextDueAt === undefined || moment < nextDueAt) nextDueAt = moment;
    },
    first(now) {
      for (const { job } of entries.values()) {
        const { queueDeadline, firstTriedAt } = job;
        const isOver = queueDeadline !== undefined && queueDeadline <= now;
        if (!isOver || firstTriedAt !== undefined) return job;
        remove(job.rid);
      }
      return undefined;
    },
    remove,
    keepTo(given) {
      if (given === digits) return;
      digits = given;
      for (const rid of entries.keys()) if (!isOurs(rid)) remove(rid);
      expects = true;
    },
    drop,
    rest(until) {
      drop();
      expects = false;
      nextDueAt = until;
    },
    clear() {
      drop();
      cancelLook();
      expects = true;
    },
    beginLook({ accountId }, slots, begun) {
      if (!expects || digits === '' || entries.size > target / 2) return undefined;
      setTarget(slots);
      lowest = entries.size;
      const claimant = { accountId, crawlerId };
      const wanted = (target - entries.size) * JOB_BYTES + BODY_BYTES;
      const bytes = Math.min(wanted, memory.available(claimant));
      const room = bytes < JOB_BYTES ? undefined : memory.tryAcquire(claimant, bytes);
      if (room === undefined) return undefined;
      const limit = Math.min(target - entries.size, Math.floor(room.amount / JOB_BYTES));
      looking = { room };
      expects = false;
      const maxBytes = room.amount - limit * JOB_BYTES;
      return { limit, maxBytes, except: [...entries.keys(), ...begun], digits };
    },
    endLook(receipt) {
      if (looking === undefined) return;
      ({ hasMore, nextDueAt } = receipt);
      if (hasMore) expects = true;
      for (const job of receipt.jobs) {
        if (!isOurs(job.rid)) continue;
        entries.set(job.rid, { job, held: looking.room.split(chargedJobBytes(job)) });
      }
      cancelLook();
    },
    cancelLook,
  };
}
