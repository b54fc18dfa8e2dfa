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
  /** Who has set that, and the delay that is part of it; undefined if nobody here has. */
  held: { readonly by: GateMember; readonly spacingMs: number } | undefined;
  /** The lanes, the one whose last start is the longest ago first; empty for one lane alone. */
  readonly members: Set<GateMember>;
}

/** A lane at a gate that it has together with others. */
export interface GateMember {
  /** Called when another one has changed the gate. */
  readonly changed: () => void;
  /** Starts a crawl, if the lane has a job and may. */
  readonly start: (nowMs: number) => void;
}

/** The gates of pace groups in this process. */
export interface HostGates {
  /** Gives a lane the gate of its host that all crawlers of a group have. */
  join(group: string, lane: Lane): void;
  /** Gives a lane a gate of its own again. */
  leave(group: string, lane: Lane): void;
  /**
   * Lets the other lanes of a gate start crawls whose last start is longer ago than that of `lane`.
   * Returns whether one did.
   */
  letOthersFirst(lane: Lane, nowMs: number): boolean;
}

/** Puts a lane that has started a crawl behind the others of its gate. */
export function putLast({ gate: { members }, member }: Lane): void {
  if (members.delete(member)) members.add(member);
}

/** Makes a gate for one lane. */
export function createHostGate(): HostGate {
  return { running: 0, unsent: 0, nextStartMs: 0, held: undefined, members: new Set() };
}

/** Makes the gates. */
export function createHostGates(): HostGates {
  const gates = new Map<string, HostGate>();
  /** Whether a lane is being let first: what it starts lets no other one first. */
  let isLetting = false;
  const keyOf = (group: string, host: string): string => `${group} ${host}`;
  return {
    join(group, lane) {
      const { gate: own, host, member } = lane;
      const key = keyOf(group, host);
      const gate = gates.get(key) ?? createHostGate();
      gates.set(key, gate);
      gate.members.add(member);
      gate.running += own.running;
      gate.unsent += own.unsent;
      if (own.nextStartMs > gate.nextStartMs) {
        gate.nextStartMs = own.nextStartMs;
        gate.held = own.held;
      }
      lane.gate = gate;
    },
    leave(group, lane) {
      const { gate, host, running, unsent, member } = lane;
      gate.members.delete(member);
      gate.running -= running.size;
      gate.unsent -= unsent.size;
      if (gate.members.size === 0) gates.delete(keyOf(group, host));
      const counts = { running: running.size, unsent: unsent.size };
      const held = gate.held?.by === member ? gate.held : undefined;
      lane.gate = { ...createHostGate(), ...counts, nextStartMs: gate.nextStartMs, held };
    },
    letOthersFirst({ gate, member }, nowMs) {
      if (isLetting) return false;
      const { running } = gate;
      isLetting = true;
      try {
        for (const other of gate.members) {
          if (other === member) break;
          other.start(nowMs);
        }
      } finally {
        isLetting = false;
      }
      return gate.running > running;
    },
  };
}
