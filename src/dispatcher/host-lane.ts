import type { Crawler } from '../domain/crawler.ts';
import { type HostRule, ruleFor } from '../domain/host-rules.ts';
import type { DueJob } from '../domain/job.ts';
import { orderMs } from '../domain/priority.ts';
import { hostDigit } from '../domain/share-digits.ts';
import type { GateMember, HostGate } from './host-gate.ts';
import type { HostHealth } from './host-health.ts';

/** What lanes keep of a crawler's settings. */
export type LanesCrawler = Pick<Crawler, 'politeness' | 'pausedHosts' | 'retryWindowHours'> &
  Partial<Pick<Crawler, 'accountId' | 'updatedAt'>>;

/** The jobs of one host that a run has read ahead, its crawls in flight, and what is known of it. */
export interface Lane {
  readonly host: string;
  readonly digit: string;
  /** What the crawler's settings say of the host. */
  pace: HostPace;
  readonly ahead: Map<string, DueJob>;
  /** Whether its jobs may have several priorities. */
  isMixed: boolean;
  /** The starts of the crawls in flight. */
  readonly running: Map<string, number>;
  /** Those of them, in a lane with a delay, that have not told of their request. */
  readonly unsent: Set<string>;
  gate: HostGate;
  /** What the gate knows it by. */
  readonly member: GateMember;
  /** Time that its ended crawls have held, in milliseconds; moved on to that of the others. */
  usedMs: number;
  /** The mean time of a crawl; undefined until one has ended here. */
  meanMs: number | undefined;
  /** What robots.txt asks for. */
  robotsDelayMs: number;
  /** Whether a crawl has ended here: the first one may read robots.txt. */
  isKnown: boolean;
  readonly health: HostHealth;
}

/** What the settings of a crawler say of one host. */
export interface HostPace {
  readonly isPaused: boolean;
  /** Most crawls at once; infinite for no limit. */
  readonly most: number;
  readonly delayMs: number;
  readonly asksRobots: boolean;
}

/** Assumed time of a crawl until one was measured: a host that may not answer gets few slots at first. */
const FIRST_MEAN_MS = 1_000;
/** What the mean keeps of its value before. */
const MEAN_WEIGHT = 0.8;

/** Makes a lane without jobs. */
export function createLane(
  host: string,
  parts: Pick<Lane, 'pace' | 'usedMs' | 'health' | 'gate' | 'member'>,
): Lane {
  return {
    ...parts,
    host,
    digit: hostDigit(host),
    ahead: new Map(),
    isMixed: false,
    running: new Map(),
    unsent: new Set(),
    meanMs: undefined,
    robotsDelayMs: 0,
    isKnown: false,
  };
}

/** The job that starts next. */
export function firstOf({ ahead, isMixed }: Lane): DueJob | undefined {
  const [first] = ahead.values();
  if (!isMixed || first === undefined) return first;
  return [...ahead.values()].reduce((best, job) => (orderMs(job) < orderMs(best) ? job : best));
}

/** The pace of a host, by the first rule that is for it. */
export function paceOf(
  { politeness }: Pick<LanesCrawler, 'politeness'>,
  paused: ReadonlySet<string>,
  host: string,
): HostPace {
  const rule: Partial<HostRule> = ruleFor(politeness?.hosts ?? [], host) ?? {};
  return {
    isPaused: rule.paused === true || paused.has(host),
    most: (rule.maxPerHost ?? politeness?.maxPerHost ?? 0) || Number.POSITIVE_INFINITY,
    delayMs: rule.delayMs ?? politeness?.delayMs ?? 0,
    asksRobots: politeness?.robotsTxt ?? false,
  };
}

/** Whose crawlers share the pace of a host; undefined if no others do. */
export function groupOf({ accountId = '', politeness }: LanesCrawler): string | undefined {
  return politeness?.group === undefined ? undefined : `${accountId} ${politeness.group}`;
}

/** Whether nothing of a crawler was changed from one to the other. */
export function isSameVersion(one: LanesCrawler, other: LanesCrawler): boolean {
  const at = one.updatedAt?.getTime();
  return one === other || (at !== undefined && at === other.updatedAt?.getTime());
}

/**
 * Gives a lane another pace, after a change of its crawler. If this lane holds its gate, the next crawl keeps
 * to the new delay from the last one on. The host may have a proxy now, which crawls that started until `latestMs`
 * say nothing of.
 */
export function changePace(lane: Lane, pace: HostPace, latestMs: number): void {
  lane.pace = pace;
  lane.health.endWait(latestMs);
  const { gate, member } = lane;
  if (gate.held?.by !== member) return;
  gate.nextStartMs += spacingMs(lane) - gate.held.spacingMs;
  gate.held = { by: member, spacingMs: spacingMs(lane) };
}

/** Lets the next crawl start no earlier than the delay after a moment. Returns whether that is later than before. */
export function holdGate(lane: Lane, sinceMs: number): boolean {
  const { gate, member: by } = lane;
  const startMs = sinceMs + spacingMs(lane);
  // A lane that is gone would hold it for ever.
  const isLeft = gate.members.size > 0 && !(gate.held && gate.members.has(gate.held.by));
  if (startMs < gate.nextStartMs || (startMs === gate.nextStartMs && !isLeft)) return false;
  gate.nextStartMs = startMs;
  gate.held = { by, spacingMs: spacingMs(lane) };
  return true;
}

/** Least time between two starts. */
export function spacingMs({ pace, robotsDelayMs }: Pick<Lane, 'pace' | 'robotsDelayMs'>): number {
  return pace.asksRobots ? Math.max(pace.delayMs, robotsDelayMs) : pace.delayMs;
}

/** Before this moment no crawl may start. */
export function startAt({ gate, health }: Lane): number {
  return Math.max(gate.nextStartMs, health.notBeforeMs);
}

/** Whether a lane has to be remembered. `virtualMs` is the least part of the lanes. */
export function isNeeded(lane: Lane, virtualMs: number, nowMs: number): boolean {
  const { ahead, running, health, usedMs, isKnown, robotsDelayMs } = lane;
  if (ahead.size + running.size > 0 || !health.isOrdinary || startAt(lane) > nowMs) return true;
  // It has had more than its part, which counts when it has jobs again.
  if (usedMs > virtualMs) return true;
  // What another process has read of its robots.txt.
  return !isKnown && robotsDelayMs > 0;
}

/** Most crawls at once. */
export function limitOf(lane: Lane): number {
  const { pace, isKnown, health, running, gate } = lane;
  if (pace.isPaused) return 0;
  // The delay counts from the moment at which the request is sent.
  if (gate.unsent > 0) return running.size;
  if (!isKnown && pace.asksRobots) return 1;
  const others = gate.running - running.size;
  return Math.min(pace.most - others, health.limit);
}

/** The least of {@link heldMs}, without a look at each crawl. */
export function leastHeldMs({ usedMs, running, meanMs = FIRST_MEAN_MS }: Lane): number {
  return usedMs + running.size * meanMs;
}

/**
 * The time that a lane has held slots so far, with its crawls in flight. Each of them takes the mean at
 * least. Until one has ended, each takes twice as long as the first one by now.
 */
export function heldMs({ usedMs, running, meanMs }: Lane, nowMs: number): number {
  const [firstMs = nowMs] = running.values();
  const leastMs = meanMs ?? Math.max(FIRST_MEAN_MS, 2 * (nowMs - firstMs));
  let total = usedMs;
  for (const startedMs of running.values()) total += Math.max(nowMs - startedMs, leastMs);
  return total;
}

/** Takes in the time of a crawl that has ended. */
export function addTime(lane: Lane, tookMs: number): void {
  lane.usedMs += tookMs;
  const meanMs = lane.meanMs ?? tookMs;
  lane.meanMs = meanMs * MEAN_WEIGHT + tookMs * (1 - MEAN_WEIGHT);
}
