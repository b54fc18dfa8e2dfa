import { createWakeableSleep } from '../../dispatcher/wakeable-sleep.ts';
import type { Crawler } from '../../domain/crawler.ts';
import type { Task } from '../../scheduler/scheduler.ts';
import type { PostponedProbe } from '../../store/store.ts';
import { createProbes, type ProbeDeps, type ProbeGroup } from './probe.ts';

/** The collaborators of monitoring. */
export interface MonitorDeps extends ProbeDeps {
  /** Time between two probes of one URL. */
  readonly intervalMs: number;
  /** Time between two searches for due probes while others are in flight. */
  readonly claimIntervalMs: number;
  /** Called with the number of crawlers whose probe is made later, for the metrics. */
  readonly onPostponed: (crawlers: number) => void;
}

const BATCH = 200;
/** Most crawlers whose probe is in flight or waits for its slot; no more are claimed beyond it. */
const MAX_PENDING = 10_000;
/** A probe is signed for each of its crawlers, and all signatures have to fit in one header. */
const CRAWLERS_PER_PROBE = 50;
/** At most one log line about late probes in this time. */
const WARN_MS = 60_000;
/** How often the task renews its lock. */
const TOUCH_MS = 1_000;

/**
 * Makes the `probe` task. It probes every callback URL that is due (see {@link createProbes}), once
 * for all crawlers that share it. Probes run concurrently, and the task claims further due probes
 * during that time, so that one that hangs delays no other. Returns how many crawlers were probed, once no
 * probe is in flight.
 */
export function createMonitor(
  deps: MonitorDeps,
): (task: Pick<Task, 'signal' | 'touch'>) => Promise<number> {
  const { store, clock, logger } = deps;
  const probes = createProbes(deps);
  let warnedAt = Number.NEGATIVE_INFINITY;

  function warnOfLate(count: number): void {
    if (performance.now() - warnedAt < WARN_MS) return;
    warnedAt = performance.now();
    logger.warn({ crawlers: count }, 'callback URLs are probed late: an account has too many');
  }

  return async ({ signal, touch }) => {
    const wakeable = createWakeableSleep();
    /** Identifiers of the crawlers whose probe has not ended. */
    const pending = new Set<string>();
    let probed = 0;

    function start(group: ProbeGroup): void {
      for (const { crawlerId } of group) pending.add(crawlerId);
      void probes
        .probe(group, signal)
        .catch((error: unknown) => {
          if (!signal.aborted) logger.error({ err: error }, 'probe failed unexpectedly');
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
      const groups = groupByUrl(due.filter(({ crawlerId }) => !pending.has(crawlerId)));
      const postponed: PostponedProbe[] = [];
      const sent: string[] = [];
      for (const group of groups) {
        const waitMs = await probes.waitMs(group);
        const ids = group.map(({ crawlerId }) => crawlerId);
        if (waitMs === 0) {
          start(group);
          sent.push(...ids);
        } else {
          const dueAt = new Date(clock.now().getTime() + waitMs);
          postponed.push(...ids.map((crawlerId) => ({ crawlerId, dueAt })));
        }
      }
      if (postponed.length > 0) {
        deps.onPostponed(postponed.length);
        warnOfLate(postponed.length);
        await store.crawlers.postponeProbes(postponed);
      }
      if (sent.length > 0) await store.crawlers.noteProbes(sent, clock.now());
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
