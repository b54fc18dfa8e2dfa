import type { Crawler } from '../domain/crawler.ts';
import { isUnavailable } from '../domain/errors.ts';
import { isShare } from '../store/share-store.ts';
import type { CrawlerChanges, HeldUntil, Lease, TurnWork } from '../store/store.ts';
import { createCrawlLane } from './crawl-lane.ts';
import { createDeliveryLane } from './delivery-lane.ts';
import type { DeliveryPaces } from './delivery-paces.ts';
import type { DispatcherDeps, RunActivityNow } from './dispatcher-deps.ts';
import { groupOf } from './host-lane.ts';
import type { HostLanes } from './host-lanes.ts';
import { WorkAborted } from './in-flight.ts';
import { createJobLog } from './job-log.ts';
import type { OutageWarning } from './outage-warning.ts';
import { createHelperShare, createLeadShare } from './run-share.ts';
import type { ActiveState, RunStates } from './run-state.ts';
import { gatheringMs, hasTurnWork, nextPhase, type RunBacklog, takesTurn } from './run-steps.ts';
import { createRunTurn } from './run-turn.ts';
import { createWakeableSleep } from './wakeable-sleep.ts';

/** What the loop of one run needs in addition to the dispatcher's own. */
export interface RunLoopDeps extends DispatcherDeps {
  readonly crawlerId: string;
  /** Aborted when the run should drain. */
  readonly signal: AbortSignal;
  readonly lease: Lease;
  /** The crawler as it was when the run was made. */
  readonly crawler: Crawler;
  readonly paces: DeliveryPaces;
  readonly warnOfOutage: OutageWarning;
  /** What this process knows of the crawler's hosts. */
  readonly lanes: HostLanes;
  /** When this process started; in milliseconds of the service time. */
  readonly startedMs: number;
  readonly states: RunStates;
}

/** The turns of one run under its lease. */
export interface RunLoop {
  /** Takes turns until the run is over. Rejects when the store does. */
  run(): Promise<void>;
  /** Reports new work. */
  notify(): void;
  /** Reports that the crawler's settings or pauses have changed. */
  changed(): void;
  /** Forgets what was read ahead, because the settings or the queue have changed. */
  refresh(): void;
  /** Reports how the crawler is shared now. */
  sharing(sharing: CrawlerChanges['sharing']): void;
  /** Aborts one crawl; its outcome is dropped. */
  abortJob(rid: string): void;
  /**
   * Ends what is in flight at once, also while a turn waits for the database: another process may do
   * the work from now on. Its outcomes are dropped.
   */
  endWork(): void;
  /** Starts nothing from now on. The run drains once its signal is aborted. */
  leave(): void;
  activity(): RunActivityNow;
  /** Whether other processes have parts of the crawler. */
  readonly isShared: boolean;
  /** Until when no crawl may start, and until when the endpoint takes nothing. */
  heldUntil(): HeldUntil;
  /**
   * Aborts and drops what is in flight, and gives all room back; see `CrawlLane.close`. What had ended goes to
   * `writeLate`, or is dropped.
   */
  close(writeLate?: WriteLate): Promise<void>;
}

/** Takes ends, to write them without the lease. Resolves with false if it cannot. */
export type WriteLate = (work: Pick<TurnWork, 'ended' | 'settled'>) => Promise<boolean>;

/** Delay before a failed turn is repeated. */
const REPEAT_TURN_MS = 500;
/** How long a crawler is left alone if its account may not crawl, or all its hosts are closed. */
const HELD_MS = 15_000;
/** The longest rest of a crawler whose hosts are all closed. A push, or a change of it, ends the rest. */
const LONGEST_REST_MS = 60_000;
/** How long a helper keeps a share without work, or waits for slots. */
const HELPER_IDLE_MS = 3_000;

/**
 * Makes the loop. A turn writes everything that has started and ended since the last one, and reads
 * ahead for the slots that will become free, in one batch. During the turn further work ends, and
 * slots start what was read before; the next turn writes that. `run-steps.ts` decides, the loop acts.
 */
export function createRunLoop(deps: RunLoopDeps): RunLoop {
  const { store, clock, logger, shared, crawlerId, timing, states } = deps;
  const isHelper = isShare(deps.lease);
  const pause = createWakeableSleep();
  const shareDeps = { shares: store.shares, roomFor: deps.roomFor };
  const share = isHelper ? createHelperShare(shareDeps, deps.lease) : createLeadShare(shareDeps);
  share.learn(deps.lease.sharing);
  const jobLog = createJobLog(logger, crawlerId);
  const parts = { ...deps, memory: shared.memory, onChange: pause.wake };
  const crawls = createCrawlLane({
    ...parts,
    slots: deps.crawler.tokenType === 'javascript' ? shared.pageSlots : shared.crawlSlots,
    writeBytes: store.traits.writeBytes,
    mayStart: () => !isUnsure && states.current.phase === 'running' && states.hasLease(),
    limit: share.limit,
    jobLog,
  });
  const deliveries = createDeliveryLane({ ...parts, isHelper, mayPost: states.hasLease });
  const takeTurn = createRunTurn({ ...deps, mayCrawl, crawls, deliveries, jobLog });
  const idleReleaseMs = isHelper ? HELPER_IDLE_MS : timing.idleReleaseMs;
  let releaseAtMs = nowMs() + idleReleaseMs;
  let crawler = deps.crawler;
  /** Whether work was reported since the last poll. */
  let notified = true;
  /** Whether the next turn looks for what nobody has notified the run of. */
  let polls = false;
  let isOutdated = (deps.lease.settings ?? knownSettings()) !== knownSettings();
  let nextTurnMs = nowMs();
  /** Whether a turn has failed, so that it is unknown what it has written. */
  let isUnsure = false;
  /** When it is asked again whether the account may crawl; undefined if it may. */
  let askAgainAt: Date | undefined;
  /** Whether the crawler has another pace group, of which another process may have the lead. */
  let isRegrouped = false;
  /** The pace group under which the lease was taken; undefined while the crawler may be an older one. */
  let led = isOutdated ? undefined : { group: groupOf(deps.crawler) };

  function nowMs(): number {
    return clock.now().getTime();
  }

  /** Tells the lanes of the crawler, and until when other processes may have crawled it. */
  function prepareLanes(): void {
    deps.lanes.keep(crawler);
    if (!isHelper) deps.lanes.led(deps.lease.formerUntil?.getTime() ?? latestFormerMs());
  }

  /** Until when, if the lease does not say. */
  function latestFormerMs(): number | undefined {
    if (store.shares !== undefined) return nowMs();
    // An earlier process has not crawled what nobody has, but maybe others of the pace group.
    const isNew = deps.lease.epoch === 1 && groupOf(crawler) === undefined;
    return isNew ? undefined : deps.startedMs;
  }

  function knownSettings(): number {
    return deps.crawler.updatedAt.getTime();
  }

  async function refreshCrawler(): Promise<void> {
    isOutdated = false;
    try {
      const current = await store.crawlers.get(crawlerId);
      if (current === undefined) return states.end('crawler_gone');
      const group = groupOf(current);
      if (current.updatedAt.getTime() === deps.lease.settings) led ??= { group };
      isRegrouped ||= led === undefined || led.group !== group;
      crawler = current;
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      isOutdated = true;
    }
  }

  async function mayCrawl(accountId: string): Promise<boolean> {
    const may = (await deps.mayCrawl?.(accountId)) ?? true;
    askAgainAt = may ? undefined : new Date(nowMs() + HELD_MS);
    return may;
  }

  /** Moves to `draining` when the task has ended. Returns whether the run drains. */
  function drain(): boolean {
    if (deps.signal.aborted || isRegrouped) states.drain(nowMs() + timing.drainMs);
    const { current } = states;
    if (current.phase !== 'draining') return false;
    deliveries.giveBackLate();
    if (nowMs() >= current.drainUntilMs) {
      crawls.abortAll(new WorkAborted('released'));
      deliveries.abortAll(new WorkAborted('released'));
    }
    return true;
  }

  /** Makes the next turn look for what has fallen due or was reported. */
  function expectDue(): void {
    const now = nowMs();
    if (notified) polls = true;
    if (notified || isOver(crawls.nextDueAt, now)) crawls.expectJobs();
    if (notified || isOver(deliveries.nextDueAt, now)) deliveries.expectBacklog();
    notified = false;
  }

  function backlog(): RunBacklog {
    return {
      unwritten: crawls.unwritten + deliveries.unsettled,
      unwrittenCrawls: crawls.unwritten,
      nextWriteBytes: crawls.nextWriteBytes,
      writeBytes: store.traits.writeBytes,
      isStarving: crawls.isStarving,
      hasRoom: crawls.wantsLook || deliveries.hasRoom,
    };
  }

  /**
   * Takes a turn. One that the database does not answer is repeated until the lease ends, so that a
   * short outage costs no crawl. What it wrote is unknown then: the run ends when nothing is in
   * flight any more, and the next one begins with what the store has.
   */
  async function tryTurn(lease: Lease, claims: boolean): Promise<void> {
    polls = false;
    nextTurnMs = nowMs() + gatheringMs(backlog(), timing.turnMs);
    try {
      await takeTurn(lease, crawler, claims);
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      if (!isUnsure) deps.warnOfOutage(error, crawlerId);
      isUnsure = true;
      nextTurnMs = nowMs() + REPEAT_TURN_MS;
    }
  }

  /**
   * Begins a change of the run's share. The run keeps at once to what it gives up. Its unwritten
   * starts are in the next turn, after which `writeShare` may follow.
   */
  function decideShare(): void {
    const { inFlight, isFull } = crawls;
    const busyDigits = () => deps.lanes.busyDigits(nowMs());
    share.decide({ crawler, inFlight, isFull, nowMs: nowMs(), busyDigits });
    crawls.keepTo(share.digits, share.lent);
    crawls.fill();
  }

  async function writeShare(lease: Lease): Promise<void> {
    try {
      await share.write(lease, clock.now());
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      logger.debug({ err: error, crawler: crawlerId }, 'a share was not written');
    }
  }

  /** One step of the loop, up to the decision how to continue. */
  async function step({ lease }: ActiveState): Promise<ReturnType<typeof nextPhase>> {
    const isDraining = drain();
    expectDue();
    decideShare();
    const hadStarts = crawls.unwrittenStarts > 0;
    const view = { ...backlog(), nowMs: nowMs(), nextTurnMs, isDraining, isUnsure, polls };
    const takes = takesTurn(view);
    if (takes) await tryTurn(lease, !isDraining && !isUnsure);
    if ((takes || !hadStarts) && !isDraining && !isUnsure) await writeShare(lease);
    return nextPhase({
      isDraining,
      isUnsure,
      hasLease: states.hasLease(),
      isBusy: isBusy(),
      isWaitedFor: crawls.buffered > 0 || waitsForRoom() || share.hasHelpers || share.expectsJobs,
      isNotified: notified,
      isIdleOver: nowMs() >= releaseAtMs,
    });
  }

  function isBusy(): boolean {
    const { inFlight, buffered, unsettled } = deliveries;
    return crawls.inFlight + crawls.unwritten + inFlight + buffered + unsettled > 0;
  }

  /**
   * Whether deliveries wait that will soon be posted. An endpoint that takes nothing for longer is
   * waited for without the lease.
   */
  function waitsForRoom(): boolean {
    const pausedMs = (deliveries.pausedUntil()?.getTime() ?? 0) - nowMs();
    return deliveries.isWaiting && pausedMs < timing.idleReleaseMs;
  }

  /**
   * When the next job may start if no due one may now. The time is bounded, because other processes may have
   * let others start.
   */
  function opensAt(): Date | undefined {
    const { opensMs, nextDueAt } = crawls;
    if (opensMs === undefined) return undefined;
    const dueMs = nextDueAt?.getTime() ?? Number.POSITIVE_INFINITY;
    return new Date(Math.min(opensMs, dueMs, nowMs() + LONGEST_REST_MS));
  }

  /** Until something is due; a wake ends it before, as at the end of the lease. */
  async function rest(): Promise<void> {
    const idleMs = isBusy() ? timing.pollMs : Math.min(timing.pollMs, timing.idleReleaseMs);
    const turnMs = polls || hasTurnWork(backlog()) ? Math.max(0, nextTurnMs - nowMs()) : idleMs;
    const due = [crawls.nextDueAt, deliveries.nextDueAt].map((moment) =>
      moment === undefined ? timing.pollMs : Math.max(0, moment.getTime() - nowMs()),
    );
    await pause.sleep(Math.min(turnMs, ...due));
  }

  function notify(): void {
    notified = true;
    pause.wake();
  }

  function changed(): void {
    isOutdated = true;
    notify();
  }

  return {
    async run() {
      if (isOutdated) await refreshCrawler();
      prepareLanes();
      for (;;) {
        if (states.active() !== undefined && isOutdated) await refreshCrawler();
        const active = states.active();
        if (active === undefined) return;
        const phase = await step(active);
        if (phase === 'active') releaseAtMs = nowMs() + idleReleaseMs;
        else if (phase !== 'waiting') {
          // In the same step as the last look at `notified`, so that a later `notify` is refused.
          states.end(phase);
          return;
        }
        await rest();
      }
    },
    notify,
    changed,
    refresh() {
      crawls.forget();
      changed();
    },
    sharing(sharing) {
      share.learn(sharing);
      if (sharing !== undefined) pause.wake();
    },
    abortJob: crawls.abort,
    endWork() {
      crawls.abortAll(new WorkAborted('dropped'));
      deliveries.abortAll(new WorkAborted('dropped'));
      pause.wake();
    },
    leave() {
      crawls.stop();
      pause.wake();
    },
    activity: () => ({
      crawls: crawls.inFlight,
      deliveries: deliveries.inFlight,
      buffered: crawls.buffered,
      unwritten: crawls.unwritten + deliveries.unsettled,
    }),
    get isShared() {
      return isHelper || share.hasHelpers;
    },
    heldUntil: () => ({ job: askAgainAt ?? opensAt(), delivery: deliveries.pausedUntil() }),
    async close(writeLate) {
      // The store takes back by itself what was not posted.
      const settled = deliveries.close().filter(({ kind }) => kind !== 'release');
      // Crawls are aborted at once, also while the store does not answer.
      await Promise.all([
        crawls.close(writeLate && ((ended) => writeLate({ ended }))),
        settled.length > 0 ? writeLate?.({ settled }) : undefined,
      ]);
    },
  };
}

function isOver(moment: Date | undefined, nowMs: number): boolean {
  return moment !== undefined && moment.getTime() <= nowMs;
}
