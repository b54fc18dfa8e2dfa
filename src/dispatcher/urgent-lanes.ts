import type { DueJob } from '../domain/job.ts';
import { DEFAULT_PRIORITY, orderMs } from '../domain/priority.ts';
import { firstOf, heldMs, type Lane } from './host-lane.ts';

/** Lanes with jobs above the default priority, which may start before the lane whose turn it is. */
export interface UrgentLanes {
  /** A job was added to a lane. */
  added(lane: Lane, job: DueJob): void;
  /**
   * A lane whose next job has a higher priority than that of `best`, and comes before it in the
   * order. Of several the one with the highest, then the one that has held slots for less time.
   */
  before(
    best: Lane,
    nowMs: number,
    mayStart: (lane: Lane, nowMs: number) => boolean,
  ): Lane | undefined;
}

/** Makes it without lanes. */
export function createUrgentLanes(): UrgentLanes {
  const urgent = new Set<Lane>();
  return {
    added(lane, { priority }) {
      if (priority > DEFAULT_PRIORITY) urgent.add(lane);
    },
    before(best, nowMs, mayStart) {
      const head = firstOf(best);
      if (urgent.size === 0 || head === undefined) return undefined;
      let found: Lane | undefined;
      let highest = head.priority;
      for (const lane of urgent) {
        const first = firstOf(lane);
        const isUrgent = ({ priority }: DueJob): boolean => priority > DEFAULT_PRIORITY;
        if (![...lane.ahead.values()].some(isUrgent)) urgent.delete(lane);
        if (first === undefined || first.priority < highest || !mayStart(lane, nowMs)) continue;
        if (orderMs(first) >= orderMs(head)) continue;
        const isHigher = first.priority > highest;
        const isLess = found !== undefined && heldMs(lane, nowMs) < heldMs(found, nowMs);
        if (!isHigher && !isLess) continue;
        found = lane;
        highest = first.priority;
      }
      return found;
    },
  };
}
