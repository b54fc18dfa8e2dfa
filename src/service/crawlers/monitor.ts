import { createWakeableSleep } from '../../dispatcher/wakeable-sleep.ts';
import type { Crawler } from '../../domain/crawler.ts';
import type { Task } from '../../scheduler/scheduler.ts';
import { createProbe, type ProbeDeps, type ProbeGroup } from './probe.ts';

/** The collaborators of monitoring. */
export interface MonitorDeps extends ProbeDeps {
  /** Time between two probes of one URL. */
  readonly intervalMs: number;
  /** Time between two searches for due probes while others are in flight. */
  readonly claimIntervalMs: number;
}

const BATCH = 200;
/** Most crawlers whose probe is in flight or waits for its slot; no more are claimed beyond it. */
const MAX_PENDING = 10_000;
/** A probe is signed for each of its crawlers, and all signatures have to fit in one header. */
const CRAWLERS_PER_PROBE = 50;
/** How often the task renews its lock. */
const TOUCH_MS = 1_000;

/**
 * Makes the `probe` task. It probes every callback URL that is due (see {@link createProbe}), once
 * for all crawlers that share it. Probes run concurrently, and the task claims further due probes
 * meanwhile, so that one that hangs delays no other. Returns how many crawlers were probed, once no
 * probe is in flight.
 */
export function createMonitor(
  deps: MonitorDeps,
): (task: Pick<Task, 'signal' | 'touch'>) => Promise<number> {
  const { store, clock, logger } = deps;
  const probe = createProbe(deps);

  return async ({ signal, touch }) => {
    const wakeable = createWakeableSleep();
    /** Identifiers of the crawlers whose probe has not ended. */
    const pending = new Set<string>();
    let probed = 0;

    function start(group: ProbeGroup): void {
      for (const { crawlerId } of group) pending.add(crawlerId);
      void probe(group, signal)
        .catch((error: unknown) => {
          if (!signal.aborted) logger.error({ err: error }, 'a probe broke off');
        })
        .finally(() => {
          for (const { crawlerId } of group) pending.delete(crawlerId);
          probed += group.length;
          wakeable.wake();
        });
    }

    /** Claims and starts due probes. Returns whether there may be more. */
    async function claimDue(): Promise<boolean> {
      if (pending.size >= MAX_PENDING) return false;
      const due = await store.crawlers.claimProbes(clock.now(), deps.intervalMs, BATCH);
      // A probe that hangs for a whole interval is due again before it has ended.
      for (const group of groupByUrl(due.filter(({ crawlerId }) => !pending.has(crawlerId)))) {
        start(group);
      }
      return due.length >= BATCH;
    }

    let claimedAt = Number.NEGATIVE_INFINITY;
    let touchedAt = performance.now();
    do {
      const now = performance.now();
      if (now - claimedAt >= deps.claimIntervalMs) {
        const hasMore = await claimDue();
        claimedAt = hasMore ? Number.NEGATIVE_INFINITY : now;
        if (hasMore) continue;
      }
      if (now - touchedAt >= TOUCH_MS) {
        touchedAt = now;
        await touch();
      }
      if (pending.size > 0) await wakeable.sleep(deps.claimIntervalMs);
    } while (!signal.aborted && pending.size > 0);
    return probed;
  };
}

/** Groups crawlers with the same callback URL. */
function groupByUrl(crawlers: readonly Crawler[]): ProbeGroup[] {
  const groups = new Map<string, [Crawler, ...Crawler[]]>();
  const full: [Crawler, ...Crawler[]][] = [];
  for (const crawler of crawlers) {
    const url = crawler.callbackUrl ?? '';
    const group = groups.get(url);
    if (group === undefined) groups.set(url, [crawler]);
    else if (group.push(crawler) >= CRAWLERS_PER_PROBE) {
      groups.delete(url);
      full.push(group);
    }
  }
  return [...full, ...groups.values()];
}
