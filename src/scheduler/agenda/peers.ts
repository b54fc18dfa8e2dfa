import type { Clock } from '../../domain/clock.ts';
import type { Presence } from './task-documents.ts';

/** The other processes that run tasks. */
export interface Peers {
  /** How many, as of the last heartbeat. */
  readonly count: number;
  /** Reports this process now and from time to time; resolves after the first report. */
  start(): Promise<void>;
  /** Reports that this process runs no tasks any more. */
  leave(): Promise<void>;
}

const HEARTBEAT_MS = 4_000;

/** Makes the view of one process. While the database is unavailable, the last count stays. */
export function createPeers(
  presence: Presence | undefined,
  processName: string,
  clock: Clock,
): Peers {
  let count = 0;
  let timer: NodeJS.Timeout | undefined;

  async function heartbeat(): Promise<void> {
    count = (await presence?.heartbeat(processName, clock.now()).catch(() => count)) ?? 0;
  }

  return {
    get count() {
      return count;
    },
    async start() {
      await heartbeat();
      timer ??= setInterval(() => void heartbeat(), HEARTBEAT_MS).unref();
    },
    async leave() {
      if (timer === undefined) return;
      clearInterval(timer);
      await presence?.leave(processName).catch(() => undefined);
    },
  };
}
