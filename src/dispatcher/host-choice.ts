import type { DueJob } from '../domain/job.ts';
import { firstOf, type Lane, spacingMs, startAt } from './host-lane.ts';
import type { RestingHosts } from './resting-hosts.ts';

/**
 * Of which hosts jobs are read ahead. A host that may not be asked for some time, or that is put aside,
 * is closed. The next of its jobs is read, and the others wait in the queue. Otherwise thousands of hosts that do not answer
 * would take the room of all others.
 */
export interface HostChoice {
  /** How a look has to choose that goes through the hosts behind `after`, and then through the others. */
  wanted(nowMs: number, perHost: number, after: string): HostsWanted;
  /** Whether a job that was found may be read ahead. */
  takes(job: DueJob, nowMs: number): boolean;
  /** Whether there was no room for jobs of further closed hosts. */
  isFull(): boolean;
  /** Jobs here of closed hosts. */
  closedJobs(nowMs: number): number;
  /**
   * When the first closed host of which no job is here may be asked again, or is open for looks; undefined
   * for none.
   */
  opensAt(nowMs: number, forLooks?: boolean): number | undefined;
}

/** What a look should read, and what should not be here any more. */
export interface HostsWanted {
  /** Hosts of which nothing is wanted now. */
  readonly closed: readonly string[];
  /** Hosts with jobs for some time, of which more are wanted only if others have none. */
  readonly full: readonly string[];
  /** Jobs of closed hosts that were read ahead before. */
  readonly surplus: readonly DueJob[];
  /** How many hosts have jobs or crawls here, and are not closed. */
  readonly open: number;
}

/** Jobs that are enough for a host that is asked at intervals. */
const ENOUGH = 2;
/** Hosts that a look leaves out; a bound for the length of its message. */
const MAX_LEFT_OUT = 10_000;
/** A host that may not be asked for longer is closed. */
const CLOSED_MS = 2_000;
/** Closed hosts of which a job is kept, so that they are asked in time. */
const MAX_CLOSED = 4_096;

/** Whether a host of which a look was to read `perHost` jobs has less than half of them left, so that another look follows. */
export function isLow(ahead: number, perHost: number): boolean {
  return ahead < Math.min(Math.max(ENOUGH, perHost / 2), perHost);
}

/** Makes it for the lanes of a crawler. */
export function createHostChoice(deps: {
  readonly lanes: ReadonlyMap<string, Lane>;
  readonly resting: RestingHosts;
  /** Forgets a lane of which nothing has to be known. */
  readonly closeIdle: (lane: Lane, nowMs: number) => void;
  readonly mayStart: (lane: Lane, nowMs: number) => boolean;
}): HostChoice {
  const { lanes, resting } = deps;
  /** Jobs of closed hosts, as of the last look and with those that it has found. */
  let keptClosed = 0;

  const isClosed = (lane: Lane, nowMs: number): boolean =>
    lane.pace.isPaused || lane.health.needsTry || startAt(lane) - nowMs > CLOSED_MS;

  /** Whether a closed lane lacks the job that it may start. */
  const lacksTry = (lane: Lane, nowMs: number): boolean =>
    lane.health.needsTry &&
    lane.ahead.size + lane.running.size === 0 &&
    !lane.pace.isPaused &&
    startAt(lane) - nowMs <= CLOSED_MS;

  /** How many jobs suffice for a lane that may start none now. Its crawls may end at any moment, or it waits. */
  const enoughFor = (lane: Lane, nowMs: number, perHost: number): number =>
    startAt(lane) > nowMs || spacingMs(lane) > 0 ? Math.min(ENOUGH, perHost) : perHost;

  /** Keeps the first job of a closed lane, if there is room; returns the others. */
  function surplusOf(lane: Lane): DueJob[] {
    const kept = keptClosed < MAX_CLOSED ? firstOf(lane) : undefined;
    if (kept !== undefined) keptClosed += 1;
    return [...lane.ahead.values()].filter((job) => job !== kept);
  }

  return {
    wanted(nowMs, perHost, after) {
      const closed: string[] = [];
      const full: string[] = [];
      const surplus: DueJob[] = [];
      const withoutTry: string[] = [];
      let open = 0;
      keptClosed = 0;
      for (const lane of lanes.values()) {
        deps.closeIdle(lane, nowMs);
        const { host, ahead, running } = lane;
        const hasRoom = closed.length + full.length < MAX_LEFT_OUT;
        if (isClosed(lane, nowMs)) {
          if (lacksTry(lane, nowMs)) withoutTry.push(host);
          else if (hasRoom) closed.push(host);
          if (ahead.size > 0) surplus.push(...surplusOf(lane));
          continue;
        }
        if (ahead.size + running.size > 0) open += 1;
        if (!hasRoom || ahead.size === 0) continue;
        if (deps.mayStart(lane, nowMs)) {
          if (ahead.size >= perHost) full.push(host);
        } else if (ahead.size >= enoughFor(lane, nowMs, perHost)) closed.push(host);
      }
      const isFull = keptClosed >= MAX_CLOSED;
      if (isFull) closed.push(...withoutTry);
      const room = Math.max(MAX_LEFT_OUT - closed.length - full.length, 0);
      closed.push(...resting.closed(nowMs, room, after, isFull));
      return { closed, full, surplus, open };
    },
    takes({ host }, nowMs) {
      const lane = lanes.get(host);
      if (lane === undefined) {
        if (!resting.has(host)) return !resting.isFull(nowMs);
        if (resting.isClosed(host, nowMs)) return false;
        if (!resting.needsTry(host)) return true;
      } else if (!isClosed(lane, nowMs)) return true;
      if ((lane?.ahead.size ?? 0) > 0 || keptClosed >= MAX_CLOSED) return false;
      keptClosed += 1;
      return true;
    },
    isFull: () => keptClosed >= MAX_CLOSED,
    closedJobs(nowMs) {
      let jobs = 0;
      for (const lane of lanes.values()) if (isClosed(lane, nowMs)) jobs += lane.ahead.size;
      return jobs;
    },
    opensAt(nowMs, forLooks = false) {
      const aheadMs = forLooks ? CLOSED_MS : 0;
      let opensAt = resting.opensAt(nowMs) ?? Number.POSITIVE_INFINITY;
      for (const lane of lanes.values()) {
        if (lane.pace.isPaused || lane.ahead.size > 0) continue;
        const at = startAt(lane) - aheadMs;
        if (at > nowMs && at < opensAt) opensAt = at;
      }
      return Number.isFinite(opensAt) ? opensAt : undefined;
    },
  };
}
