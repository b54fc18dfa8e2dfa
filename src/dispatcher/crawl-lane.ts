import type { Clock } from '../domain/clock.ts';
import type { Crawler } from '../domain/crawler.ts';
import { defined } from '../domain/defined.ts';
import type { DueJob, QueuedJob } from '../domain/job.ts';
import type { StoreTraits } from '../domain/store-traits.ts';
import type { FairPool } from '../fairness/fair-pool.ts';
import { createWaitingGrant } from '../fairness/waiting-grant.ts';
import type { JobOutcome, QueueLook, StartedJob, TurnReceipt } from '../store/store.ts';
import { type CrawlGrants, createCrawlRoom } from './crawl-room.ts';
import type { DispatcherDeps } from './dispatcher-deps.ts';
import type { HostLanes } from './host-lanes.ts';
import type { HostNews } from './host-news.ts';
import { WorkAborted } from './in-flight.ts';
import { createJobBoard, type KeptPage, pageBytes } from './job-board.ts';
import type { JobLog } from './job-log.ts';
import { createReadAhead } from './read-ahead.ts';

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
  /** The hosts of the crawler, as runs before have found them. */
  readonly lanes: HostLanes;
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
  /** See `ReadAhead.opensMs`. */
  readonly opensMs: number | undefined;
  /** When the next job falls due, as far as is known. */
  readonly nextDueAt: Date | undefined;
  /** The queue may have jobs that no look has found. */
  expectJobs(): void;
  /**
   * Starts only jobs with one of these digits from now on; undefined for all. Other processes have had
   * those in `lent`; absent for all.
   */
  keepTo(digits: string | undefined, lent?: ReadonlySet<string>): void;
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
  /** Starts and reads nothing from now on, and forgets what was read ahead. */
  stop(): void;
  /**
   * Aborts the crawls, and gives all room back. Resolves when they have ended, because until then the sites see them;
   * at the latest after {@link LONGEST_ABORT_MS}. What had ended goes to `writeLate`, in parts
   * that fit into one write, or is dropped.
   */
  close(writeLate?: (ended: readonly JobOutcome[]) => Promise<boolean>): Promise<void>;
}

/** Delay before a queue of which nothing may be crawled is looked at again. */
const LOOK_AGAIN_MS = 5_000;
/** Timers for a host are set again after this, because the service time may be corrected. */
const LONGEST_TIMER_MS = 10_000;
/** The longest wait for aborted crawls to end. A thread that does not answer is ended before that. */
const LONGEST_ABORT_MS = 15_000;
const NOTHING_KEPT: KeptPage = { held: [] };

/** Makes a lane in which nothing is in flight. */
export function createCrawlLane(deps: CrawlLaneDeps): CrawlLane {
  const { crawlerId, slots, memory, crawlBytes, logger, clock, lanes } = deps;
  const board = createJobBoard(deps.writeBytes, lanes);
  const ahead = createReadAhead({ crawlerId, memory, board, lanes, clock });
  const room = createCrawlRoom({ slots, memory, onRoom: refill });
  /** The next turn takes it. */
  const lookMemory = createWaitingGrant(memory, deps.onChange);
  const unwatch = lanes.watch(deps.onChange, () => {
    if (!waits()) fill();
  });
  let crawler: Crawler | undefined;
  let closed = false;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  const allEnded = Promise.withResolvers<void>();

  /** Whether it waits for a slot, or for memory, that others use now. */
  const waits = (): boolean => room.waits || lookMemory.waits;

  /** Starts the crawl of the first job ahead, in its slot and with its memory. */
  function startCrawl(due: DueJob, by: Crawler, grants: CrawlGrants): void {
    const { dueAt, ...queued } = due;
    const { rid } = queued;
    const attempt = queued.attempt + 1;
    const startedAt = clock.now();
    const firstTriedAt = queued.firstTriedAt ?? startedAt;
    const job: QueuedJob = { ...queued, state: 'running', attempt, firstTriedAt };
    const controller = new AbortController();
    board.start({ rid, attempt, startedAt }, controller);
    const isPaced = lanes.started(due, startedAt.getTime());
    ahead.started(due);
    deps.jobLog?.started(job);
    deps.onStart?.(startedAt.getTime() - dueAt.getTime());
    void crawl(job, by, controller.signal, grants, isPaced).finally(() => {
      grants.slot.release();
      if (closed && board.crawling === 0) allEnded.resolve();
      refill();
    });
  }

  /** Crawls a job, and ends or drops it on the board. */
  async function crawl(
    job: QueuedJob,
    by: Crawler,
    signal: AbortSignal,
    { base }: CrawlGrants,
    isPaced: boolean,
  ): Promise<void> {
    const { rid, attempt } = job;
    let news: HostNews = {};
    try {
      const hostAway = lanes.awayOf(job.host);
      const onSent = isPaced ? () => noteSent(rid) : undefined;
      const end = await deps.crawlJob(job, by, signal, defined({ hostAway, onSent }));
      const { outcome, held, plain } = end;
      news = end;
      base.shrink(pageBytes(outcome) + (plain?.byteLength ?? 0));
      const grants = held === undefined ? [base] : [base, held];
      if (!closed) return board.end(outcome, { held: grants, ...defined({ plain }) });
      for (const grant of grants) grant.release();
      board.drop(rid);
    } catch (error) {
      base.release();
      if (!signal.aborted) logger.error({ err: error, rid }, 'crawl failed unexpectedly');
      // It may have sent its request without having told so.
      else lanes.sent(rid, clock.now().getTime());
      if (error instanceof WorkAborted && error.end === 'dropped') board.drop(rid);
      else board.end({ kind: 'release', rid, crawlerId, attempt }, NOTHING_KEPT);
    } finally {
      noteAnswer(rid, news);
    }
  }

  /** Lets the next request to the host follow after its delay. */
  function noteSent(rid: string): void {
    lanes.sent(rid, clock.now().getTime());
    fill();
  }

  /** Takes in what a crawl has told about its host. */
  function noteAnswer(rid: string, news: HostNews): void {
    const nowMs = clock.now().getTime();
    const change = lanes.ended(rid, news, nowMs);
    if (change === undefined) return;
    const { host, trouble } = change;
    const about = { crawler: crawlerId, host };
    if (trouble === undefined) {
      ahead.expect();
      return logger.info(about, 'the host bears requests again');
    }
    const { reason, untilMs } = trouble;
    // All its other jobs may be in the queue, and none here.
    ahead.expectAt(new Date(untilMs));
    const waitMs = untilMs - nowMs;
    const text =
      trouble.kind === 'away'
        ? 'the host is put aside because it is not reached'
        : 'the host is asked less because it asks for that';
    logger.info({ ...about, reason, waitMs }, text);
  }

  const hasRoom = (by: Crawler): boolean => board.crawling < deps.limit(by);

  const baseBytes = ({ body }: DueJob): number => crawlBytes + (body?.byteLength ?? 0);

  /** Starts jobs that were read ahead while there is room for their crawls. */
  function fill(): void {
    if (crawler === undefined || stopped || !deps.mayStart()) return;
    const claimant = { accountId: crawler.accountId, crawlerId };
    while (hasRoom(crawler)) {
      const now = clock.now();
      const job = ahead.first(now);
      if (job === undefined) return fillLater();
      if (lanes.letOthersFirst(job, now.getTime())) continue;
      const grants = room.take(claimant, baseBytes(job));
      if (grants === undefined) {
        // No look comes before that crawl.
        lookMemory.cancel();
        return;
      }
      startCrawl(job, crawler, grants);
    }
  }

  /** Starts what there is room for now, and reports the change. */
  function refill(): void {
    fill();
    deps.onChange();
  }

  /** Starts jobs of the next host that has to wait for its time. */
  function fillLater(): void {
    const nowMs = clock.now().getTime();
    const at = lanes.nextAt(nowMs);
    clearTimeout(timer);
    if (at === undefined) return;
    timer = setTimeout(refill, Math.min(at - nowMs, LONGEST_TIMER_MS)).unref();
  }

  /** A job that goes back to the queue is due there again. */
  function expectBack(outcome: JobOutcome): void {
    if (outcome.kind !== 'retry' && outcome.kind !== 'release') return;
    ahead.expectAt(outcome.dueAt ?? clock.now());
  }

  /** Begins a look for a turn, or waits for memory for what it would find. */
  function beginLook(current: Crawler): QueueLook | undefined {
    const granted = lookMemory.take();
    if (waits() || !ahead.wantsMore) {
      granted?.release();
      return undefined;
    }
    const look = ahead.beginLook(current, deps.limit(current), granted);
    if (look === undefined) {
      const { accountId } = current;
      lookMemory.wait({ accountId, crawlerId }, crawlBytes);
    }
    return look;
  }

  async function crawlsEnded(): Promise<void> {
    if (board.crawling === 0) return;
    const late = setTimeout(() => {
      logger.warn({ crawler: crawlerId, crawls: board.crawling }, 'aborted crawls did not end');
      allEnded.resolve();
    }, LONGEST_ABORT_MS);
    await allEnded.promise;
    clearTimeout(late);
  }

  function stop(): void {
    stopped = true;
    clearTimeout(timer);
    room.cancel();
    lookMemory.cancel();
    ahead.clear();
  }

  return {
    get inFlight() {
      return board.crawling;
    },
    get unwritten() {
      return board.ended + board.unwrittenStarts;
    },
    get nextWriteBytes() {
      return board.nextWriteBytes;
    },
    get buffered() {
      return board.ahead;
    },
    get wantsLook() {
      return !waits() && ahead.wantsMore;
    },
    get isStarving() {
      return !waits() && ahead.ranDry && crawler !== undefined && hasRoom(crawler);
    },
    get isFull() {
      const hasDue = board.ahead > 0 || ahead.ranDry;
      return hasDue && crawler !== undefined && (waits() || !hasRoom(crawler));
    },
    get unwrittenStarts() {
      return board.unwrittenStarts;
    },
    get opensMs() {
      return ahead.opensMs;
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
      lanes.keep(current, deps.limit(current));
      const taken = board.take();
      const outcomes = taken.ended.map(({ outcome }) => outcome);
      const kept = new Map<string, KeptPage>(taken.ended.map((each) => [each.outcome.rid, each]));
      if (!looks) {
        room.cancel();
        lookMemory.cancel();
        ahead.rest(new Date(clock.now().getTime() + LOOK_AGAIN_MS));
      }
      const look = looks && !stopped ? beginLook(current) : undefined;
      return {
        ended: outcomes,
        started: taken.started,
        look,
        end(receipt) {
          board.written(taken);
          for (const rid of receipt.lost) board.abort(rid, new WorkAborted('dropped'));
          // What was read ahead is outdated if the queue was purged or the crawler paused.
          if (receipt.lost.length > 0) ahead.expect();
          if (receipt.lost.length > 0 || receipt.paused) ahead.drop();
          if (look !== undefined) ahead.endLook(receipt);
          else for (const outcome of outcomes) expectBack(outcome);
          fill();
        },
        fail() {
          kept.clear();
          board.failed(taken);
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
      board.forget(rid);
      ahead.expect();
      board.abort(rid, new WorkAborted('dropped'));
    },
    abortAll: board.abortAll,
    stop,
    async close(writeLate) {
      closed = true;
      unwatch();
      stop();
      board.abortAll(new WorkAborted('dropped'));
      await crawlsEnded();
      for (let mayWrite = writeLate !== undefined; mayWrite; ) {
        const { ended } = board.take();
        mayWrite =
          ended.length > 0 && (await writeLate?.(ended.map((each) => each.outcome))) === true;
        for (const { held } of ended) for (const grant of held) grant.release();
      }
      board.clear();
    },
  };
}
