import { setTimeout as wait } from 'node:timers/promises';
import type { ChaosCrawler } from './chaos-crawlers.ts';
import type { ChaosLoad } from './chaos-load.ts';
import type { ChaosSite } from './chaos-site.ts';
import type { Fleet } from './fleet.ts';

/** How much of their concurrency crawlers use while the fleet is whole and URLs wait. */
export interface SlotUsage {
  /** From 0 to 1; undefined when the fleet was never whole for long enough. */
  share(crawler: string): number | undefined;
  /** Seconds that were measured. */
  readonly seconds: number;
  stop(): Promise<void>;
}

const SAMPLE_MS = 20;

/** Starts to measure; the first `settleMs` after each disturbance do not count. */
export function measureSlots(
  fleet: Pick<Fleet, 'isWhole'>,
  site: ChaosSite,
  loads: ReadonlyMap<ChaosCrawler, ChaosLoad>,
  settleMs: number,
): SlotUsage {
  const sums = new Map<string, { used: number; samples: number }>();
  let wholeSince: number | undefined;
  let measured = 0;
  let stopped = false;
  async function sampling(): Promise<void> {
    while (!stopped) {
      if (!fleet.isWhole()) wholeSince = undefined;
      else wholeSince ??= performance.now();
      if (wholeSince !== undefined && performance.now() - wholeSince > settleMs) {
        measured += 1;
        for (const [{ name, concurrency }, load] of loads) {
          if (load.waiting() <= 0) continue;
          const sum = sums.get(name) ?? { used: 0, samples: 0 };
          sum.used += site.seen(name).inFlight / concurrency;
          sum.samples += 1;
          sums.set(name, sum);
        }
      }
      await wait(SAMPLE_MS);
    }
  }
  const done = sampling();
  return {
    share(crawler) {
      const sum = sums.get(crawler);
      return sum === undefined ? undefined : sum.used / sum.samples;
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
