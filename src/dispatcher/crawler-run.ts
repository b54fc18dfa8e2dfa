import type { Crawler } from '../domain/crawler.ts';
import type { Task } from '../scheduler/scheduler.ts';
import type { Lease } from '../store/store.ts';
import { createCrawlLane } from './crawl-lane.ts';
import { createDeliveryLane } from './delivery-lane.ts';
import type { DeliveryPaces } from './delivery-paces.ts';
import type { DispatcherDeps } from './dispatcher.ts';
import { WorkAborted } from './in-flight.ts';
import { createJobLog } from './job-log.ts';
import { createPeriod, type Period } from './period.ts';
import { type ActiveState, createRunStates } from './run-state.ts';
import { createRunTurn } from './run-turn.ts';
import { createWakeableSleep } from './wakeable-sleep.ts';

/** What one run needs beside the dispatcher's own. */
export interface CrawlerRunDeps extends DispatcherDeps {
  readonly crawlerId: string;
  readonly task: Task;
  /** The crawler as it was when the run was made. */
  readonly crawler: Crawler;
  readonly paces: DeliveryPaces;
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
  /** Reports that the crawler's configuration has changed. */
  refresh(): void;
  /** Aborts one crawl; its outcome is dropped. */
  abortJob(rid: string): void;
  /** Ends the run at once; its outcomes are dropped. */
  abort(): void;
  /** Crawls and deliveries in flight. */
  activity(): { readonly crawls: number; readonly deliveries: number };
}

/** A crawler whose endpoint takes nothing for a while is woken at least this often. */
const LONGEST_PAUSE_MS = 5_000;

/**
 * Makes a run. It is one loop of turns: a turn writes everything that has ended since the last one
 * and claims for all free slots, in one batch; while the batch is written, further work ends and
 * waits for the next turn. Its states are those of {@link createRunStates}.
 */
export function createCrawlerRun(deps: CrawlerRunDeps): CrawlerRun {
  const { store, clock, logger, shared, crawlerId, task, timing, paces } = deps;
  const { memory, crawlSlots: slots } = shared;
  const { crawlJob, crawlBytes, postDelivery, mayCrawl } = deps;
  const pause = createWakeableSleep();
  const onChange = pause.wake;
  const states = createRunStates(clock);
  const lane = { crawlerId, memory, logger, onChange };
  const crawls = createCrawlLane({ ...lane, slots, crawlJob, crawlBytes });
  const deliveries = createDeliveryLane({ ...lane, paces, postDelivery });
  const jobLog = createJobLog(logger, crawlerId);
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

  const nowMs = (): number => clock.now().getTime();

  async function renewLease(lease: Lease): Promise<void> {
    const now = clock.now();
    const [renewed] = await Promise.all([
      store.queue.renew(lease, timing.leaseMs, now),
      task.touch(),
    ]);
    if (renewed) states.renewed(now.getTime() + timing.leaseMs);
    else states.end('lease_lost');
  }

  async function refreshCrawler(): Promise<void> {
    const current = await store.crawlers.get(crawlerId);
    if (current === undefined) states.end('crawler_gone');
    else crawler = current;
  }

  /** Renews the lease and reads the configuration, each when it is time. */
  async function renewAndRefresh(
    { lease }: ActiveState,
    due: { readonly renewal: Period; readonly refresh: Period },
  ): Promise<void> {
    const now = nowMs();
    const renews = due.renewal.isOver(now);
    const refreshes = configChanged || due.refresh.isOver(now);
    if (!renews && !refreshes) return;
    if (renews) due.renewal.restart(now);
    if (refreshes) due.refresh.restart(now);
    if (refreshes) configChanged = false;
    await Promise.all([
      refreshes ? refreshCrawler() : undefined,
      renews ? renewLease(lease) : undefined,
    ]);
  }

  /** Moves to `draining` when the task has ended. Returns whether the run drains. */
  function drain(now: number): boolean {
    if (task.signal.aborted) states.drain(now + timing.drainMs);
    const { current } = states;
    if (current.phase !== 'draining') return false;
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

  function isBusy(): boolean {
    return (
      crawls.inFlight > 0 ||
      deliveries.inFlight > 0 ||
      crawls.unwritten > 0 ||
      deliveries.unsettled > 0
    );
  }

  /** Takes turns until the run is over. */
  async function dispatch(): Promise<void> {
    const startMs = nowMs();
    const due = {
      renewal: createPeriod(timing.leaseMs / 3, startMs),
      refresh: createPeriod(timing.refreshMs, startMs),
    };
    const poll = createPeriod(timing.pollMs, startMs);
    const idle = createPeriod(timing.idleReleaseMs, startMs);
    for (let active = states.active(); active !== undefined; active = states.active()) {
      await renewAndRefresh(active, due);
      active = states.active();
      if (active === undefined) return;
      const now = nowMs();
      const draining = drain(now);
      const polls = notified || poll.isOver(now);
      notified = false;
      if (polls) {
        poll.restart(now);
        deliveries.expectBacklog();
      }
      // Ended work frees slots, so one turn writes it and claims for them.
      if (polls || crawls.unwritten > 0 || deliveries.unsettled > 0 || deliveries.hasRoom) {
        await takeTurn(active.lease, crawler, !draining);
      }
      if (isBusy() || (!draining && waitsForRoom())) {
        idle.restart(nowMs());
      } else if (draining || (!notified && idle.isOver(nowMs()))) {
        // In the same step as the last look at `notified`, so that a later `notify` returns false.
        states.end(states.hasLease() ? (draining ? 'drained' : 'idle') : 'lease_lost');
        return;
      }
      await pause.sleep(crawls.unwritten > 0 ? 0 : timing.pollMs);
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
    try {
      await dispatch();
    } finally {
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
        const lease = await store.queue.acquire(crawlerId, deps.processId, timing.leaseMs, now);
        if (lease === undefined) {
          states.end('not_acquired');
          return undefined;
        }
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
      configChanged = true;
      notified = true;
      pause.wake();
    },
    abortJob: crawls.abort,
    abort() {
      states.end('aborted');
      pause.wake();
    },
    activity: () => ({ crawls: crawls.inFlight, deliveries: deliveries.inFlight }),
  };
}
