import { HOUR_MS } from '../domain/durations.ts';
import type { HostState } from '../domain/host-state.ts';
import type { DueJob } from '../domain/job.ts';
import { DIGITS } from '../domain/share-digits.ts';
import { createHostChoice, type HostChoice } from './host-choice.ts';
import { createHostGate, createHostGates, type HostGates, putLast } from './host-gate.ts';
import { createHostHealth, type HostAway } from './host-health.ts';
import {
  addTime,
  changePace,
  createLane,
  firstOf,
  groupOf,
  heldMs,
  holdGate,
  isNeeded,
  isSameVersion,
  type Lane,
  type LanesCrawler,
  limitOf,
  paceOf,
  spacingMs,
  startAt,
} from './host-lane.ts';
import type { HostChange, HostNews } from './host-news.ts';
import { createHostStates, type HostStates } from './host-states.ts';
import { createHostTallies } from './host-tallies.ts';
import { createIdleLanes } from './idle-lanes.ts';
import { createLaneOrder } from './lane-order.ts';
import { createRestingHosts } from './resting-hosts.ts';
import { createUrgentLanes } from './urgent-lanes.ts';

/**
 * The hosts of one run: a lane for each, with the jobs that were read ahead for it. Hosts get slots
 * in turn by the time that their crawls hold them, so a slow host gets its part and no more. A host
 * that bears no more crawls now is left out until it does.
 */
export interface HostLanes extends HostChoice, HostStates {
  readonly isIdle: boolean;
  /**
   * Jobs in lanes that may start a crawl now. While `othersWait`, one of each lane that has no crawl
   * in flight.
   */
  startable(nowMs: number, othersWait?: boolean): number;
  add(job: DueJob): void;
  remove(job: DueJob): void;
  /**
   * The next job to start; undefined when no lane may start one. While `othersWait`, hosts that have
   * had more than their part wait for those that are still to be read.
   */
  next(nowMs: number, othersWait: boolean): DueJob | undefined;
  /**
   * Before a job starts: lets crawlers of the pace group start crawls at its host whose last start is
   * longer ago. Returns whether one did, so that the next job may be another one.
   */
  letOthersFirst(job: DueJob, nowMs: number): boolean;
  /** How many jobs of its host were read ahead. */
  aheadOf(job: DueJob): number;
  /** Whether the host of a job has jobs or crawls here. */
  isHere(job: DueJob): boolean;
  /** When the first of the lanes that wait may start a crawl; undefined when none waits for a time. */
  nextAt(nowMs: number): number | undefined;
  /** Returns whether `sent` has to be called, because the host is asked with a delay. */
  started(job: DueJob, nowMs: number): boolean;
  /** The request of a crawl was sent; the next one follows after the delay. */
  sent(rid: string, nowMs: number): void;
  ended(rid: string, told: HostNews, nowMs: number): HostChange | undefined;
  /** What is known of a host that is put aside. */
  awayOf(host: string): HostAway | undefined;
  /** Whether a job finds out whether its host can be reached again. */
  isTry(job: DueJob): boolean;
  /** Keeps to the pace, the pauses and the retry window of a crawler that has that many slots here. */
  keep(crawler: LanesCrawler, slots?: number): void;
  /**
   * Calls `onOpen` when another crawler of the pace group has made room at a host, and `onTurn` when
   * this one should start its crawls before others. The returned function ends that.
   */
  watch(onOpen: () => void, onTurn: () => void): () => void;
  /** Whether a run watches the lanes. */
  readonly isWatched: boolean;
  /**
   * A run of this process has taken the lease of the crawler. Other processes may have crawled it until
   * then; undefined if no other process can.
   */
  led(formerMs: number | undefined): void;
  /**
   * Another process may have crawled hosts with these digits until now: each of them is first asked
   * after its delay.
   */
  gained(digits: readonly string[], nowMs: number): void;
  /** Forgets hosts without jobs that are in no trouble, and whose delay is over. */
  forgetOrdinary(nowMs: number): void;
  /** Leaves the pace group; nothing is known after that. */
  close(): void;
  /** Takes in what other processes know, unless a crawl here has ended later. */
  learn(states: readonly HostState[], nowMs: number): void;
}

/** How much more than its part a host may use while others are still to be read. */
const QUANTUM_MS = 1_000;
/**
 * The part of the slots that tries of hosts which are put aside may take, and up to which they take others
 * that are free. Each may take as long as a crawl can, and there may be thousands of them.
 */
const TRIES = { most: 0.1, whileBusy: 0.5 } as const;
/** Trouble of another process that is over for longer says nothing of the host as it is now. */
const FORGET_TROUBLE_MS = 15 * 60_000;
/** Lanes that are kept without jobs. Of further ones only what is needed is remembered. */
const MAX_LANES = 2_000;

/**
 * Makes lanes without jobs. `onChange` is called when a crawl has ended. `forgottenMs` says until when this
 * process may have crawled hosts of which it knows nothing any more.
 */
export function createHostLanes(
  onChange: () => void = () => undefined,
  gates: HostGates = createHostGates(),
  forgottenMs: () => number = () => Number.NEGATIVE_INFINITY,
): HostLanes {
  const unknownMs = forgottenMs();
  const lanes = new Map<string, Lane>();
  const byRid = new Map<string, Lane>();
  const idle = createIdleLanes();
  const resting = createRestingHosts();
  const order = createLaneOrder();
  const urgent = createUrgentLanes();
  const tallies = createHostTallies();
  /** When hosts of a digit may last have been crawled by another process. */
  const gainedMs = new Map<string, number>();
  let crawler: LanesCrawler = { politeness: undefined, retryWindowHours: Number.POSITIVE_INFINITY };
  let paused: ReadonlySet<string> = new Set();
  /** Whose crawlers share the pace of a host; undefined if no others do. */
  let group: string | undefined;
  const watchers = new Set<{ readonly onOpen: () => void; readonly onTurn: () => void }>();
  let slots = Number.POSITIVE_INFINITY;
  let inFlight = 0;
  /** The tries in flight. */
  const tries = new Set<string>();
  /** When a crawl last started. */
  let latestMs = 0;
  /** The least part of the lanes when one last started. */
  let virtualMs = 0;

  const paceNow = (host: string) => paceOf(crawler, paused, host);

  function open(host: string): Lane {
    const lane = lanes.get(host);
    if (lane !== undefined) return lane;
    const oldest = idle.size >= MAX_LANES ? idle.oldest(latestMs) : undefined;
    if (oldest !== undefined) {
      resting.keep(oldest, latestMs);
      forget(oldest);
    }
    const health = createHostHealth(() => crawler.retryWindowHours * HOUR_MS);
    const made = createLane(host, {
      pace: paceNow(host),
      usedMs: virtualMs,
      health,
      gate: createHostGate(),
      member: {
        changed() {
          changed(made);
          if (made.ahead.size > 0) for (const { onOpen } of watchers) onOpen();
        },
        start(nowMs) {
          if (made.ahead.size === 0 || !mayStart(made, nowMs)) return;
          for (const { onTurn } of watchers) onTurn();
        },
      },
    });
    if (group !== undefined) gates.join(group, made);
    wait(made, gainedMs.get(made.digit));
    const known = resting.take(host);
    if (known !== undefined) {
      made.robotsDelayMs = known.robotsDelayMs;
      made.isKnown = known.isKnown;
      holdGate(made, known.nextStartMs - spacingMs(made));
      made.health.restoreFailures(known.failures);
      if (known.health !== undefined) made.health.restore(known.health, latestMs);
    }
    lanes.set(host, made);
    idle.changed(made);
    return made;
  }

  function forget(lane: Lane): void {
    if (group !== undefined) gates.leave(group, lane);
    lanes.delete(lane.host);
    idle.delete(lane);
  }

  /** Has to be called after each change of a gate: the lanes of other crawlers may start now, or no more. */
  function changedGate(lane: Lane): void {
    changed(lane);
    for (const member of lane.gate.members) if (member !== lane.member) member.changed();
  }

  /** A crawl told of its request, or has ended without. */
  function settle(lane: Lane, rid: string): void {
    if (lane.unsent.delete(rid)) lane.gate.unsent -= 1;
  }

  /** Has to be called after each change of what decides whether a lane may start a crawl. */
  function changed(lane: Lane): void {
    order.changed(lane, limitOf(lane));
  }

  /** Lets the first crawl wait for the delay since another process may have made one. */
  function wait(lane: Lane, sinceMs: number | undefined): void {
    if (sinceMs === undefined || spacingMs(lane) === 0) return;
    if (holdGate(lane, sinceMs)) changedGate(lane);
  }

  /** Forgets a lane of which nothing has to be known. */
  function closeIdle(lane: Lane, nowMs: number, leastMs = virtualMs): void {
    if (!isNeeded(lane, leastMs, nowMs)) forget(lane);
  }

  const mayTry = (): boolean =>
    tries.size < Math.max(1, Math.floor(slots * TRIES.most)) || inFlight < slots * TRIES.whileBusy;

  const mayStart = (lane: Lane, nowMs: number): boolean =>
    lane.running.size < limitOf(lane) &&
    startAt(lane) <= nowMs &&
    (!lane.health.needsTry || mayTry());

  /** Whether a lane has what it may while others are still to be read: one crawl, or its part. */
  const isAhead = (lane: Lane, nowMs: number): boolean =>
    lane.running.size > 0 || heldMs(lane, nowMs) > virtualMs + QUANTUM_MS;

  function gained(digits: readonly string[], nowMs: number): void {
    for (const digit of digits) {
      gainedMs.set(digit, Math.max(gainedMs.get(digit) ?? nowMs, nowMs));
    }
    for (const lane of lanes.values()) if (digits.includes(lane.digit)) wait(lane, nowMs);
  }

  return {
    get isIdle() {
      return byRid.size === 0;
    },
    keep(current, most = Number.POSITIVE_INFINITY) {
      slots = most;
      if (isSameVersion(current, crawler)) return;
      crawler = current;
      paused = new Set(current.pausedHosts);
      const before = group;
      group = groupOf(current);
      resting.changePaces(paceNow, latestMs);
      for (const lane of lanes.values()) {
        changePace(lane, paceNow(lane.host), latestMs);
        idle.changed(lane);
        if (group !== before) {
          const { members } = lane.gate;
          if (before !== undefined) gates.leave(before, lane);
          if (group !== undefined) gates.join(group, lane);
          for (const member of members) member.changed();
        }
        changedGate(lane);
        wait(lane, gainedMs.get(lane.digit));
      }
    },
    watch(onOpen, onTurn) {
      const watcher = { onOpen, onTurn };
      watchers.add(watcher);
      return () => void watchers.delete(watcher);
    },
    get isWatched() {
      return watchers.size > 0;
    },
    close() {
      for (const lane of lanes.values()) forget(lane);
    },
    led(formerMs = Number.NEGATIVE_INFINITY) {
      // What was forgotten of another crawler of the group counts, too.
      const ownMs = group === undefined ? unknownMs : forgottenMs();
      gained(DIGITS.host.split(''), Math.max(formerMs, ownMs));
    },
    gained,
    forgetOrdinary(nowMs) {
      // Whether one has had more than its part counts while others have jobs.
      for (const lane of lanes.values()) closeIdle(lane, nowMs, Number.POSITIVE_INFINITY);
    },
    ...createHostStates({ lanes, tallies, resting }),
    learn(states, nowMs) {
      for (const { host, health, robotsDelayMs = 0, lastMs } of states) {
        const isOver = health === undefined || health.untilMs + FORGET_TROUBLE_MS < nowMs;
        if ((isOver && robotsDelayMs === 0) || tallies.lastMs(host) > lastMs) continue;
        const lane = open(host);
        lane.robotsDelayMs = Math.max(lane.robotsDelayMs, robotsDelayMs);
        wait(lane, gainedMs.get(lane.digit));
        if (health !== undefined && !isOver) lane.health.restore(health, nowMs);
        idle.changed(lane);
        changed(lane);
      }
    },
    startable: (nowMs, othersWait = false) =>
      othersWait ? order.idle(nowMs) : order.startable(nowMs),
    add(job) {
      const lane = open(job.host);
      if (lane.ahead.size + lane.running.size === 0) lane.usedMs = Math.max(lane.usedMs, virtualMs);
      lane.isMixed =
        lane.ahead.size > 0 && (lane.isMixed || job.priority !== firstOf(lane)?.priority);
      lane.ahead.set(job.rid, job);
      urgent.added(lane, job);
      byRid.set(job.rid, lane);
      idle.changed(lane);
      changed(lane);
    },
    remove({ rid }) {
      const lane = byRid.get(rid);
      if (lane?.ahead.delete(rid) !== true) return;
      if (!lane.running.has(rid)) byRid.delete(rid);
      idle.changed(lane);
      changed(lane);
    },
    next(nowMs, othersWait) {
      const best = order.least(nowMs, mayTry());
      if (best === undefined) return undefined;
      const preferred = urgent.before(best, nowMs, mayStart);
      if (preferred !== undefined) return firstOf(preferred);
      return othersWait && isAhead(best, nowMs) ? undefined : firstOf(best);
    },
    letOthersFirst({ rid }, nowMs) {
      const lane = byRid.get(rid);
      return lane !== undefined && gates.letOthersFirst(lane, nowMs);
    },
    aheadOf: ({ host }) => lanes.get(host)?.ahead.size ?? 0,
    isHere({ host }) {
      const lane = lanes.get(host);
      return lane !== undefined && lane.ahead.size + lane.running.size > 0;
    },
    nextAt: order.nextAt,
    started(job, nowMs) {
      const lane = byRid.get(job.rid) ?? open(job.host);
      lane.ahead.delete(job.rid);
      virtualMs = Math.max(virtualMs, Math.min(heldMs(lane, nowMs), virtualMs + QUANTUM_MS));
      // The crawl of an aborted run may still have to end, which ends both here.
      const more = lane.running.has(job.rid) ? 0 : 1;
      settle(lane, job.rid);
      lane.running.set(job.rid, nowMs);
      byRid.set(job.rid, lane);
      idle.changed(lane);
      inFlight += more;
      if (lane.health.needsTry) tries.add(job.rid);
      const { gate } = lane;
      latestMs = nowMs;
      gate.running += more;
      putLast(lane);
      holdGate(lane, nowMs);
      lane.health.started(nowMs);
      const isPaced = spacingMs(lane) > 0;
      if (isPaced) {
        lane.unsent.add(job.rid);
        gate.unsent += 1;
      }
      changedGate(lane);
      return isPaced;
    },
    sent(rid, nowMs) {
      const lane = byRid.get(rid);
      if (lane?.running.has(rid) !== true) return;
      settle(lane, rid);
      holdGate(lane, nowMs);
      changedGate(lane);
    },
    ended(rid, { answer, robotsDelayMs, tried }, nowMs) {
      const lane = byRid.get(rid);
      if (lane?.ahead.has(rid) !== true) byRid.delete(rid);
      const startedMs = lane?.running.get(rid);
      if (lane === undefined || startedMs === undefined) return undefined;
      lane.running.delete(rid);
      inFlight -= 1;
      tries.delete(rid);
      lane.gate.running -= 1;
      settle(lane, rid);
      onChange();
      lane.robotsDelayMs = robotsDelayMs ?? lane.robotsDelayMs;
      // The delay that robots.txt asks for was not known when the first request was sent.
      if (!lane.isKnown && lane.pace.asksRobots) wait(lane, nowMs);
      lane.isKnown = true;
      const tookMs = nowMs - startedMs;
      if (tried !== undefined) tallies.note(lane.host, tookMs, tried.failure, nowMs);
      addTime(lane, tookMs);
      const changes = answer !== undefined && lane.health.ended(answer, startedMs, nowMs);
      idle.changed(lane);
      changedGate(lane);
      closeIdle(lane, nowMs);
      return changes ? { host: lane.host, trouble: lane.health.trouble } : undefined;
    },
    awayOf: (host) => lanes.get(host)?.health.away,
    ...createHostChoice({ lanes, resting, closeIdle, mayStart }),
    isTry: ({ rid }) => byRid.get(rid)?.health.needsTry === true,
  };
}
