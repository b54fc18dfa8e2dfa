import type { Crawler } from '../domain/crawler.ts';
import { defined } from '../domain/defined.ts';
import { isUnavailable } from '../domain/errors.ts';
import type { Task } from '../scheduler/scheduler.ts';
import type { Lease } from '../store/store.ts';
import { createCrawlLane } from './crawl-lane.ts';
import { createDeliveryLane } from './delivery-lane.ts';
import type { DeliveryPaces } from './delivery-paces.ts';
import type { DispatcherActivity, DispatcherDeps } from './dispatcher.ts';
import { WorkAborted } from './in-flight.ts';
import { createJobLog } from './job-log.ts';
import { createPeriod } from './period.ts';
import type { RunKeeper } from './run-keeper.ts';
import { createHelperShare, createLeadShare, type RunShare } from './run-share.ts';
import { createRunStates, watchLease } from './run-state.ts';
import { createRunTurn } from './run-turn.ts';
import { createWakeableSleep } from './wakeable-sleep.ts';

/** What one run needs beside the dispatcher's own. */
export interface CrawlerRunDeps extends DispatcherDeps {
  readonly crawlerId: string;
  readonly task: Pick<Task, 'signal' | 'touch'>;
  /** Takes a share of a crawler that another process leads. Absent for the lead itself. */
  readonly join?: (now: Date) => Promise<Lease | undefined>;
  /** The crawler as it was when the run was made. */
  readonly crawler: Crawler;
  readonly paces: DeliveryPaces;
  readonly keeper: RunKeeper;
}

/** The dispatching of one crawler by one process, for as long as it has work. */
export interface CrawlerRun {
  /**
   * Resolves when the run is over: with the moment at which the crawler has work again, when the
   * run gave its lease back and there is such a moment. Rejects when the store does.
   */
  run(): Promise<Date | undefined>;
  /** Reports new work. Returns false when the run is over and will not claim it. */
  notify(): boolean;
  /** Reports that the crawler's configuration or queue has changed. */
  refresh(): void;
  /** Aborts one crawl; its outcome is dropped. */
  abortJob(rid: string): void;
  /** Ends the run at once; its outcomes are dropped. */
  abort(): void;
  activity(): Omit<DispatcherActivity, 'crawlers'>;
}

/** So many starts and ends, or pages that fill so much of one write, are written without waiting for more. */
const MANY = 256;
const MANY_OF_WRITE = 3 / 4;
/** The longest pause after a turn that wrote much. */
const MAX_GATHERING_MS = 20;
/** Before a turn that failed is taken again. */
const REPEAT_MS = 500;
/** How long a helper keeps a share without work, or waits for one. */
const HELPER_IDLE_MS = 3_000;
/** A crawler whose endpoint takes nothing for a while is woken at least this often. */
const LONGEST_PAUSE_MS = 5_000;

/**
 * Makes a run. It is one loop of turns: a turn writes everything that has started and ended since
 * the last one, and reads ahead for the slots that will become free, in one batch. Meanwhile
 * further work ends, and slots start what was read ahead; the next turn writes that. Its states are
 * those of {@link createRunStates}.
 */
export function createCrawlerRun(deps: CrawlerRunDeps): CrawlerRun {
  const { store, clock, logger, shared, crawlerId, task, timing, paces, keeper } = deps;
  const { memory, pageSlots, crawlSlots } = shared;
  const slots = deps.crawler.tokenType === 'javascript' ? pageSlots : crawlSlots;
  const { crawlJob, crawlBytes, postDelivery, mayCrawl } = deps;
  const pause = createWakeableSleep();
  const states = createRunStates(clock);
  const isHelper = deps.join !== undefined;
  let share: RunShare | undefined;
  const lane = { crawlerId, memory, logger, onChange: pause.wake, mayPost: states.hasLease };
  const jobLog = createJobLog(logger, crawlerId);
  const mayStart = (): boolean =>
    !isUnsure && states.current.phase === 'running' && states.hasLease();
  const crawls = createCrawlLane({
    ...lane,
    clock,
    slots,
    crawlJob,
    crawlBytes,
    writeBytes: store.traits.writeBytes,
    mayStart,
    limit: (current) => share?.limit(current) ?? 0,
    jobLog,
    ...defined({ onStart: deps.onStart }),
  });
  const deliveries = createDeliveryLane({ ...lane, paces, postDelivery, isHelper });
  const takeTurn = createRunTurn({
    store,
    clock,
    shared,
    mayCrawl,
    crawls,
    deliveries,
    states,
    jobLog,
  });
  let crawler = deps.crawler;
  /** Whether work was reported since the last poll. */
  let notified = true;
  let configChanged = false;
  let nextTurnMs = 0;
  /** Whether a turn has failed, so that it is unknown what it has written. */
  let isUnsure = false;

  const nowMs = (): number => clock.now().getTime();

  async function refreshCrawler(): Promise<void> {
    configChanged = false;
    try {
      const current = await store.crawlers.get(crawlerId);
      if (current === undefined) states.end('crawler_gone');
      else crawler = current;
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      configChanged = true;
    }
  }

  /**
   * Ends what is in flight at once, also while a turn waits for the database: another process may do
   * the work from now on. Its outcomes are dropped.
   */
  function endWork(): void {
    crawls.abortAll(new WorkAborted('dropped'));
    deliveries.abortAll(new WorkAborted('dropped'));
    pause.wake();
  }

  /** Has the keeper renew the lease and report what comes from other processes. */
  function keep(lease: Lease): () => void {
    return keeper.keep({
      lease,
      seen: { work: lease.work ?? 0, settings: lease.settings ?? deps.crawler.updatedAt.getTime() },
      touch: task.touch,
      renewed: states.renewed,
      lost() {
        states.end('lease_lost');
        endWork();
      },
      gone() {
        states.end('crawler_gone');
        endWork();
      },
      work() {
        notified = true;
        pause.wake();
      },
      settings() {
        configChanged = true;
        notified = true;
        pause.wake();
      },
      sharing(sharing) {
        share?.learn(sharing);
        if (sharing !== undefined) pause.wake();
      },
    });
  }

  /** Moves to `draining` when the task has ended. Returns whether the run drains. */
  function drain(now: number): boolean {
    if (task.signal.aborted) states.drain(now + timing.drainMs);
    const { current } = states;
    if (current.phase !== 'draining') return false;
    deliveries.giveBackLate();
    if (now >= current.drainUntilMs) {
      crawls.abortAll(new WorkAborted('released'));
      deliveries.abortAll(new WorkAborted('released'));
    }
    return true;
  }

  /**
   * Whether deliveries wait that will soon be posted. An endpoint that takes nothing for longer is
   * waited for without the lease.
   */
  function waitsForRoom(): boolean {
    const pausedMs = (deliveries.pausedUntil()?.getTime() ?? 0) - nowMs();
    return deliveries.isWaiting && pausedMs < timing.idleReleaseMs;
  }

  function msUntil(moment: Date | undefined): number {
    return moment === undefined ? timing.pollMs : Math.max(0, moment.getTime() - nowMs());
  }

  function isBusy(): boolean {
    return (
      crawls.inFlight > 0 ||
      crawls.unwritten > 0 ||
      deliveries.inFlight > 0 ||
      deliveries.buffered > 0 ||
      deliveries.unsettled > 0
    );
  }

  /**
   * Takes a turn. One that the database does not answer is taken again until the lease ends, so that
   * a short outage costs no crawl. What it wrote is unknown then: the run ends when nothing is in
   * flight any more, and the next one begins with what the store has.
   */
  async function tryTurn(lease: Lease, claims: boolean): Promise<void> {
    try {
      await takeTurn(lease, crawler, claims);
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      if (!isUnsure) logger.warn({ err: error, crawler: crawlerId }, 'the database is away');
      isUnsure = true;
      nextTurnMs = nowMs() + REPEAT_MS;
    }
  }

  /** Whether a turn has something to write, to claim or to look for. */
  function hasWork(): boolean {
    return (
      crawls.unwritten > 0 || crawls.wantsLook || deliveries.unsettled > 0 || deliveries.hasRoom
    );
  }

  /**
   * How long the turn after the one that is now due waits, so that it writes more: a millisecond for
   * each start and end that this one writes. A crawler with little to write hardly waits; a busy one
   * leaves the database free for others in between.
   */
  function gatheringMs(): number {
    const written = crawls.unwritten + deliveries.unsettled;
    return Math.max(timing.turnMs, Math.min(written, MAX_GATHERING_MS));
  }

  /**
   * Whether the next turn is due before its time: free slots need jobs, or much is unwritten.
   */
  function isUrgent(): boolean {
    if (crawls.isStarving || crawls.unwritten >= MANY) return true;
    return crawls.nextWriteBytes >= store.traits.writeBytes * MANY_OF_WRITE;
  }

  /**
   * Begins a change of the run's share. What the run gives up it keeps to from now on; its starts
   * that are not written yet are in the next turn, after which `writeShare` may follow.
   */
  function decideShare(current: RunShare): void {
    const { inFlight, isFull } = crawls;
    current.decide({ crawler, inFlight, isFull, nowMs: nowMs() });
    crawls.keepTo(current.digits);
    crawls.fill();
  }

  async function writeShare(current: RunShare, lease: Lease): Promise<void> {
    try {
      await current.write(lease, clock.now());
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      logger.debug({ err: error, crawler: crawlerId }, 'a share was not written');
    }
  }

  /** Takes turns until the run is over. */
  async function dispatch(current: RunShare): Promise<void> {
    const startMs = nowMs();
    const idle = createPeriod(isHelper ? HELPER_IDLE_MS : timing.idleReleaseMs, startMs);
    nextTurnMs = startMs;
    /** Whether the next turn looks for what no one has notified the run of. */
    let polls = false;
    for (let active = states.active(); active !== undefined; active = states.active()) {
      if (configChanged) {
        await refreshCrawler();
        active = states.active();
        if (active === undefined) return;
      }
      const now = nowMs();
      const draining = drain(now);
      if (notified) polls = true;
      if (notified || isOver(crawls.nextDueAt, now)) crawls.expectJobs();
      if (notified || isOver(deliveries.nextDueAt, now)) deliveries.expectBacklog();
      notified = false;
      decideShare(current);
      const hadStarts = crawls.unwrittenStarts > 0;
      let tookTurn = false;
      const isUrgentNow = !isUnsure && (draining || isUrgent());
      const waitMs = isUrgentNow ? 0 : Math.max(0, nextTurnMs - now);
      if (waitMs === 0 && (polls || hasWork())) {
        polls = false;
        nextTurnMs = now + gatheringMs();
        await tryTurn(active.lease, !draining && !isUnsure);
        tookTurn = true;
      }
      if ((tookTurn || !hadStarts) && !draining && !isUnsure) {
        await writeShare(current, active.lease);
      }
      // What was read ahead does not start any more in a run that is about to end.
      const waits = crawls.buffered > 0 || waitsForRoom() || current.hasHelpers;
      const goesOn = !draining && !isUnsure && waits;
      if (isBusy() || goesOn) {
        idle.restart(nowMs());
      } else if (draining || isUnsure || (!notified && idle.isOver(nowMs()))) {
        // In the same step as the last look at `notified`, so that a later `notify` returns false.
        const reason = draining || isUnsure ? 'drained' : 'idle';
        states.end(states.hasLease() ? reason : 'lease_lost');
        return;
      }
      const restMs = isBusy() ? timing.pollMs : Math.min(timing.pollMs, timing.idleReleaseMs);
      const next = hasWork() ? Math.max(0, nextTurnMs - nowMs()) : restMs;
      const due = [crawls.nextDueAt, deliveries.nextDueAt, states.endsAt].map(msUntil);
      await pause.sleep(Math.min(next, ...due));
    }
  }

  /** Gives the lease back. Returns when the crawler has work again, undefined when it has none. */
  async function releaseLease(lease: Lease, pausedUntil: Date | undefined) {
    const now = clock.now();
    const { wakeAt } = await store.queue.release(lease, now);
    if (wakeAt === undefined || pausedUntil === undefined) return wakeAt;
    // No later than this, because crawls may be due before the deliveries.
    const latest = now.getTime() + LONGEST_PAUSE_MS;
    return new Date(Math.max(wakeAt.getTime(), Math.min(pausedUntil.getTime(), latest)));
  }

  async function dispatchUnder(lease: Lease): Promise<Date | undefined> {
    let pausedUntil: Date | undefined;
    const parts = { shares: store.shares, roomFor: deps.roomFor };
    share = isHelper ? createHelperShare(parts, lease) : createLeadShare(parts);
    share.learn(lease.sharing);
    const leave = keep(lease);
    const unwatch = watchLease(states, { clock, lookMs: timing.pollMs, onEnd: endWork });
    try {
      await dispatch(share);
    } finally {
      leave();
      unwatch();
      pausedUntil = deliveries.pausedUntil();
      crawls.close();
      deliveries.abortAll(new WorkAborted('dropped'));
      deliveries.close();
    }
    const { current } = states;
    const givesBack =
      current.phase === 'over' && (current.reason === 'idle' || current.reason === 'drained');
    return givesBack ? releaseLease(lease, pausedUntil) : undefined;
  }

  return {
    async run() {
      try {
        const now = clock.now();
        const lease = isHelper
          ? await deps.join?.(now)
          : await store.queue.acquire(crawlerId, deps.processId, timing.leaseMs, now);
        if (lease === undefined) {
          states.end('not_acquired');
          return undefined;
        }
        const known = crawler.updatedAt.getTime();
        configChanged ||= (lease.settings ?? known) !== known;
        states.acquired(lease, lease.until?.getTime() ?? now.getTime() + timing.leaseMs);
        return await dispatchUnder(lease);
      } catch (error) {
        states.end('failed');
        throw error;
      } finally {
        const { current } = states;
        const reason = current.phase === 'over' ? current.reason : current.phase;
        logger.debug({ crawler: crawlerId }, `run over: ${reason}`);
      }
    },
    notify() {
      notified = true;
      pause.wake();
      return states.current.phase !== 'over';
    },
    refresh() {
      crawls.forget();
      configChanged = true;
      notified = true;
      pause.wake();
    },
    abortJob: crawls.abort,
    abort() {
      states.end('aborted');
      endWork();
    },
    activity: () => ({
      crawls: crawls.inFlight,
      deliveries: deliveries.inFlight,
      buffered: crawls.buffered,
      unwritten: crawls.unwritten + deliveries.unsettled,
    }),
  };
}

function isOver(moment: Date | undefined, nowMs: number): boolean {
  return moment !== undefined && moment.getTime() <= nowMs;
}
