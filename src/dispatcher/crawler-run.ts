import { setTimeout } from 'node:timers/promises';
import { isUnavailable } from '../domain/errors.ts';
import type { Task } from '../scheduler/scheduler.ts';
import type { HeldUntil, Lease } from '../store/store.ts';
import type { RunActivityNow } from './dispatcher-deps.ts';
import type { HostLanes } from './host-lanes.ts';
import type { RunKeeper } from './run-keeper.ts';
import { createRunLoop, type RunLoop, type RunLoopDeps, type WriteLate } from './run-loop.ts';
import { createRunStates, type OverReason, watchLease } from './run-state.ts';

/** What one run needs in addition to the dispatcher's own. */
export interface CrawlerRunDeps extends Omit<RunLoopDeps, 'signal' | 'lease' | 'states' | 'lanes'> {
  /** What this process knows of the crawler's hosts. Nothing of it is forgotten while the loop runs. */
  readonly lanes: () => HostLanes;
  readonly task: Pick<Task, 'signal' | 'touch'>;
  /** Takes a share of a crawler that another process leads. Absent for the lead itself. */
  readonly join?: (now: Date) => Promise<Lease | undefined>;
  readonly keeper: RunKeeper;
  /** Called once the run has its lease, before it starts anything. */
  readonly onLease?: () => void;
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
  /** Starts nothing from now on. The run drains once its signal is aborted. */
  leave(): void;
  /** Ends the run at once; its outcomes are dropped. */
  abort(): void;
  /** Whether other processes have parts of the crawler. */
  readonly isShared: boolean;
  activity(): RunActivityNow;
}

/** The longest time without a wake for a crawler whose endpoint takes nothing. */
const MAX_PAUSE_MS = 5_000;
/** How long a store that does not answer is offered late work again, and how often. */
const LATE_MS = 30_000;
const LATE_PAUSE_MS = 500;
const NO_ACTIVITY = { crawls: 0, deliveries: 0, buffered: 0, unwritten: 0 };

/**
 * Makes a run: it takes the crawler's lease, runs the loop of turns under it, and gives it back. Its
 * states are those of {@link createRunStates}.
 */
export function createCrawlerRun(deps: CrawlerRunDeps): CrawlerRun {
  const { store, clock, logger, crawlerId, task, timing, join } = deps;
  const states = createRunStates(clock);
  /** Undefined before the lease is taken. */
  let loop: RunLoop | undefined;
  /** Whether the crawler has changed before that. */
  let isOutdated = false;
  /** Until when late work is offered to a store that does not answer; undefined before the first. */
  let giveUpMs: number | undefined;
  /** See `HeldUntil.seenWork`. */
  let seenWork: number | undefined;
  /** Whether work was reported after the run was over. */
  let missed = false;

  function acquire(now: Date): Promise<Lease | undefined> {
    if (join !== undefined) return join(now);
    return store.queue.acquire(crawlerId, deps.processId, timing.leaseMs, now);
  }

  /** Makes the keeper renew the lease and report what comes from other processes. */
  function keep(lease: Lease, kept: RunLoop): () => void {
    return deps.keeper.keep({
      lease,
      seen: { work: lease.work ?? 0, settings: lease.settings ?? deps.crawler.updatedAt.getTime() },
      touch: task.touch,
      renewed: states.renewed,
      end(reason) {
        states.end(reason);
        kept.endWork();
      },
      work(seen) {
        seenWork = seen;
        kept.notify();
      },
      settings: kept.changed,
      sharing: kept.sharing,
    });
  }

  /** Runs the loop. Returns until when its work is held back. */
  async function runLoop(lease: Lease): Promise<HeldUntil> {
    const current = createRunLoop({
      ...deps,
      lanes: deps.lanes(),
      signal: task.signal,
      lease,
      states,
    });
    loop = current;
    if (isOutdated) current.changed();
    const leave = keep(lease, current);
    const watch = { clock, lookMs: timing.pollMs, onEnd: current.endWork };
    const unwatch = watchLease(states, watch);
    try {
      await current.run();
      return current.heldUntil();
    } catch (error) {
      states.end('failed');
      throw error;
    } finally {
      leave();
      unwatch();
      const writes = isOver('lease_lost');
      await current.close(writes ? (work) => writeLate(lease, work) : undefined);
    }
  }

  /**
   * Writes crawls and posts that had ended when the lease was lost, so that they are not repeated. The store
   * takes those that still are in the state and attempt that this run knows.
   */
  async function writeLate(lease: Lease, work: Parameters<WriteLate>[0]): Promise<boolean> {
    giveUpMs ??= clock.now().getTime() + LATE_MS;
    for (;;) {
      try {
        await store.queue.turn(lease, work, clock.now());
        return true;
      } catch (error) {
        if (!isUnavailable(error) || clock.now().getTime() >= giveUpMs) {
          logger.warn(
            { err: error, crawler: crawlerId },
            'ended crawls and posts were not written',
          );
          return false;
        }
      }
      await setTimeout(LATE_PAUSE_MS);
    }
  }

  /** Gives the lease back. Returns when the crawler has work again, undefined when it has none. */
  async function releaseLease(lease: Lease, { job, delivery }: HeldUntil) {
    const now = clock.now();
    const latestMs = now.getTime() + MAX_PAUSE_MS;
    const heldUntil = {
      job,
      delivery: delivery && new Date(Math.min(delivery.getTime(), latestMs)),
      seenWork,
    };
    return (await store.queue.release(lease, now, heldUntil)).wakeAt;
  }

  function isOver(...reasons: readonly OverReason[]): boolean {
    const { current } = states;
    return current.phase === 'over' && reasons.includes(current.reason);
  }

  return {
    async run() {
      try {
        const now = clock.now();
        const lease = await acquire(now);
        if (lease === undefined) {
          states.end('not_acquired');
          return undefined;
        }
        seenWork = lease.work;
        deps.onLease?.();
        states.acquired(lease, lease.until?.getTime() ?? now.getTime() + timing.leaseMs);
        const heldUntil = await runLoop(lease);
        if (!isOver('idle', 'drained')) return undefined;
        const wakeAt = await releaseLease(lease, heldUntil);
        // It may have been pushed before the lease was given back.
        return missed ? clock.now() : wakeAt;
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
      loop?.notify();
      const isTooLate = states.current.phase === 'over';
      missed ||= isTooLate;
      return !isTooLate;
    },
    refresh() {
      isOutdated = true;
      loop?.refresh();
    },
    abortJob: (rid) => loop?.abortJob(rid),
    leave: () => loop?.leave(),
    abort() {
      states.end('aborted');
      loop?.endWork();
    },
    get isShared() {
      return loop?.isShared ?? false;
    },
    activity: () => loop?.activity() ?? NO_ACTIVITY,
  };
}
