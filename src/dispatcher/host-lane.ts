import type { Crawler } from '../domain/crawler.ts';
import { type HostRule, ruleFor } from '../domain/host-rules.ts';
import type { DueJob } from '../domain/job.ts';
import { orderMs } from '../domain/priority.ts';
import { hostDigit } from '../domain/share-digits.ts';
import type { HostHealth } from './host-health.ts';

/** What lanes keep of a crawler's settings. */
export type LanesCrawler = Pick<Crawler, 'politeness' | 'pausedHosts' | 'retryWindowHours'>;

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
  /** Time that its ended crawls have held, in milliseconds; moved on to that of the others. */
  usedMs: number;
  /** The mean time of a crawl. */
  meanMs: number;
  nextStartMs: number;
  /** What robots.txt asks for. */
  robotsDelayMs: number;
  /** Whether a crawl has ended here: the first one may read robots.txt and open a connection. */
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

/** Assumed time of a crawl until some were measured. */
const FIRST_MEAN_MS = 200;

/** Makes a lane without jobs. */
export function createLane(host: string, pace: HostPace, usedMs: number, health: HostHealth): Lane {
  return {
    host,
    digit: hostDigit(host),
    pace,
    ahead: new Map(),
    isMixed: false,
    running: new Map(),
    usedMs,
    meanMs: FIRST_MEAN_MS,
    nextStartMs: 0,
    robotsDelayMs: 0,
    isKnown: false,
    health,
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

/** Least time between two starts. */
export function spacingMs({ pace, robotsDelayMs }: Lane): number {
  return Math.max(pace.delayMs, robotsDelayMs);
}

/** Before this moment no crawl may start. */
export function startAt({ nextStartMs, health }: Lane): number {
  return Math.max(nextStartMs, health.notBeforeMs);
}

/** Most crawls at once. */
export function limitOf(lane: Lane): number {
  const { pace, isKnown, health } = lane;
  if (pace.isPaused) return 0;
  if (!isKnown && (pace.asksRobots || spacingMs(lane) > 0)) return 1;
  return Math.min(pace.most, health.limit);
}

/** The time that a lane has held slots so far, with its crawls in flight. */
export function heldMs({ usedMs, running, meanMs }: Lane, nowMs: number): number {
  let total = usedMs;
  for (const startedMs of running.values()) total += Math.max(nowMs - startedMs, meanMs);
  return total;
}
