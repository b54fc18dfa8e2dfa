import type { HeldUp } from '../domain/attention.ts';
import type { HostState } from '../domain/host-state.ts';

/** What a process knows of the hosts of one crawler. */
export interface HostReport {
  readonly crawlerId: string;
  readonly processId: string;
  readonly hosts: readonly HostState[];
  /** The host that has most of the queue and is not reached. */
  readonly heldUp?: HeldUp | undefined;
}

/** The waiting and retrying jobs of one host. */
export interface QueuedHost {
  readonly host: string;
  readonly queued: number;
  /** When the first of them falls, or fell, due. */
  readonly nextDueAt: Date;
}

/** Hosts of a crawler's queue. */
export interface QueuedHosts {
  /** The most queued first. */
  readonly hosts: readonly QueuedHost[];
  /** How many hosts have jobs. */
  readonly total: number;
}

export interface HostStore {
  /** Replaces what this process knew. Reports are forgotten a day after the last one. */
  save(reports: readonly HostReport[], now: Date): Promise<void>;
  /** What all processes know of the hosts of a crawler, the latest report first; without `heldUp`. */
  reports(crawlerId: string): Promise<HostReport[]>;
  /** The hosts of the queue with the most jobs. Reads the index of the whole queue. */
  longest(crawlerId: string, limit: number): Promise<QueuedHosts>;
  /** Removes up to `limit` waiting and retrying jobs of a host, and returns their number. */
  purge(crawlerId: string, host: string, limit: number, now: Date): Promise<number>;
}
