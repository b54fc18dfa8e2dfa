import { defined } from '../domain/defined.ts';
import type { HostState } from '../domain/host-state.ts';
import type { Lane } from './host-lane.ts';
import type { HostTallies } from './host-tallies.ts';

/** What is known of the hosts that were crawled last, are being crawled or are in trouble. */
export function statesOf(
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
