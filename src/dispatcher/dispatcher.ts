import type { Crawler } from '../domain/crawler.ts';
import { DomainError } from '../domain/errors.ts';
import type { HostState } from '../domain/host-state.ts';
import type { Grant } from '../fairness/fair-pool.ts';
import type { Task } from '../scheduler/scheduler.ts';
import { type CrawlerRun, createCrawlerRun } from './crawler-run.ts';
import { createDeliveryPaces } from './delivery-paces.ts';
import type { DispatcherActivity, DispatcherDeps } from './dispatcher-deps.ts';
import { type Helping, startHelping } from './helping.ts';
import { createHostMemory } from './host-memory.ts';
import { createOutageWarning } from './outage-warning.ts';
import { createRunKeeper } from './run-keeper.ts';

/**
 * Runs crawlers: claims their jobs up to their concurrency, crawls them, delivers their results.
 */
export interface Dispatcher {
  /**
   * Handles the `crawl` task: dispatches the crawler until it has nothing due, or until another
   * process has its lease.
   */
  run(task: Task): Promise<void>;
  /**
   * Begins to take shares of crawlers that other processes lead, if the database is shared. The
   * returned function ends that, and resolves when the crawls under way have ended.
   */
  help(): () => Promise<void>;
  /** Whether a run of this process leads the crawler, or is about to. */
  isRunning(crawlerId: string): boolean;
  /** Notifies the crawler's run in this process, if there is one, of new work. */
  notify(crawlerId: string): void;
  /**
   * Notifies the crawler's run in this process, if there is one, of a changed configuration or
   * queue: nothing starts that was read before.
   */
  refresh(crawlerId: string): void;
  /** Aborts one crawl in this process; its result is dropped. */
  abortJob(crawlerId: string, rid: string): void;
  /** Aborts all work in this process for a crawler that was removed; results are dropped. */
  abortCrawler(crawlerId: string): void;
  activity(): DispatcherActivity;
  /** What this process knows of the hosts of a crawler; undefined if it has forgotten them. */
  hostStates(crawlerId: string): HostState[] | undefined;
  /** Hosts that are not reached, and hosts that asked for fewer requests, as this process knows. */
  troubledHosts(): { readonly away: number; readonly slow: number };
  /** Saves what it knows of hosts; called when nothing runs any more. */
  close(): Promise<void>;
}

/** Retry delay for a crawler whose account has no free run slot. */
const CROWDED_RETRY_MS = 5_000;

/** Makes the dispatcher. It starts nothing by itself: the scheduler calls `run`. */
export function createDispatcher(deps: DispatcherDeps): Dispatcher {
  /** The runs that this process leads; `run` is undefined while the crawler waits for a run slot. */
  const runs = new Map<string, { run?: CrawlerRun; readonly done: Promise<void> }>();
  const startedMs = deps.clock.now().getTime();
  const paces = createDeliveryPaces(deps);
  const keeper = createRunKeeper(deps);
  const warnOfOutage = createOutageWarning(deps.logger);
  const hosts = createHostMemory({
    ...deps,
    hosts: deps.store.hosts,
    isShared: (crawlerId) => runsOf(crawlerId).some((run) => run.isShared),
  });
  let helping: Helping | undefined;

  /** The runs of the crawler in this process: as its lead, as a helper, or both for a moment. */
  function runsOf(crawlerId: string): CrawlerRun[] {
    const all = [runs.get(crawlerId)?.run, helping?.runs.get(crawlerId)];
    return all.filter((each) => each !== undefined);
  }

  function runDeps(crawler: Crawler, task: Pick<Task, 'signal' | 'touch'>) {
    const { crawlerId } = crawler;
    const lanes = () => hosts.lanesOf(crawlerId);
    return { ...deps, crawlerId, task, paces, keeper, warnOfOutage, crawler, lanes, startedMs };
  }

  function help(): () => Promise<void> {
    const { shares } = deps.store;
    if (shares === undefined) return () => Promise.resolve();
    helping = startHelping({
      ...deps,
      shares,
      leaseMs: deps.timing.leaseMs,
      runSlots: deps.shared.runSlots,
      isLeading: (crawlerId) => runs.has(crawlerId),
      createRun(crawler, signal, join) {
        const task = { signal, touch: () => Promise.resolve() };
        return createCrawlerRun({ ...runDeps(crawler, task), join });
      },
    });
    return helping.close;
  }

  async function run(task: Task): Promise<void> {
    const crawlerId = task.key;
    for (let current = runs.get(crawlerId); current !== undefined; current = runs.get(crawlerId)) {
      // One that has not begun finds all work that there is now.
      if (current.run === undefined || current.run.notify()) return;
      await current.done;
    }
    const done = Promise.withResolvers<void>();
    const entry: { run?: CrawlerRun; readonly done: Promise<void> } = { done: done.promise };
    runs.set(crawlerId, entry);
    let wakeAt: Date | undefined;
    try {
      wakeAt = await lead(crawlerId, task, (crawlerRun) => {
        entry.run = crawlerRun;
      });
    } finally {
      runs.delete(crawlerId);
      done.resolve();
    }
    if (wakeAt === undefined) return;
    await deps.scheduler.wake('crawl', crawlerId, wakeAt);
  }

  /** Leads the crawler until it has nothing due. Returns when it has work again. */
  async function lead(
    crawlerId: string,
    task: Task,
    onBegin: (run: CrawlerRun) => void,
  ): Promise<Date | undefined> {
    const known = deps.knownCrawler?.(crawlerId);
    const crawler = known ?? (await deps.store.crawlers.get(crawlerId));
    if (crawler === undefined) return undefined;
    const slot = await acquireRunSlot(crawler, task);
    if (slot === undefined) return undefined;
    const onLease = () => helping?.leave(crawlerId);
    const crawlerRun = createCrawlerRun({ ...runDeps(crawler, task), onLease });
    onBegin(crawlerRun);
    try {
      return await crawlerRun.run();
    } finally {
      slot.release();
    }
  }

  /**
   * Waits until the account has a run slot. Returns undefined if none came; the crawler is then
   * woken again later.
   */
  async function acquireRunSlot(crawler: Crawler, task: Task): Promise<Grant | undefined> {
    const { accountId, crawlerId } = crawler;
    const claimant = { accountId, crawlerId };
    const slot = deps.shared.runSlots.tryAcquire(claimant, 1);
    if (slot !== undefined) return slot;
    const timer = setInterval(() => void task.touch(), deps.timing.renewMs);
    try {
      return await deps.shared.runSlots.acquire(claimant, 1, task.signal);
    } catch (error) {
      if (!task.signal.aborted && !(error instanceof DomainError)) throw error;
      await deps.scheduler.wake(
        'crawl',
        crawlerId,
        new Date(deps.clock.now().getTime() + CROWDED_RETRY_MS),
      );
      return undefined;
    } finally {
      clearInterval(timer);
    }
  }

  return {
    run,
    help,
    isRunning: (crawlerId) => runs.has(crawlerId),
    notify(crawlerId) {
      for (const each of runsOf(crawlerId)) each.notify();
    },
    refresh(crawlerId) {
      for (const each of runsOf(crawlerId)) each.refresh();
    },
    abortJob(crawlerId, rid) {
      for (const each of runsOf(crawlerId)) each.abortJob(rid);
    },
    abortCrawler(crawlerId) {
      for (const each of runsOf(crawlerId)) each.abort();
    },
    activity() {
      const leading = [...runs.values()].flatMap((each) => each.run ?? []);
      const all = [...leading, ...(helping?.runs.values() ?? [])];
      return {
        crawlers: all.length,
        crawls: sumOf(all, 'crawls'),
        deliveries: sumOf(all, 'deliveries'),
        buffered: sumOf(all, 'buffered'),
        unwritten: sumOf(all, 'unwritten'),
      };
    },
    hostStates: hosts.states,
    troubledHosts: hosts.troubled,
    close: hosts.close,
  };
}

function sumOf(all: readonly CrawlerRun[], kind: keyof ReturnType<CrawlerRun['activity']>): number {
  return all.reduce((sum, each) => sum + each.activity()[kind], 0);
}
