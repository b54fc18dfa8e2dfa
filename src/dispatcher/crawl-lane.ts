import type { Clock } from '../domain/clock.ts';
import type { Crawler } from '../domain/crawler.ts';
import { defined } from '../domain/defined.ts';
import type { DueJob, QueuedJob } from '../domain/job.ts';
import type { Claimant, FairPool, Grant } from '../fairness/fair-pool.ts';
import { createWaitingGrant } from '../fairness/waiting-grant.ts';
import type { JobOutcome, QueueLook, StartedJob, Store, TurnReceipt } from '../store/store.ts';
import type { DispatcherDeps } from './dispatcher.ts';
import { createInFlight, WorkAborted } from './in-flight.ts';
import type { JobLog } from './job-log.ts';
import { createReadAhead } from './read-ahead.ts';
import { createSlotLine } from './slot-line.ts';
import { createUnwrittenEnds, type KeptPage, pageBytes } from './unwritten-ends.ts';
import { createUnwrittenStarts } from './unwritten-starts.ts';

/** What the lane works with. */
export interface CrawlLaneDeps
  extends Pick<DispatcherDeps, 'crawlJob' | 'crawlBytes' | 'logger' | 'onStart'>,
    Pick<Store, 'writeBytes'> {
  readonly crawlerId: string;
  readonly clock: Clock;
  /** The process's crawls in flight. */
  readonly slots: FairPool;
  /** The process's bytes in flight. */
  readonly memory: FairPool;
  /** Whether crawls may start now. Not in a process that slept through its lease, as with SIGSTOP. */
  readonly mayStart: () => boolean;
  /** How many crawls this process may have in flight at once. */
  readonly limit: (crawler: Crawler) => number;
  readonly jobLog: JobLog | undefined;
  /**
   * How long a crawl lasts before its start is written, unless it is written at once. Above 0 jobs are
   * handed over before they have a slot, too.
   */
  readonly startDelayMs: number;
  /** Called when there is something to write, or room again. */
  readonly onChange: () => void;
}

/**
 * The part of the crawls in one turn. Every turn that was begun ends with `end` or `fail`, and then
 * with `release`.
 */
export interface CrawlTurn {
  readonly ended: readonly JobOutcome[];
  readonly started: readonly StartedJob[];
  readonly look: QueueLook | undefined;
  /** Takes in what the turn did: drops crawls whose start was lost, and starts what it found. */
  end(receipt: TurnReceipt): void;
  /** Takes everything back for the next turn: the store may have done all of it, or nothing. */
  fail(): void;
  /** Hands over one outcome's page in memory; `release` does not give that back then. */
  keep(rid: string): KeptPage;
  /** Gives back the memory of the pages, which have been written. */
  release(): void;
}

/**
 * The crawls of one crawler's run: jobs that were read ahead and still wait, crawls in flight, and
 * starts and ends that no turn has written yet. A slot that becomes free starts the next job at
 * once, without the database.
 */
export interface CrawlLane {
  readonly inFlight: number;
  /** Ended crawls that no turn has taken yet. */
  readonly unwrittenEnds: number;
  /** Starts and ends that the next turn writes. */
  readonly unwritten: number;
  /** Bytes of the pages that the next turn writes. */
  readonly nextWriteBytes: number;
  /** Jobs that were read ahead, among them those that were handed over and wait for a slot. */
  readonly buffered: number;
  /** Whether a look may find jobs that there is room for. */
  readonly wantsLook: boolean;
  /** Whether slots are free, and due jobs for them wait in the store. */
  readonly isStarving: boolean;
  /** Whether the crawler has due jobs that wait, and no slot for them here. */
  readonly isFull: boolean;
  /** Starts that no turn has taken yet. */
  readonly unwrittenStarts: number;
  /** How long until a start has to be written that waits for its crawl to end, in ms. */
  readonly startDueInMs: number;
  /** When the next job falls due, as far as is known. */
  readonly nextDueAt: Date | undefined;
  /** The queue may have jobs that no look has found. */
  expectJobs(): void;
  /** Starts only jobs whose rid ends with one of these digits from now on; undefined for all. */
  keepTo(digits: string | undefined): void;
  /** Starts what there is room for, after the limit has grown. */
  fill(): void;
  /** Forgets what was read ahead, because the crawler or its queue has changed. */
  forget(): void;
  /**
   * Takes what has ended and started into a turn: all of it, or as much as fits into one write.
   * Reads ahead only if `looks`; otherwise what was read ahead is forgotten.
   */
  begin(crawler: Crawler, looks: boolean): CrawlTurn;
  /** Aborts a crawl, whose outcome is dropped, or forgets the job if it still waits. */
  abort(rid: string): void;
  abortAll(reason: WorkAborted): void;
  /** Aborts and drops everything, and gives all room back. */
  close(): void;
}

/** Before the queue is looked at again of which nothing may be crawled. */
const REST_MS = 500;
/** Before its queue deadline; long enough to write a start. */
const NEAR_MS = 1_000;
/**
 * So many times its slots, a run's first crawls have their starts written at once, and wait for no slot.
 * What is in flight at any time is among so many jobs that are due first.
 */
const FIRST_ROUNDS = 4;
const NOTHING_KEPT: KeptPage = { held: [] };

/** Makes a lane in which nothing is in flight. */
export function createCrawlLane(deps: CrawlLaneDeps): CrawlLane {
  const { crawlerId, slots, memory, crawlBytes, logger, clock } = deps;
  const crawls = createInFlight(() => {
    fill();
    deps.onChange();
  });
  const ahead = createReadAhead({ crawlerId, memory });
  const ended = createUnwrittenEnds(deps.writeBytes);
  const started = createUnwrittenStarts(deps.startDelayMs);
  const line = createSlotLine();
  /** How many crawls the run has started. */
  let startCount = 0;
  const waitingSlot = createWaitingGrant(slots, () => {
    fill();
    waitingSlot.take()?.release();
    deps.onChange();
  });
  const waitingMemory = createWaitingGrant(memory, () => {
    // There is as much for the next start, or for a look.
    waitingMemory.take()?.release();
    fill();
    deps.onChange();
  });
  let crawler: Crawler | undefined;
  let closed = false;

  /** Whether it waits for a slot, or for memory, that others use now. */
  const waits = (): boolean => waitingSlot.waits || waitingMemory.waits;

  const isPastFirst = (by: Crawler): boolean => startCount > by.concurrency * FIRST_ROUNDS;

  /**
   * Whether a start is written at once, although its crawl may end soon. A page that kills the process
   * has to be found: the run that comes next starts first what was in flight then, and after one death
   * that was counted, the job itself says so. A timeout must not end a job that has started in time, and
   * a crawler that keeps a pace has few starts.
   */
  function isWrittenAtOnce(job: Omit<DueJob, 'dueAt'>, by: Crawler, startedAt: Date): boolean {
    const { queueDeadline, crashes } = job;
    if (!isPastFirst(by) || crashes > 0 || by.politeness !== undefined) return true;
    return queueDeadline !== undefined && queueDeadline.getTime() - startedAt.getTime() < NEAR_MS;
  }

  /** Starts the crawl of a job, or hands it over to wait if there is no `grant` for it. */
  function startCrawl(
    { dueAt, ...queued }: DueJob,
    by: Crawler,
    grant: Grant | undefined,
    base: Grant,
  ): void {
    const { rid } = queued;
    const attempt = queued.attempt + 1;
    const firstTriedAt = queued.firstTriedAt ?? clock.now();
    const job: QueuedJob = { ...queued, state: 'running', attempt, firstTriedAt };
    const slot = line.enter(rid, grant, () => {
      const startedAt = clock.now();
      startCount += 1;
      started.add({ rid, attempt, startedAt }, isWrittenAtOnce(queued, by, startedAt));
      deps.jobLog?.started(job);
      deps.onStart?.(startedAt.getTime() - dueAt.getTime());
    });
    const end = (outcome: JobOutcome, kept: KeptPage): void => {
      // Its thread may have passed a slot to it that the dispatcher does not know of yet.
      slot.begin();
      const startedAt = started.remove(rid)?.startedAt;
      ended.add({ outcome: startedAt ? { ...outcome, startedAt } : outcome, ...kept });
    };
    crawls.start(rid, async (signal) => {
      try {
        const { outcome, held, plain } = await deps.crawlJob(job, by, signal, slot);
        base.shrink(pageBytes(outcome) + (plain?.byteLength ?? 0));
        if (closed) {
          base.release();
          held?.release();
          return;
        }
        const grants = held === undefined ? [base] : [base, held];
        end(outcome, { held: grants, ...defined({ plain }) });
      } catch (error) {
        base.release();
        if (!signal.aborted) logger.error({ err: error, rid }, 'a crawl broke off');
        // The store has the job as it was: a look finds it again.
        if (!slot.isHeld) ahead.expect();
        else if (error instanceof WorkAborted && error.end === 'dropped') started.remove(rid);
        else end({ kind: 'release', rid, crawlerId, attempt }, NOTHING_KEPT);
      } finally {
        slot.leave();
      }
    });
  }

  /** Crawls that have a slot. */
  const inFlight = (): number => crawls.size - line.waiting;

  const hasRoom = (by: Crawler): boolean => inFlight() < deps.limit(by);

  const baseBytes = ({ body }: DueJob): number => crawlBytes + (body?.byteLength ?? 0);

  /** Starts jobs that were read ahead while there is room for their crawls. */
  function fill(): void {
    if (crawler === undefined || closed) return;
    if (!deps.mayStart()) return forgetHandedOver();
    const claimant = { accountId: crawler.accountId, crawlerId };
    while (hasRoom(crawler)) {
      const job = line.isLate ? undefined : ahead.first(clock.now());
      if (job === undefined && line.waiting === 0) return;
      const slot = waitingSlot.take() ?? slots.tryAcquire(claimant, 1);
      if (slot === undefined) return waitingSlot.wait(claimant, 1);
      if (job === undefined) {
        line.startFirst(slot);
        continue;
      }
      const base = memory.tryAcquire(claimant, baseBytes(job));
      if (base === undefined) {
        slot.release();
        return waitingMemory.wait(claimant, baseBytes(job));
      }
      ahead.remove(job.rid);
      startCrawl(job, crawler, slot, base);
    }
    if (deps.startDelayMs > 0 && isPastFirst(crawler)) handOver(crawler, claimant);
  }

  /** Hands jobs over that start in the slots of those that are in flight, unless others wait for these. */
  function handOver(by: Crawler, claimant: Claimant): void {
    if (by.tokenType !== 'normal' || by.politeness !== undefined) return;
    while (slots.waiting + memory.waiting === 0 && line.mayWait(deps.limit(by))) {
      const job = ahead.first(clock.now());
      if (job === undefined || !mayBeHandedOver(job)) return;
      const base = memory.tryAcquire(claimant, baseBytes(job));
      if (base === undefined) return;
      ahead.remove(job.rid);
      startCrawl(job, by, undefined, base);
    }
  }

  /** What was handed over and has not started goes back to where it was read from. */
  function forgetHandedOver(): void {
    for (const rid of line.drop()) crawls.abort(rid, new WorkAborted('dropped'));
  }

  /** Makes the next turn write the start again, alone or with the crawl's end. */
  function takeBackStart(start: StartedJob): void {
    if (crawls.has(start.rid)) started.add(start, true);
    ended.takeBackStart(start);
  }

  /** A job that goes back to the queue is due there again. */
  function expectBack(outcome: JobOutcome): void {
    if (outcome.kind !== 'retry' && outcome.kind !== 'release') return;
    ahead.expectAt(outcome.dueAt ?? clock.now());
  }

  /** Begins a look for a turn, or waits for memory for what it would find. */
  function beginLook(current: Crawler): QueueLook | undefined {
    if (waits() || !ahead.wantsMore) return undefined;
    // The next turns write that these have started; to the store they still wait.
    const except = [...ended.begun(), ...started.rids(), ...line.rids()];
    const look = ahead.beginLook(current, deps.limit(current), except);
    if (look === undefined) {
      const { accountId } = current;
      waitingMemory.wait({ accountId, crawlerId }, crawlBytes);
    }
    return look;
  }

  return {
    get inFlight() {
      return inFlight();
    },
    get unwrittenEnds() {
      return ended.size;
    },
    get unwritten() {
      return ended.size + started.due;
    },
    get nextWriteBytes() {
      return ended.nextBytes;
    },
    get buffered() {
      return ahead.size + line.waiting;
    },
    get wantsLook() {
      return !waits() && ahead.wantsMore;
    },
    get isStarving() {
      return !waits() && ahead.ranDry && crawler !== undefined && hasRoom(crawler);
    },
    get isFull() {
      const hasDue = ahead.size > 0 || ahead.ranDry;
      return hasDue && crawler !== undefined && (waits() || !hasRoom(crawler));
    },
    get unwrittenStarts() {
      return started.size;
    },
    get startDueInMs() {
      return started.dueInMs;
    },
    get nextDueAt() {
      return ahead.nextDueAt;
    },
    keepTo: ahead.keepTo,
    fill,
    expectJobs: ahead.expect,
    forget() {
      forgetHandedOver();
      ahead.clear();
    },
    begin(current, looks) {
      crawler = current;
      const taken = ended.take();
      const starts = started.take();
      const kept = new Map<string, KeptPage>(taken.map((each) => [each.outcome.rid, each]));
      if (!looks) {
        forgetHandedOver();
        ahead.rest(new Date(clock.now().getTime() + REST_MS));
      }
      const look = looks ? beginLook(current) : undefined;
      return {
        ended: taken.map(({ outcome }) => outcome),
        started: starts,
        look,
        end(receipt) {
          for (const rid of receipt.lost) crawls.abort(rid, new WorkAborted('dropped'));
          // What was read ahead is outdated if the queue was purged or the crawler paused.
          if (receipt.lost.length > 0) ahead.expect();
          if (receipt.lost.length > 0 || receipt.paused) {
            forgetHandedOver();
            ahead.drop();
          }
          // A start that was lost may have left a job that is due; its crawl has to end first.
          const jobs = receipt.jobs.filter(({ rid }) => !crawls.has(rid));
          if (look !== undefined) ahead.endLook({ ...receipt, jobs });
          else {
            for (const { outcome } of taken) expectBack(outcome);
          }
          fill();
        },
        fail() {
          kept.clear();
          ended.takeBack(taken);
          for (const start of starts) takeBackStart(start);
          ahead.expect();
        },
        keep(rid) {
          const page = kept.get(rid) ?? NOTHING_KEPT;
          kept.delete(rid);
          return page;
        },
        release() {
          ahead.cancelLook();
          for (const { held } of kept.values()) for (const grant of held) grant.release();
        },
      };
    },
    abort(rid) {
      ahead.remove(rid);
      line.drop(rid);
      crawls.abort(rid, new WorkAborted('dropped'));
    },
    abortAll(reason) {
      line.drop();
      crawls.abortAll(reason);
    },
    close() {
      closed = true;
      waitingSlot.cancel();
      waitingMemory.cancel();
      ahead.clear();
      line.drop();
      crawls.abortAll(new WorkAborted('dropped'));
      ended.clear();
    },
  };
}

/**
 * Whether the job may start without the dispatcher: its deadline could pass meanwhile, the cookies of its
 * session could change, and the start of a page that may have killed the process has to be written.
 */
function mayBeHandedOver({ queueDeadline, crashes, parameters }: DueJob): boolean {
  const { cookies_session: session = '' } = parameters;
  return queueDeadline === undefined && crashes === 0 && session === '';
}
