import type { Lane } from './host-lane.ts';

/**
 * When a host may be asked next, and by how many crawls it is asked now. A lane has a gate of its own,
 * or one together with the lanes of the same host of other crawlers in its pace group.
 */
export interface HostGate {
  /** Crawls in flight. */
  running: number;
  /** Those of them, at a host with a delay, that have not told of their request. */
  unsent: number;
  /** No crawl may start before; in milliseconds of the service time. */
  nextStartMs: number;
  /** Called when the gate has changed, for each lane. */
  readonly members: Set<() => void>;
}

/** The gates of pace groups in this process. */
export interface HostGates {
  /** Gives a lane the gate of its host that all crawlers of a group have. */
  join(group: string, lane: Lane): void;
  /** Gives a lane a gate of its own again. */
  leave(group: string, lane: Lane): void;
}

/** Makes a gate for one lane. */
export function createHostGate(): HostGate {
  return { running: 0, unsent: 0, nextStartMs: 0, members: new Set() };
}

/** Makes the gates. */
export function createHostGates(): HostGates {
  const gates = new Map<string, HostGate>();
  const keyOf = (group: string, host: string): string => `${group} ${host}`;
  return {
    join(group, lane) {
      const { gate: own, host, onGate } = lane;
      const key = keyOf(group, host);
      const gate = gates.get(key) ?? createHostGate();
      gates.set(key, gate);
      gate.members.add(onGate);
      gate.running += own.running;
      gate.unsent += own.unsent;
      gate.nextStartMs = Math.max(gate.nextStartMs, own.nextStartMs);
      lane.gate = gate;
    },
    leave(group, lane) {
      const { gate, host, running, unsent, onGate } = lane;
      gate.members.delete(onGate);
      gate.running -= running.size;
      gate.unsent -= unsent.size;
      if (gate.members.size === 0) gates.delete(keyOf(group, host));
      const counts = { running: running.size, unsent: unsent.size };
      lane.gate = { ...createHostGate(), ...counts, nextStartMs: gate.nextStartMs };
    },
  };
}
