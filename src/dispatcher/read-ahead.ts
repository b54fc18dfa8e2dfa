import type { Crawler } from '../domain/crawler.ts';
import type { DueJob } from '../domain/job.ts';
import { chargedJobBytes } from '../domain/quotas.ts';
import type { FairPool, Grant } from '../fairness/fair-pool.ts';
import type { QueueLook, TurnReceipt } from '../store/store.ts';
import type { JobBoard } from './job-board.ts';

/**
 * Which jobs a run reads ahead into its board, and how many. To everyone else they wait: a pause, a
 * purge, a deletion or a queue deadline applies to them until they start. Bounded in number and, by
 * the memory that the accounts share, in bytes.
 */
export interface ReadAhead {
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
  /** The first job has started. */
  started(): void;
  /** Reads only jobs of these digits from now on, and forgets the others; undefined for all. */
  keepTo(digits: string | undefined): void;
  /** Forgets all jobs; the next ones come from a look that is still to be begun, or to end. */
  drop(): void;
  /** Forgets all jobs, and looks for none before that moment. */
  rest(until: Date): void;
  /** Forgets all jobs, and those of a look that is under way; the queue may have others. */
  clear(): void;
  /**
   * The look that a turn takes, without the jobs of the board. Undefined when none is wanted, or
   * when there is no memory for what it would find.
   */
  beginLook(crawler: Pick<Crawler, 'accountId'>, slots: number): QueueLook | undefined;
  /** Takes in what the look has found, if it was not given up. */
  endLook(receipt: Pick<TurnReceipt, 'jobs' | 'hasMore' | 'nextDueAt'>): void;
  /** Gives the look up; does nothing after `endLook`. */
  cancelLook(): void;
}

/** Bounds of how many jobs are read ahead: one for each slot, or more if looks find none left. */
const MIN_READ_AHEAD = 8;
const MAX_READ_AHEAD = 1_024;
/**
 * Bounds of the part of the jobs read ahead that is left when the next ones come. Below the lower
 * bound the next look reads twice as many, or four times as many if none is left. Above the upper
 * one it reads a tenth fewer. A slot without a job costs a crawl, a spare job some hundred bytes.
 */
const MIN_LEFT = 0.15;
const MAX_LEFT = 0.4;
const SHRINK_FACTOR = 0.9;
/** What a job may be charged for in the memory that is reserved for a look. */
const JOB_BYTES = 1_024;
/** Bytes that jobs may be charged for beyond that in one look, such as for bodies. */
const BODY_BYTES = 2 * 1024 * 1024;

/** Makes it for a queue that may have jobs. */
export function createReadAhead(deps: {
  readonly crawlerId: string;
  readonly memory: FairPool;
  readonly board: JobBoard;
}): ReadAhead {
  const { crawlerId, memory, board } = deps;
  let looking: { readonly room: Grant } | undefined;
  let expects = true;
  let hasMore = false;
  let nextDueAt: Date | undefined;
  let target = MIN_READ_AHEAD;
  /** Fewest entries since the last look began. */
  let lowest = 0;
  let digits: string | undefined;

  function drop(): void {
    for (const { rid } of board.jobsAhead()) board.forget(rid);
    lowest = 0;
  }

  function cancelLook(): void {
    looking?.room.release();
    looking = undefined;
  }

  function isOurs(rid: string): boolean {
    return digits === undefined || digits.includes(rid.at(-1) ?? '');
  }

  /** Sets how many jobs to read ahead for a number of slots. */
  function setTarget(slots: number): void {
    const base = Math.min(Math.max(slots, MIN_READ_AHEAD), MAX_READ_AHEAD / 2);
    if (hasMore && lowest < target * MIN_LEFT) target *= lowest === 0 ? 4 : 2;
    else if (lowest > target * MAX_LEFT) target *= SHRINK_FACTOR;
    target = Math.min(Math.max(Math.floor(target), base), MAX_READ_AHEAD);
  }

  return {
    get wantsMore() {
      return expects && digits !== '' && board.ahead <= target / 2;
    },
    get ranDry() {
      return hasMore && board.ahead === 0;
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
      for (const job of board.jobsAhead()) {
        const { queueDeadline, firstTriedAt } = job;
        const isOver = queueDeadline !== undefined && queueDeadline <= now;
        if (!isOver || firstTriedAt !== undefined) return job;
        board.forget(job.rid);
      }
      return undefined;
    },
    started() {
      lowest = Math.min(lowest, board.ahead);
    },
    keepTo(given) {
      if (given === digits) return;
      digits = given;
      for (const { rid } of board.jobsAhead()) if (!isOurs(rid)) board.forget(rid);
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
    beginLook({ accountId }, slots) {
      if (!expects || digits === '' || board.ahead > target / 2) return undefined;
      setTarget(slots);
      lowest = board.ahead;
      const claimant = { accountId, crawlerId };
      const wanted = (target - board.ahead) * JOB_BYTES + BODY_BYTES;
      const bytes = Math.min(wanted, memory.available(claimant));
      const room = bytes < JOB_BYTES ? undefined : memory.tryAcquire(claimant, bytes);
      if (room === undefined) return undefined;
      const limit = Math.min(target - board.ahead, Math.floor(room.amount / JOB_BYTES));
      looking = { room };
      expects = false;
      const maxBytes = room.amount - limit * JOB_BYTES;
      return { limit, maxBytes, except: board.waitingInStore(), digits };
    },
    endLook(receipt) {
      if (looking === undefined) return;
      ({ hasMore, nextDueAt } = receipt);
      if (hasMore) expects = true;
      for (const job of receipt.jobs) {
        // A start that was lost may have left a job that is due; its crawl has to end first.
        if (!isOurs(job.rid) || board.isCrawling(job.rid)) continue;
        board.read({ job, held: looking.room.split(chargedJobBytes(job)) });
      }
      cancelLook();
    },
    cancelLook,
  };
}
