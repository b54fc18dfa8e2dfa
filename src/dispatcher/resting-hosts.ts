import { defined } from '../domain/defined.ts';
import type { SavedHealth } from '../domain/host-state.ts';
import { indexBehind } from '../domain/sorted-names.ts';
import { isWait } from './host-health.ts';
import { type HostPace, type Lane, spacingMs, startAt } from './host-lane.ts';

/** What has to be remembered of a host that has no lane. */
export interface RestingHost {
  /** Before this moment the host is asked nothing. */
  readonly untilMs: number;
  readonly nextStartMs: number;
  /** The delay that is part of it; undefined if another crawler of the pace group has asked the host. */
  readonly spacingMs: number | undefined;
  readonly health?: SavedHealth;
  /** Crawls in a row that have not reached it. */
  readonly failures: number;
  readonly robotsDelayMs: number;
  readonly isKnown: boolean;
}

/**
 * Hosts without a lane that may not be asked like any other: put aside, asked a moment ago, or not reached
 * by the last crawl. A tenth of what a lane takes.
 */
export interface RestingHosts {
  readonly size: number;
  has(host: string): boolean;
  /** Whether the delay of a host is not over. */
  keepsDelays(nowMs: number): boolean;
  /** Whether the next crawl is a try of a host that is put aside. */
  needsTry(host: string): boolean;
  /** Whether the host may not be asked now. */
  isClosed(host: string, nowMs: number): boolean;
  /**
   * Whether there is no room for further hosts until the delay of one of these is over. Those that are put
   * aside are forgotten before that, and tried again from the start.
   */
  isFull(nowMs: number): boolean;
  /** Remembers the host of a lane that is forgotten, if there is something to remember. */
  keep(lane: Lane, nowMs: number): void;
  /**
   * Changes how long hosts rest that were asked less than their delay before `nowMs`, and ends waits for
   * proxies.
   */
  changePaces(paceOf: (host: string) => HostPace, nowMs: number): void;
  /** What is known of a host, which is then forgotten here. */
  take(host: string): RestingHost | undefined;
  /**
   * At most `limit` of the hosts that may not be asked now, in the order of their names from the first one
   * behind `after`, as a look meets them. `withTries` adds those of which a try is due.
   */
  closed(nowMs: number, limit: number, after: string, withTries: boolean): string[];
  /** When the first of those may be asked again. */
  opensAt(nowMs: number): number | undefined;
}

/** 20 MB of a crawler. */
const MAX_HOSTS = 50_000;
/** What of it is left when hosts that are put aside make room. */
const MOST_LEFT = 0.9 * MAX_HOSTS;
/** The interval at which hosts that may be asked again make room. */
const PRUNE_MS = 1_000;
/** The interval at which hosts are put in the order of their names. */
const SORT_MS = 2_000;

const needsTry = (known: RestingHost | undefined): boolean => (known?.health?.asideMs ?? 0) > 0;

/** Makes an empty collection. */
export function createRestingHosts(): RestingHosts {
  const hosts = new Map<string, RestingHost>();
  let prunedMs = Number.NEGATIVE_INFINITY;
  let sorted: string[] = [];
  let sortedMs = Number.NEGATIVE_INFINITY;

  function forgetAside(nowMs: number): void {
    for (const [host, { nextStartMs }] of hosts) {
      if (hosts.size <= MOST_LEFT) return;
      if (nextStartMs <= nowMs) hosts.delete(host);
    }
  }

  return {
    get size() {
      return hosts.size;
    },
    has: (host) => hosts.has(host),
    keepsDelays: (nowMs) => hosts.values().some(({ nextStartMs }) => nextStartMs > nowMs),
    needsTry: (host) => needsTry(hosts.get(host)),
    isClosed: (host, nowMs) => (hosts.get(host)?.untilMs ?? nowMs) > nowMs,
    isFull(nowMs) {
      if (hosts.size >= MAX_HOSTS && nowMs - prunedMs >= PRUNE_MS) {
        prunedMs = nowMs;
        for (const [host, { untilMs }] of hosts) if (untilMs <= nowMs) hosts.delete(host);
        if (hosts.size >= MAX_HOSTS) forgetAside(nowMs);
      }
      return hosts.size >= MAX_HOSTS;
    },
    keep(lane, nowMs) {
      const health = lane.health.saved();
      const untilMs = startAt(lane);
      const { failures } = lane.health;
      if (health === undefined && failures === 0 && untilMs <= nowMs) return;
      const { gate, robotsDelayMs, isKnown } = lane;
      const { nextStartMs } = gate;
      const kept = {
        untilMs,
        nextStartMs,
        spacingMs: gate.held?.by === lane.member ? gate.held.spacingMs : undefined,
        robotsDelayMs,
        isKnown,
        failures,
        ...defined({ health }),
      };
      hosts.set(lane.host, kept);
    },
    changePaces(paceOf, nowMs) {
      for (const [host, { health: before, ...known }] of hosts) {
        const health = isWait(before) ? undefined : before;
        if (known.nextStartMs <= nowMs && health === before) continue;
        const delayMs =
          known.spacingMs === undefined ? undefined : spacingMs({ ...known, pace: paceOf(host) });
        const nextStartMs = known.nextStartMs + (delayMs ?? 0) - (known.spacingMs ?? 0);
        const untilMs = Math.max(nextStartMs, health?.untilMs ?? 0);
        const failures = health === before ? known.failures : 0;
        const rest = { ...known, failures, untilMs, nextStartMs, spacingMs: delayMs };
        hosts.set(host, { ...rest, ...defined({ health }) });
      }
    },
    take(host) {
      const found = hosts.get(host);
      hosts.delete(host);
      return found;
    },
    closed(nowMs, limit, after, withTries) {
      if (nowMs - sortedMs >= SORT_MS) {
        sortedMs = nowMs;
        sorted = [...hosts.keys()].sort();
      }
      const first = indexBehind(sorted, after);
      const closed: string[] = [];
      for (let n = 0; n < sorted.length && closed.length < limit; n += 1) {
        const host = sorted[(first + n) % sorted.length] ?? '';
        const known = hosts.get(host);
        if (known === undefined) continue;
        if (known.untilMs > nowMs || (withTries && needsTry(known))) closed.push(host);
      }
      return closed;
    },
    opensAt(nowMs) {
      let opensAt = Number.POSITIVE_INFINITY;
      for (const { untilMs } of hosts.values()) {
        if (untilMs > nowMs && untilMs < opensAt) opensAt = untilMs;
      }
      return Number.isFinite(opensAt) ? opensAt : undefined;
    },
  };
}
