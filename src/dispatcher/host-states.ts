import { defined } from '../domain/defined.ts';
import type { HostState } from '../domain/host-state.ts';
import type { Lane } from './host-lane.ts';
import type { HostTallies } from './host-tallies.ts';
import type { RestingHosts } from './resting-hosts.ts';

/** What the lanes of a crawler tell to others than its run. */
export interface HostStates {
  /** The digits of hosts that are being crawled, or for whose robots.txt it is too soon. */
  busyDigits(nowMs: number): Set<string>;
  /** How many hosts are in trouble. */
  troubled(): { readonly away: number; readonly slow: number };
  /** What is known of the hosts that were crawled last, and of those in trouble. */
  states(nowMs: number): HostState[];
  /** The memory that the hosts take, in lanes of 4 KB. */
  weight(): number;
  /** Whether the delay of a host is not over. */
  keepsDelays(nowMs: number): boolean;
}

/** The memory of a resting host, or of the numbers of a host, in lanes. */
const LIGHT = 0.1;

/** Makes it for the lanes of a crawler. */
export function createHostStates(deps: {
  readonly lanes: ReadonlyMap<string, Lane>;
  readonly tallies: HostTallies;
  readonly resting: Pick<RestingHosts, 'size' | 'keepsDelays'>;
}): HostStates {
  const { lanes, tallies, resting } = deps;
  return {
    busyDigits: (nowMs) => busyDigitsOf(lanes, nowMs),
    troubled: () => troubledOf(lanes),
    states: (nowMs) => statesOf(lanes, tallies, nowMs),
    weight: () => lanes.size + LIGHT * (resting.size + tallies.size),
    keepsDelays: (nowMs) =>
      resting.keepsDelays(nowMs) || lanes.values().some(({ gate }) => gate.nextStartMs > nowMs),
  };
}

/** What is known of the hosts that were crawled last, are being crawled or are in trouble. */
function statesOf(
  lanes: ReadonlyMap<string, Lane>,
  tallies: HostTallies,
  nowMs: number,
): HostState[] {
  const hosts = new Set(tallies.hosts());
  for (const { host, running, health } of lanes.values()) {
    if (running.size > 0 || health.trouble !== undefined) hosts.add(host);
  }
  return [...hosts].map((host) => {
    const lane = lanes.get(host);
    const numbers = { host, running: 0, ...tallies.of(host, nowMs) };
    if (lane === undefined) return numbers;
    const { gate, health, robotsDelayMs } = lane;
    return {
      ...numbers,
      running: lane.running.size,
      ...defined({
        nextStartMs: gate.nextStartMs > nowMs ? gate.nextStartMs : undefined,
        robotsDelayMs: robotsDelayMs || undefined,
        health: health.saved(),
      }),
    };
  });
}

function troubledOf(lanes: ReadonlyMap<string, Lane>): {
  readonly away: number;
  readonly slow: number;
} {
  const count = { away: 0, slow: 0 };
  for (const { health } of lanes.values()) {
    if (health.trouble !== undefined) count[health.trouble.kind] += 1;
  }
  return count;
}

function busyDigitsOf(lanes: ReadonlyMap<string, Lane>, nowMs: number): Set<string> {
  const busy = new Set<string>();
  for (const { running, gate, pace, robotsDelayMs, digit } of lanes.values()) {
    // Who gets a host waits for the delay of the settings, and may not know that of robots.txt.
    const isDelayed = pace.asksRobots && robotsDelayMs > pace.delayMs && gate.nextStartMs > nowMs;
    if (running.size > 0 || isDelayed) busy.add(digit);
  }
  return busy;
}
