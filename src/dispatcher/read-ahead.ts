import type { Clock } from '../domain/clock.ts';
import type { Crawler } from '../domain/crawler.ts';
import type { DueJob } from '../domain/job.ts';
import { DEFAULT_PRIORITY } from '../domain/priority.ts';
import { chargedJobBytes } from '../domain/quotas.ts';
import { DIGITS, digitsBeyond, hostDigit, kindOf } from '../domain/share-digits.ts';
import type { FairPool, Grant } from '../fairness/fair-pool.ts';
import type { LookReceipt, QueueLook } from '../store/store.ts';
import { isLow } from './host-choice.ts';
import type { HostLanes } from './host-lanes.ts';
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
  /**
   * When the first host opens of which no job is here, if all due jobs are of closed hosts. Infinite if that
   * is not known; undefined for other queues.
   */
  readonly opensMs: number | undefined;
  /** The queue may have jobs that the last look has not found. */
  expect(): void;
  /** A job goes back to the queue and falls due at that moment. */
  expectAt(moment: Date): void;
  /** The job that starts next. Those whose queue deadline has passed are left to the timeouts. */
  first(now: Date): DueJob | undefined;
  /** The first job has started. */
  started(job: DueJob): void;
  /**
   * Reads only jobs with these digits from now on, and forgets the others; undefined for all. Other
   * processes have had those in `lent`; absent for all.
   */
  keepTo(digits: string | undefined, lent?: ReadonlySet<string>): void;
  /** Forgets all jobs; the next ones come from a look that is still to be begun, or to end. */
  drop(): void;
  /** Forgets all jobs, and looks for none before that moment. */
  rest(until: Date): void;
  /** Forgets all jobs, and those of a look that is under way; the queue may have others. */
  clear(): void;
  /**
   * The look that a turn takes, without the jobs of the board. Undefined when none is wanted, or
   * when there is no memory for what it would find. `granted` is memory that was
   * waited for, given only if {@link ReadAhead.wantsMore}.
   */
  beginLook(
    crawler: Pick<Crawler, 'accountId'>,
    slots: number,
    granted?: Grant,
  ): QueueLook | undefined;
  /** Takes in what the look has found, if it was not given up. */
  endLook(receipt: LookReceipt): void;
  /** Gives the look up; does nothing after `endLook`. */
  cancelLook(): void;
}

/** Bounds of how many jobs are read ahead: one for each slot, or more if looks find none left. */
const MIN_READ_AHEAD = 8;
const MAX_READ_AHEAD = 1_024;
/** Most jobs at once, without those of hosts that are closed for long. */
const MAX_AHEAD = 4 * MAX_READ_AHEAD;
/**
 * Hosts for each slot that a look by hosts should find; it reads correspondingly few jobs of each.
 */
const HOSTS_PER_SLOT = 2;
/** The interval of looks for hosts that have nothing here, and for urgent jobs, while there is enough of others. */
const LOOK_FOR_HOSTS_MS = 250;
/** Looks for urgent jobs follow each other until this many jobs for each slot are here. */
const NEWS_AHEAD = 4;
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

/** Whether a host is among those behind `from`, up to `to`, in an order that starts again behind the last one. */
function isWithin(host: string, from: string, to: string): boolean {
  return from < to ? host > from && host <= to : host > from || host <= to;
}

/** Makes it for a queue that may have jobs. */
export function createReadAhead(deps: {
  readonly crawlerId: string;
  readonly memory: FairPool;
  readonly board: JobBoard;
  readonly lanes: HostLanes;
  readonly clock: Clock;
}): ReadAhead {
  const { crawlerId, memory, board, lanes, clock } = deps;
  let looking:
    | { readonly room: Grant; readonly slots: number; readonly openHosts: number }
    | undefined;
  let expects = true;
  let hasMore = false;
  let nextDueAt: Date | undefined;
  let target = MIN_READ_AHEAD;
  /** Fewest entries since the last look began. */
  let lowest = 0;
  let digits: string | undefined;
  /** Where the next look by hosts continues. */
  let afterHost = '';
  /** Whether hosts may have due jobs in the queue and none here. */
  let othersWait = false;
  /** Where the round of looks through all hosts began, and how many hosts it has found that had no job here. */
  let roundFrom = '';
  let foundHosts = 0;
  /** Hosts that had due jobs in the last round, without those of which a try was due. */
  let roundHosts = Number.POSITIVE_INFINITY;
  /** How many jobs of one host the last look was to read. */
  let perHost = 1;
  /** Whether the last look left out hosts that may have more. */
  let hasLeftOut = false;
  /** Whether the queue may have jobs that came after the last look, or urgent ones, and when that look began. */
  let hasNews = false;
  let lookedMs = Number.NEGATIVE_INFINITY;
  /** Whether the looks since the last one that saw all hosts have found only jobs of closed hosts. */
  let isFruitless = true;
  /** Whether the last look has found such jobs, and left them in the queue. */
  let leftClosed = false;
  /** Whether the round before had nothing but such jobs. The next look leaves out their hosts, and may find others. */
  let wasRefused = false;
  /** Whether the last look has found that all due jobs are of closed hosts. */
  let onlyClosed = false;
  let countedMs = Number.NEGATIVE_INFINITY;
  /** Jobs of closed hosts when they were last counted. */
  let closedJobs = 0;

  function drop(): void {
    for (const { rid } of board.jobsAhead()) board.forget(rid);
    lowest = 0;
  }

  const nowMs = (): number => clock.now().getTime();
  function isFull(): boolean {
    if (board.ahead < MAX_AHEAD) return false;
    if (nowMs() - countedMs >= LOOK_FOR_HOSTS_MS) {
      countedMs = nowMs();
      closedJobs = lanes.closedJobs(countedMs);
    }
    return board.ahead - closedJobs >= MAX_AHEAD;
  }

  /** Whether hosts of which nothing is here come first. Without room for their jobs nobody waits for them. */
  const othersFirst = (): boolean => othersWait && !isFull();
  const next = (now = nowMs()): DueJob | undefined => lanes.next(now, othersFirst());
  const hasNext = (): boolean => next() !== undefined;
  /** Jobs that could start now. None could if the first one has to wait for hosts still to be read. */
  const startable = (): number =>
    hasNext() ? Math.min(lanes.startable(nowMs(), othersFirst()), board.ahead) : 0;
  /** The same if no host had to be read before. */
  const spare = (): number => Math.min(lanes.startable(nowMs()), board.ahead);

  function hasRoom(): boolean {
    if (isFull()) return false;
    if (startable() <= target / 2) return true;
    // What is new may be of hosts that have nothing here, or may come first.
    return hasNews && nowMs() - lookedMs >= LOOK_FOR_HOSTS_MS;
  }

  function cancelLook(): void {
    looking?.room.release();
    looking = undefined;
  }

  function isOurs({ rid, host }: DueJob): boolean {
    if (digits === undefined) return true;
    const digit = kindOf(digits) === 'host' ? hostDigit(host) : rid.slice(-1);
    return digits.includes(digit);
  }

  /** A job is here no more: its host may need others, which the last look may have left out. */
  function expectOf(job: DueJob): void {
    if (!(hasLeftOut || leftClosed) || !isLow(lanes.aheadOf(job), perHost)) return;
    if (!lanes.isTry(job) || lanes.isFull()) expects = true;
  }

  /** Sets how many jobs to read ahead for a number of slots. */
  function setTarget(slots: number): void {
    const base = Math.min(Math.max(slots, MIN_READ_AHEAD), MAX_READ_AHEAD / 2);
    if (hasMore && lowest < target * MIN_LEFT) target *= lowest === 0 ? 4 : 2;
    else if (lowest > target * MAX_LEFT) target *= SHRINK_FACTOR;
    target = Math.min(Math.max(Math.floor(target), base), MAX_READ_AHEAD);
  }

  /**
   * All hosts were seen. If all that is due is of closed hosts, the next look waits for one of them.
   * `isOutdated`: a crawl that started while the look was under way may have opened one. `tookAny`: the look
   * has found jobs that were taken.
   */
  function endRound(isOutdated: boolean, tookAny: boolean): void {
    const isRefused = leftClosed && (wasRefused || !hasMore);
    const waits = isFruitless && !isOutdated && (isRefused || (hasLeftOut && !hasMore));
    wasRefused = isFruitless && leftClosed;
    isFruitless = true;
    onlyClosed = waits || (hasLeftOut && !hasMore && !isOutdated && !tookAny);
    if (waits) {
      expects = false;
      hasMore = false;
    }
    // One that has opened since the look began was left out.
    const opensAt = leftClosed || hasLeftOut ? lanes.opensAt(lookedMs, true) : undefined;
    if (opensAt !== undefined && opensAt < (nextDueAt?.getTime() ?? Number.POSITIVE_INFINITY)) {
      nextDueAt = new Date(opensAt);
    }
  }

  return {
    get wantsMore() {
      return expects && digits !== '' && hasRoom();
    },
    get ranDry() {
      return hasMore && !hasNext();
    },
    get nextDueAt() {
      return nextDueAt;
    },
    get opensMs() {
      if (expects || !onlyClosed) return undefined;
      return lanes.opensAt(nowMs(), true) ?? Number.POSITIVE_INFINITY;
    },
    expect() {
      expects = true;
      hasNews = true;
      // The next look tells when others fall due.
      if (nextDueAt !== undefined && nextDueAt <= clock.now()) nextDueAt = undefined;
    },
    expectAt(moment) {
      if (nextDueAt === undefined || moment < nextDueAt) nextDueAt = moment;
    },
    first(now) {
      for (;;) {
        const job = next(now.getTime());
        if (job === undefined) return undefined;
        const { queueDeadline, firstTriedAt } = job;
        const isOver = queueDeadline !== undefined && queueDeadline <= now;
        if (!isOver || firstTriedAt !== undefined) return job;
        board.forget(job.rid);
        expectOf(job);
      }
    },
    started(job) {
      lowest = Math.min(lowest, spare());
      expectOf(job);
      // Its host may have more in the queue, which wait for the next look.
      if (hasMore && lanes.aheadOf(job) === 0) othersWait = true;
    },
    keepTo(given, lent) {
      if (given === digits) return;
      const before = digits ?? DIGITS.host;
      digits = given;
      const after = given ?? DIGITS.host;
      const more = digitsBeyond(after, before);
      // Who had jobs by rids may have crawled any host.
      const isAny = lent === undefined || kindOf(after) !== kindOf(before);
      lanes.gained(isAny ? more : more.filter((digit) => lent.has(digit)), nowMs());
      for (const job of board.jobsAhead()) if (!isOurs(job)) board.forget(job.rid);
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
    beginLook({ accountId }, slots, granted) {
      if (!expects || digits === '' || !hasRoom()) return undefined;
      setTarget(slots);
      const left = startable();
      lowest = spare();
      onlyClosed = false;
      const claimant = { accountId, crawlerId };
      const rest = Math.max(target - left, 0);
      const news = hasNews ? Math.min(2 * slots, MAX_READ_AHEAD) : 0;
      const most = Math.max(rest, news, hasMore || news > 0 ? MIN_READ_AHEAD : 0);
      const wanted = most * JOB_BYTES + BODY_BYTES;
      const bytes = Math.min(wanted, memory.available(claimant));
      const acquire = () => (bytes < JOB_BYTES ? undefined : memory.tryAcquire(claimant, bytes));
      const room = granted ?? acquire();
      if (room === undefined) return undefined;
      lookedMs = nowMs();
      hasNews = false;
      // With little memory half of it is for bodies.
      const limit = Math.min(most, Math.max(1, Math.floor(room.amount / (2 * JOB_BYTES))));
      expects = false;
      const maxBytes = room.amount - limit * JOB_BYTES;
      // A helper can have digits before it has slots.
      const hostsHere = Math.min(Math.max(roundHosts, 1), HOSTS_PER_SLOT * Math.max(slots, 1));
      perHost = Math.ceil(target / hostsHere);
      const { closed, full, surplus, open: openHosts } = lanes.wanted(nowMs(), perHost, afterHost);
      looking = { room, slots, openHosts };
      for (const { rid } of surplus) board.forget(rid);
      hasLeftOut = closed.length > 0 || leftClosed;
      const hosts = { perHost, rest, after: afterHost, closed, full };
      const byAge = !hasMore && !hasLeftOut;
      return { limit, maxBytes, except: board.waitingInStore(), digits, hosts, byAge };
    },
    endLook(receipt) {
      if (looking === undefined) return;
      const isOutdated = expects;
      ({ hasMore, nextDueAt } = receipt);
      if (hasMore) expects = true;
      leftClosed = false;
      let tookAny = false;
      let tookUrgent = false;
      const at = nowMs();
      for (const job of receipt.jobs) {
        // A start that was lost may have left a job that is due; its crawl has to end first.
        if (!isOurs(job) || board.isCrawling(job.rid)) continue;
        if (!lanes.takes(job, at)) {
          leftClosed = true;
          continue;
        }
        isFruitless = false;
        tookAny = true;
        tookUrgent ||= job.priority > DEFAULT_PRIORITY;
        const isHere = lanes.isHere(job);
        board.read({ job, held: looking.room.split(chargedJobBytes(job)) });
        if (!isHere && !lanes.isTry(job)) foundHosts += 1;
      }
      const { slots, openHosts } = looking;
      // A look takes some of those that come first, and leaves room for the others.
      const isShort = board.ahead < NEWS_AHEAD * Math.max(slots, MIN_READ_AHEAD);
      if (hasMore && tookUrgent && isShort) hasNews = true;
      cancelLook();
      const { lastHost, seesAllHosts = false } = receipt;
      if (seesAllHosts || (lastHost !== undefined && isWithin(roundFrom, afterHost, lastHost))) {
        roundHosts = foundHosts + openHosts;
        foundHosts = 0;
        roundFrom = lastHost ?? '';
      }
      afterHost = lastHost ?? '';
      // A slot for each is enough for all of them.
      othersWait = hasMore && !seesAllHosts && roundHosts > slots;
      if (seesAllHosts) endRound(isOutdated, tookAny);
    },
    cancelLook,
  };
}
