import { performance } from 'node:perf_hooks';
import type { Crawler } from '../domain/crawler.ts';
import { isUnavailable } from '../domain/errors.ts';
import type { FairPool, Grant } from '../fairness/fair-pool.ts';
import type { Lease, ShareStore, Store } from '../store/store.ts';
import type { CrawlerRun } from './crawler-run.ts';
import type { DispatcherDeps } from './dispatcher-deps.ts';

/** What a process needs to help others. */
export interface HelpingDeps
  extends Pick<
    DispatcherDeps,
    'scheduler' | 'clock' | 'logger' | 'processId' | 'roomFor' | 'hasRoomFor'
  > {
  readonly store: Pick<Store, 'crawlers'>;
  readonly shares: Pick<ShareStore, 'wanted' | 'join'>;
  readonly leaseMs: number;
  readonly runSlots: FairPool;
  readonly isLeading: (crawlerId: string) => boolean;
  /** Makes a run that takes its share with `join`. */
  readonly createRun: (
    crawler: Crawler,
    signal: AbortSignal,
    join: (now: Date) => Promise<Lease | undefined>,
  ) => CrawlerRun;
}

/** The help of this process for crawlers that others lead. */
export interface Helping {
  /** The runs by crawler. */
  readonly runs: ReadonlyMap<string, CrawlerRun>;
  /**
   * Gives the share of a crawler back, once its crawls under way have ended. It starts nothing from
   * now on: a run that leads the crawler has the same lanes of hosts.
   */
  leave(crawlerId: string): void;
  /** Stops looking for crawlers, and waits until what is in flight has ended. */
  close(): Promise<void>;
}

/** How often a process looks for crawlers that want help, or a lead in place of one that died. */
const LOOK_MS = 2_000;
/** How many crawlers a look finds, and how many of them the process joins. */
const MAX_FOUND = 50;
const MAX_JOINED = 4;
/** A process that dispatches more crawlers does not help. */
const MAX_RUNS = 100;
/** A process whose main thread is busy for a greater part of the time does not help. */
const MAX_UTILIZATION = 0.85;

/** Begins to look for crawlers that want help. */
export function startHelping(deps: HelpingDeps): Helping {
  const { store, shares, clock, logger, processId } = deps;
  const runs = new Map<string, CrawlerRun>();
  const leaving = new Map<string, AbortController>();
  const under = new Set<Promise<void>>();
  const closing = new AbortController();
  let utilization = performance.eventLoopUtilization();
  let looking: Promise<void> | undefined;

  function isBusy(): boolean {
    const now = performance.eventLoopUtilization();
    const { utilization: part } = performance.eventLoopUtilization(now, utilization);
    utilization = now;
    return part > MAX_UTILIZATION;
  }

  async function help(crawler: Crawler, slot: Grant): Promise<void> {
    const { crawlerId } = crawler;
    const room = deps.roomFor(crawler);
    const join = (now: Date) => shares.join(crawlerId, processId, room, deps.leaseMs, now);
    const leave = new AbortController();
    const run = deps.createRun(crawler, AbortSignal.any([closing.signal, leave.signal]), join);
    runs.set(crawlerId, run);
    leaving.set(crawlerId, leave);
    try {
      await run.run();
    } catch (error) {
      // What the run leaves is taken back when its share has lapsed.
      if (!isUnavailable(error)) logger.error({ err: error, crawler: crawlerId }, 'helping failed');
    } finally {
      runs.delete(crawlerId);
      leaving.delete(crawlerId);
      slot.release();
    }
  }

  async function look(): Promise<void> {
    const now = clock.now();
    const wanted = await shares.wanted(MAX_FOUND, processId, now);
    for (const id of wanted.grouped) deps.scheduler.runNow('crawl', id, 'own');
    await Promise.all(wanted.lead.map((id) => deps.scheduler.wake('crawl', id, now)));
    if (isBusy() || deps.runSlots.used > MAX_RUNS) return;
    const others = wanted.helper.filter((id) => !runs.has(id) && !deps.isLeading(id));
    let joined = 0;
    for (const crawlerId of others) {
      if (joined >= MAX_JOINED || closing.signal.aborted) return;
      const crawler = await store.crawlers.get(crawlerId);
      // It may have begun to lead in the meantime.
      if (crawler === undefined || deps.isLeading(crawlerId)) continue;
      if (!deps.hasRoomFor(crawler)) continue;
      const slot = deps.runSlots.tryAcquire({ accountId: crawler.accountId, crawlerId }, 1);
      if (slot === undefined) continue;
      joined += 1;
      const done = help(crawler, slot).finally(() => under.delete(done));
      under.add(done);
    }
  }

  const timer = setInterval(() => {
    looking ??= look()
      .catch((error: unknown) => {
        logger.debug({ err: error, at: clock.now() }, 'no crawlers that want help were found');
      })
      .finally(() => {
        looking = undefined;
      });
  }, LOOK_MS);
  return {
    runs,
    leave(crawlerId) {
      leaving.get(crawlerId)?.abort();
      runs.get(crawlerId)?.leave();
    },
    async close() {
      clearInterval(timer);
      closing.abort();
      await looking;
      await Promise.all(under);
    },
  };
}
