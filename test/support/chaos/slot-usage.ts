import { setTimeout as wait } from 'node:timers/promises';
import type { ChaosCrawler } from './chaos-crawlers.ts';
import type { ChaosLoad } from './chaos-load.ts';
import type { ChaosSite } from './chaos-site.ts';
import type { Fleet } from './fleet.ts';
import type { HoldersWatch, SlotHolders } from './slot-holders.ts';

/**
 * Why slots were not used although URLs waited. A process that has ended still holds them, nobody
 * leads the crawler, or a helper is giving them back. Or a process that runs holds them and has no
 * crawl in them.
 */
export const IDLE_CAUSES = ['ended process', 'no lead', 'being given back', 'idle'] as const;
export type IdleCause = (typeof IDLE_CAUSES)[number];

/** How much of a crawler's concurrency was used, from 0 to 1. */
export interface UsedSlots {
  /** Of the slots for which there were URLs: those in use, and as many more as URLs waited. */
  readonly share: number;
  /** Of all slots, while any URL waited. */
  readonly shareOfAll: number;
  /** The part that was not used, by cause; empty where holders are not known. */
  readonly idle: Readonly<Partial<Record<IdleCause, number>>>;
}

/** How much of their concurrency crawlers use while the fleet is whole and URLs wait. */
export interface SlotUsage {
  /** Undefined when the fleet was never whole for long enough. */
  of(crawler: string): UsedSlots | undefined;
  /** Seconds that were measured. */
  readonly seconds: number;
  stop(): Promise<void>;
}

interface Sum {
  all: number;
  wanted: number;
  used: number;
  idle: Record<IdleCause, number>;
}

const SAMPLE_MS = 20;

/**
 * Starts to measure; the first `settleMs` after each disturbance do not count. Slots that are held
 * by a process that was killed before count as any others.
 */
export function measureSlots(
  fleet: Pick<Fleet, 'isWhole' | 'running'>,
  site: ChaosSite,
  loads: ReadonlyMap<ChaosCrawler, ChaosLoad>,
  holders: Pick<HoldersWatch, 'of'> | undefined,
  settleMs: number,
): SlotUsage {
  const sums = new Map<string, Sum>();
  let wholeSince: number | undefined;
  let measured = 0;
  let stopped = false;

  function sample(): void {
    measured += 1;
    const pids = new Set(fleet.running().map(({ process }) => process.pid ?? 0));
    for (const [{ name, concurrency }, load] of loads) {
      const waiting = load.waiting();
      if (waiting <= 0) continue;
      const idle = { 'ended process': 0, 'no lead': 0, 'being given back': 0, idle: 0 };
      const sum = sums.get(name) ?? { all: 0, wanted: 0, used: 0, idle };
      const { inFlight } = site.seen(name);
      const unused = Math.max(0, Math.min(concurrency - inFlight, waiting));
      sum.all += concurrency;
      sum.wanted += inFlight + unused;
      sum.used += inFlight;
      const holding = holders?.of(name);
      if (holding !== undefined) {
        for (const [cause, slots] of idleSlots(holding, concurrency, unused, pids)) {
          sum.idle[cause] += slots;
        }
      }
      sums.set(name, sum);
    }
  }

  async function sampling(): Promise<void> {
    while (!stopped) {
      if (!fleet.isWhole()) wholeSince = undefined;
      else wholeSince ??= performance.now();
      if (wholeSince !== undefined && performance.now() - wholeSince > settleMs) sample();
      await wait(SAMPLE_MS);
    }
  }

  const done = sampling();
  return {
    of(crawler) {
      const sum = sums.get(crawler);
      if (sum === undefined) return undefined;
      const { all, wanted, used } = sum;
      const parts = Object.entries(sum.idle).map(([cause, slots]) => [cause, slots / wanted]);
      const idle = holders === undefined ? {} : (Object.fromEntries(parts) as Sum['idle']);
      return { share: used / wanted, shareOfAll: used / all, idle };
    },
    get seconds() {
      return (measured * SAMPLE_MS) / 1_000;
    },
    async stop() {
      stopped = true;
      await done;
    },
  };
}

/** Divides the unused slots among the causes; what no other explains is `idle`. */
export function idleSlots(
  { lead, helpers }: SlotHolders,
  concurrency: number,
  unused: number,
  pids: ReadonlySet<number>,
): Map<IdleCause, number> {
  const ofHelpers = helpers.reduce((sum, { heldSlots }) => sum + heldSlots, 0);
  const ofLead = Math.max(0, concurrency - ofHelpers);
  const live = helpers.filter(({ pid }) => pids.has(pid));
  const ended = helpers.filter(({ pid }) => !pids.has(pid));
  const wanted: Record<IdleCause, number> = {
    'ended process':
      ended.reduce((sum, { heldSlots }) => sum + heldSlots, 0) +
      (lead !== undefined && !pids.has(lead) ? ofLead : 0),
    'no lead': lead === undefined ? ofLead : 0,
    'being given back': live.reduce((sum, { slots, heldSlots }) => sum + heldSlots - slots, 0),
    idle: unused,
  };
  let left = unused;
  const causes = new Map<IdleCause, number>();
  for (const cause of IDLE_CAUSES) {
    const slots = Math.min(left, wanted[cause]);
    causes.set(cause, slots);
    left -= slots;
  }
  return causes;
}
