import type { Clock } from '../domain/clock.ts';
import type { Crawler } from '../domain/crawler.ts';
import { defined } from '../domain/defined.ts';
import type { DueJob, QueuedJob } from '../domain/job.ts';
import type { StoreTraits } from '../domain/store-traits.ts';
import { createTransientMap } from '../domain/transient-map.ts';
import type { FairPool, Grant } from '../fairness/fair-pool.ts';
import { createWaitingGrant } from '../fairness/waiting-grant.ts';
import type { JobOutcome, QueueLook, StartedJob, TurnReceipt } from '../store/store.ts';
import type { DispatcherDeps } from './dispatcher.ts';
import { createInFlight, WorkAborted } from './in-flight.ts';
import type { JobLog } from './job-log.ts';
import { createReadAhead } from './read-ahead.ts';
import { createUnwrittenEnds, type KeptPage, pageBytes } from './unwritten-ends.ts';

/** What the lane works with. */
export interface CrawlLaneDeps
  extends Pick<DispatcherDeps, 'crawlJob' | 'crawlBytes' | 'logger' | 'onStart'>,
    Pick<StoreTraits, 'writeBytes'> {
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
  /** Starts and ends that the next turn writes. */
  readonly unwritten: number;
  /** Bytes of the pages that the next turn writes. */
  readonly nextWriteBytes: number;
  /** Jobs that were read ahead. */
  readonly buffered: number;
  /** Whether a look may find jobs that there is room for. */
  readonly wantsLook: boolean;
  /** Whether slots are free, and due jobs for them wait in the store. */
  readonly isStarving: boolean;
  /** Whether the crawler has due jobs that wait, and no slot for them here. */
  readonly isFull: boolean;
  /** Starts that no turn has taken yet. */
  readonly unwrittenStarts: number;
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

/** Delay before a queue of which nothing may be crawled is looked at again. */
const LOOK_AGAIN_MS = 500;
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
  /** Starts of crawls in flight that no turn has taken, by `rid`. */
  const started = createTransientMap<string, StartedJob>();
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

  /** Starts the crawl of a job in the slot that `slot` stands for, with the memory of `base`. */
  function startCrawl(
    { dueAt, ...queued }: DueJob,
    by: Crawler,
    { slot, base }: { readonly slot: Grant; readonly base: Grant },
  ): void {
    const { rid } = queued;
    const attempt = queued.attempt + 1;
    const startedAt = clock.now();
    const firstTriedAt = queued.firstTriedAt ?? startedAt;
    const job: QueuedJob = { ...queued, state: 'running', attempt, firstTriedAt };
    started.set(rid, { rid, attempt, startedAt });
    deps.jobLog?.started(job);
    deps.onStart?.(startedAt.getTime() - dueAt.getTime());
    const end = (outcome: JobOutcome, kept: KeptPage): void => {
      const start = started.get(rid);
      started.delete(rid);
      ended.add({ outcome: start ? { ...outcome, startedAt: start.startedAt } : outcome, ...kept });
    };
    crawls.start(rid, async (signal) => {
      try {
        const { outcome, held, plain } = await deps.crawlJob(job, by, signal);
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
        if (!signal.aborted) logger.error({ err: error, rid }, 'crawl failed unexpectedly');
        if (error instanceof WorkAborted && error.end === 'dropped') started.delete(rid);
        else end({ kind: 'release', rid, crawlerId, attempt }, NOTHING_KEPT);
      } finally {
        slot.release();
      }
    });
  }

  const hasRoom = (by: Crawler): boolean => crawls.size < deps.limit(by);

  const baseBytes = ({ body }: DueJob): number => crawlBytes + (body?.byteLength ?? 0);

  /** Starts jobs that were read ahead while there is room for their crawls. */
  function fill(): void {
    if (crawler === undefined || closed || !deps.mayStart()) return;
    const claimant = { accountId: crawler.accountId, crawlerId };
    while (hasRoom(crawler)) {
      const job = ahead.first(clock.now());
      if (job === undefined) return;
      const slot = waitingSlot.take() ?? slots.tryAcquire(claimant, 1);
      if (slot === undefined) return waitingSlot.wait(claimant, 1);
      const base = memory.tryAcquire(claimant, baseBytes(job));
      if (base === undefined) {
        slot.release();
        return waitingMemory.wait(claimant, baseBytes(job));
      }
      ahead.remove(job.rid);
      startCrawl(job, crawler, { slot, base });
    }
  }

  /** Makes the next turn write the start again, alone or with the crawl's end. */
  function takeBackStart(start: StartedJob): void {
    if (crawls.has(start.rid)) started.set(start.rid, start);
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
    const except = [...ended.begun(), ...started.keys()];
    const look = ahead.beginLook(current, deps.limit(current), except);
    if (look === undefined) {
      const { accountId } = current;
      waitingMemory.wait({ accountId, crawlerId }, crawlBytes);
    }
    return look;
  }

  return {
    get inFlight() {
      return crawls.size;
    },
    get unwritten() {
      return ended.size + started.size;
    },
    get nextWriteBytes() {
      return ended.nextBytes;
    },
    get buffered() {
      return ahead.size;
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
    get nextDueAt() {
      return ahead.nextDueAt;
    },
    keepTo: ahead.keepTo,
    fill,
    expectJobs: ahead.expect,
    forget: ahead.clear,
    begin(current, looks) {
      crawler = current;
      const taken = ended.take();
      const starts = [...started.values()];
      started.clear();
      const kept = new Map<string, KeptPage>(taken.map((each) => [each.outcome.rid, each]));
      if (!looks) ahead.rest(new Date(clock.now().getTime() + LOOK_AGAIN_MS));
      const look = looks ? beginLook(current) : undefined;
      return {
        ended: taken.map(({ outcome }) => outcome),
        started: starts,
        look,
        end(receipt) {
          for (const rid of receipt.lost) crawls.abort(rid, new WorkAborted('dropped'));
          // What was read ahead is outdated if the queue was purged or the crawler paused.
          if (receipt.lost.length > 0) ahead.expect();
          if (receipt.lost.length > 0 || receipt.paused) ahead.drop();
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
      crawls.abort(rid, new WorkAborted('dropped'));
    },
    abortAll: crawls.abortAll,
    close() {
      closed = true;
      waitingSlot.cancel();
      waitingMemory.cancel();
      ahead.clear();
      crawls.abortAll(new WorkAborted('dropped'));
      ended.clear();
    },
  };
}
