import { isDeepStrictEqual } from 'node:util';
import type { HeldUp } from '../domain/attention.ts';
import { defined } from '../domain/defined.ts';
import type { HostState } from '../domain/host-state.ts';
import { createLruMap } from '../domain/lru-map.ts';
import type { FailureReason } from '../domain/status.ts';
import type { HostReport, HostStore, QueuedHost } from '../store/store.ts';
import type { DispatcherDeps } from './dispatcher-deps.ts';
import { createHostGates } from './host-gate.ts';
import { isWait } from './host-health.ts';
import { createHostLanes, type HostLanes } from './host-lanes.ts';

/**
 * What this process knows of the hosts of its crawlers. It outlives a run here, and is saved for the
 * other processes, for the next start and for lists.
 */
export interface HostMemory {
  /** The lanes of a crawler. What others have saved is added once it is read. */
  lanesOf(crawlerId: string): HostLanes;
  /** What is known here; undefined for a crawler that had no run here, or was forgotten. */
  states(crawlerId: string): HostState[] | undefined;
  /** Hosts in trouble, of all crawlers. */
  troubled(): { readonly away: number; readonly slow: number };
  /** Saves what was not saved. */
  close(): Promise<void>;
}

/** What the memory works with. */
export interface HostMemoryDeps extends Pick<DispatcherDeps, 'clock' | 'logger' | 'processId'> {
  readonly hosts: HostStore;
  /** Whether other processes work on the crawler, too. */
  readonly isShared: (crawlerId: string) => boolean;
}

/** The longest host of a queue, and when that was counted. */
interface Counted {
  readonly queued: QueuedHost | undefined;
  readonly countedMs: number;
}

interface KnownLanes {
  readonly crawlerId: string;
  readonly lanes: HostLanes;
}

/** Crawlers without a run whose hosts are remembered. Those of further ones are read from their report. */
const MAX_CRAWLERS = 100;
/** What their hosts may take together: 80 MB. See `HostLanes.weight`. */
const MAX_WEIGHT = 20_000;
/** Delay between a crawl and the next report, which is one write for all crawlers. */
const SAVE_MS = 5_000;
/** The next count of a queue by host waits for this multiple of the time that the last one took. */
const COUNT_PAUSE_FACTOR = 20;
/** Crawlers whose longest host is remembered until the next count. */
const MAX_COUNTED = 1_000;

/** Makes an empty memory. */
export function createHostMemory(deps: HostMemoryDeps): HostMemory {
  const { hosts, clock, logger, processId } = deps;
  const gates = createHostGates();
  /** When something was forgotten that still holds back crawls. */
  let forgottenMs = Number.NEGATIVE_INFINITY;
  const forgotten = new WeakSet<HostLanes>();
  const changed = new Set<string>();
  const memory = createLruMap<string, KnownLanes>({
    maxEntries: MAX_CRAWLERS,
    isPinned: isInUse,
    onEvict: forget,
  });
  /** The longest hosts of queues that were counted. */
  const longest = createLruMap<string, Counted>({ maxEntries: MAX_COUNTED });
  let nextCountMs = 0;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;
  let saving: Promise<void> | undefined;

  const nowMs = (): number => clock.now().getTime();

  /** Whether it has a run, or something that no report has. */
  function isInUse({ crawlerId, lanes }: KnownLanes): boolean {
    return !lanes.isIdle || lanes.isWatched || changed.has(crawlerId);
  }

  function forget({ lanes }: KnownLanes): void {
    // A report has the hosts that are put aside, but no delays.
    if (lanes.keepsDelays(nowMs())) forgottenMs = nowMs();
    forgotten.add(lanes);
    lanes.close();
  }

  /**
   * Forgets ordinary hosts of the crawlers that are not in use. If the others are too many, forgets the
   * crawlers with most of them, and of equal ones those that were used the longest ago.
   */
  function forgetUnused(): void {
    const unused = Array.from(memory.entries(), ([, known]) => known).filter(
      (known) => !isInUse(known),
    );
    for (const { lanes } of unused) lanes.forgetOrdinary(nowMs());
    const weighed = unused.map((known) => ({ known, weight: known.lanes.weight() }));
    let total = weighed.reduce((sum, { weight }) => sum + weight, 0);
    for (const { known, weight } of weighed.toSorted((one, other) => other.weight - one.weight)) {
      if (total <= MAX_WEIGHT) break;
      total -= weight;
      memory.delete(known.crawlerId);
      forget(known);
    }
  }

  /** Whether hosts may be forgotten later: a run ends, or a delay. */
  const hasMore = (): boolean =>
    [...memory.entries()].some(([, known]) => isInUse(known) || known.lanes.keepsDelays(nowMs()));

  /** Learns what others have saved, and with `own` what this process has saved and forgotten. */
  async function learn({ crawlerId, lanes }: KnownLanes, own = false): Promise<void> {
    try {
      const reports = await hosts.reports(crawlerId);
      const latest = new Map<string, HostState>();
      for (const report of reports) {
        if (!own && report.processId === processId) continue;
        for (const state of report.hosts) {
          const known = latest.get(state.host);
          // Each process finds out by itself whether there is a proxy: the crawler may have changed.
          const told = isWait(state.health) ? { ...state, health: undefined } : state;
          if (known === undefined || known.lastMs < state.lastMs) latest.set(state.host, told);
        }
      }
      if (!forgotten.has(lanes)) lanes.learn([...latest.values()], nowMs());
    } catch (error) {
      logger.debug({ err: error, crawler: crawlerId }, 'the reports on hosts were not read');
    }
  }

  /**
   * What keeps most of a queue waiting: a used-up budget, or proxies that fail for most hosts. Else it is
   * the host that is put aside and has the most jobs as of the last count.
   */
  function heldUpBy(crawlerId: string, states: readonly HostState[]): HeldUp | undefined {
    const overBudget = allOf(states, 'proxy_budget_used');
    if (overBudget !== undefined) return overBudget;
    const withoutProxy = allOf(states, 'proxy_unavailable');
    if ((withoutProxy?.hosts ?? 0) > states.length / 2) return withoutProxy;
    const { host, queued } = longest.get(crawlerId)?.queued ?? {};
    const health = states.find((each) => each.host === host)?.health;
    if (host === undefined || queued === undefined || health?.kind !== 'away') return undefined;
    const { reason, untilMs, awaySinceMs = untilMs, sinceMs = awaySinceMs } = health;
    return { host, reason, sinceMs, untilMs, queued };
  }

  /** The crawler with hosts put aside whose last count is the oldest. */
  function countedLongestAgo(): string | undefined {
    let found: { crawlerId: string; countedMs: number } | undefined;
    for (const [crawlerId, { lanes }] of memory.entries()) {
      if (lanes.troubled().away === 0) continue;
      const countedMs = longest.get(crawlerId)?.countedMs ?? Number.NEGATIVE_INFINITY;
      if (found === undefined || countedMs < found.countedMs) found = { crawlerId, countedMs };
    }
    return found?.crawlerId;
  }

  /** Counts the jobs of one crawler by host, and reports what is new. */
  async function countOne(): Promise<void> {
    const countedMs = performance.now();
    const crawlerId = countedMs < nextCountMs ? undefined : countedLongestAgo();
    if (crawlerId === undefined) return;
    nextCountMs = Number.POSITIVE_INFINITY;
    try {
      const [queued] = (await hosts.longest(crawlerId, 1)).hosts;
      const isNew = !isDeepStrictEqual(longest.get(crawlerId)?.queued, queued);
      longest.set(crawlerId, { queued, countedMs });
      if (isNew) await hosts.save(report(crawlerId), clock.now());
      // Others may not have been counted yet.
      if (isNew && !isClosed) saveSoon();
    } catch (error) {
      logger.debug({ err: error, crawler: crawlerId }, 'the jobs of a crawler were not counted');
    }
    const endedMs = performance.now();
    nextCountMs = endedMs + (endedMs - countedMs) * COUNT_PAUSE_FACTOR;
  }

  function report(crawlerId: string): HostReport[] {
    const states = memory.get(crawlerId)?.lanes.states(nowMs());
    if (states === undefined) return [];
    return [
      { crawlerId, processId, hosts: states, ...defined({ heldUp: heldUpBy(crawlerId, states) }) },
    ];
  }

  async function save(): Promise<void> {
    const crawlerIds = [...changed];
    changed.clear();
    try {
      const reports = crawlerIds.flatMap(report);
      if (reports.length > 0) await hosts.save(reports, clock.now());
    } catch (error) {
      for (const crawlerId of crawlerIds) changed.add(crawlerId);
      logger.debug({ err: error }, 'the reports on hosts were not saved');
    }
    const shared = crawlerIds.filter(deps.isShared);
    for (const crawlerId of shared) {
      const known = memory.get(crawlerId);
      if (known !== undefined) await learn(known);
    }
    forgetUnused();
    if (!isClosed) void countOne();
  }

  function saveSoon(): void {
    timer ??= setTimeout(() => {
      saving = save().finally(() => {
        timer = undefined;
        saving = undefined;
        if (changed.size > 0 || hasMore()) saveSoon();
      });
    }, SAVE_MS).unref();
  }

  return {
    lanesOf(crawlerId) {
      // Also without a crawl: what is read from reports takes memory, too.
      saveSoon();
      const known = memory.get(crawlerId);
      if (known !== undefined) return known.lanes;
      const lanes = createHostLanes(
        () => {
          changed.add(crawlerId);
          saveSoon();
        },
        gates,
        () => forgottenMs,
      );
      const made = { crawlerId, lanes };
      memory.set(crawlerId, made);
      void learn(made, true);
      return lanes;
    },
    states: (crawlerId) => memory.get(crawlerId)?.lanes.states(nowMs()),
    troubled() {
      const count = { away: 0, slow: 0 };
      for (const [, { lanes }] of memory.entries()) {
        const { away, slow } = lanes.troubled();
        count.away += away;
        count.slow += slow;
      }
      return count;
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await saving;
      clearTimeout(timer);
      if (changed.size > 0) await save();
    },
  };
}

/** The hosts that wait for a reason that is not their own. */
function allOf(states: readonly HostState[], reason: FailureReason): HeldUp | undefined {
  const found = states.filter(({ health }) => health?.reason === reason);
  const [first] = found;
  if (first === undefined) return undefined;
  const until = found.map(({ health }) => health?.untilMs ?? 0);
  const since = found.map(({ health }, at) => health?.sinceMs ?? until[at] ?? 0);
  const [sinceMs, untilMs] = [Math.min(...since), Math.max(...until)];
  return { host: first.host, reason, sinceMs, untilMs, queued: 0, hosts: found.length };
}
