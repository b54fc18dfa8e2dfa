import type { DispatchTiming } from '../dispatcher/dispatcher-deps.ts';
import type { StoreTraits } from '../domain/store-traits.ts';
import type { TaskTiming } from '../service/tasks.ts';
import type { Config } from './config.ts';

/** The service's own times, which operators do not set. */
export interface AppTiming {
  readonly dispatch: DispatchTiming;
  readonly tasks: TaskTiming;
  /** Longest time that parsing one page may take. */
  readonly documentMs: number;
  /** How long a crawl thread may be silent before it is replaced. */
  readonly hangMs: number;
  /** Time between two looks at the files of the certificate. */
  readonly tlsCheckMs: number;
}

/**
 * The times behind three promises. Other processes take over the crawlers of a crashed one within
 * 10 s: its leases and shares lapse after 7 s, the locks of its runs soon after them. They take
 * over its other tasks within 30 s. A database that is unavailable for 4 s, or an event loop that
 * stands still for that long, costs nothing that is running: a lease has always 5.5 s left. A push
 * in one process starts in another within a second.
 */
export function appTiming(
  config: Pick<Config, 'probeIntervalSeconds' | 'shutdownSeconds'>,
  { costOfATurn }: Pick<StoreTraits, 'costOfATurn'>,
): AppTiming {
  const probeMs = (config.probeIntervalSeconds * 1_000) / 12;
  return {
    dispatch: {
      leaseMs: 7_000,
      renewMs: 1_500,
      turnMs: costOfATurn === 'sync' ? 2 : 150,
      pollMs: 500,
      // Each look at an idle crawler costs a round trip.
      idleReleaseMs: costOfATurn === 'sync' ? 2_000 : 500,
      drainMs: drainSeconds(config.shutdownSeconds) * 1_000,
    },
    tasks: {
      timeoutMs: 5_000,
      reconcileMs: 5_000,
      probeMs: probeMs === 0 ? 0 : Math.min(Math.max(probeMs, 500), 5_000),
      lockMs: 20_000,
      // A little longer than a lease, so that who takes the task over finds the lease lapsed.
      runLockMs: 7_300,
    },
    documentMs: 5_000,
    hangMs: 8_000,
    tlsCheckMs: 30_000,
  };
}

/**
 * The rest of the shutdown time is for writing what ended and for giving back what did not: with
 * hundreds of crawlers that took more than two seconds.
 */
function drainSeconds(shutdownSeconds: number): number {
  return Math.max(shutdownSeconds - Math.max(2, shutdownSeconds / 4), 0);
}
