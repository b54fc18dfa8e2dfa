/** What one process knows of a host that a crawler visits. Survives JSON. */
export interface HostState {
  /** With its port, unless that is the usual one. */
  readonly host: string;
  /** Crawls in flight. */
  readonly running: number;
  /** Crawls that ended, retries included, since the process first met the host. */
  readonly tries: number;
  /** How long these took together. */
  readonly tookMs: number;
  /** How many of them failed, by reason. */
  readonly failures: Readonly<Record<string, number>>;
  /** Crawls that end in a second, lately. */
  readonly perSecond: number;
  /** When one last ended, in milliseconds of the service time as all times here; 0 for never. */
  readonly lastMs: number;
  /** The next crawl starts no earlier, because of the pace; absent when it may start now. */
  readonly nextStartMs?: number | undefined;
  /** The delay that robots.txt asks for. */
  readonly robotsDelayMs?: number | undefined;
  /** Absent for a host that bears what the crawler asks. */
  readonly health?: SavedHealth | undefined;
}

/** Why a host is asked less than its crawler allows. */
export interface HostTrouble {
  /** The host asks for less, or it is not reached. */
  readonly kind: 'slow' | 'away';
  readonly reason: string;
  /** Nothing is asked before. */
  readonly untilMs: number;
  /** Since when nothing can ask it, for a host that has not failed. */
  readonly sinceMs?: number | undefined;
}

/** What was learned of a host in trouble, for the process that crawls it next. */
export interface SavedHealth extends HostTrouble {
  /** Crawls in a row that did not reach it, and since when. */
  readonly failures: number;
  readonly awaySinceMs?: number | undefined;
  /** How long it was put aside last. */
  readonly asideMs: number;
  /** The interval between two starts. */
  readonly spacingMs: number;
}

/** Reasons that are counted for each host; more count as `other`. */
const MAX_REASONS = 8;

/** Adds a failure to counts by reason, which stay bounded. */
export function addFailure(counts: Map<string, number>, reason: string, by = 1): void {
  const known = counts.has(reason) || counts.size < MAX_REASONS ? reason : 'other';
  counts.set(known, (counts.get(known) ?? 0) + by);
}

/** The states of one host that several processes know. */
export function mergeStates(a: HostState, b: HostState): HostState {
  const failures = new Map(Object.entries(a.failures));
  for (const [reason, count] of Object.entries(b.failures)) addFailure(failures, reason, count);
  const untilMs = (state: HostState): number => state.health?.untilMs ?? 0;
  return {
    host: a.host,
    running: a.running + b.running,
    tries: a.tries + b.tries,
    tookMs: a.tookMs + b.tookMs,
    failures: Object.fromEntries(failures),
    perSecond: a.perSecond + b.perSecond,
    lastMs: Math.max(a.lastMs, b.lastMs),
    nextStartMs: Math.max(a.nextStartMs ?? 0, b.nextStartMs ?? 0) || undefined,
    robotsDelayMs: Math.max(a.robotsDelayMs ?? 0, b.robotsDelayMs ?? 0) || undefined,
    health: untilMs(a) >= untilMs(b) ? (a.health ?? b.health) : b.health,
  };
}
