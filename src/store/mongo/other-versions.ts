import { setTimeout as sleep } from 'node:timers/promises';
import { type ServiceClock, wallNow } from '../../domain/clock.ts';
import { databaseInUse } from '../../domain/errors.ts';
import type { Logger } from '../../domain/logger.ts';
import { hasEnded } from '../../domain/os-process.ts';
import type { ProcessReport } from '../../domain/process-report.ts';
import type { ProcessStore } from '../process-store.ts';

const LEAST_SILENT_MS = 45_000;

/** The times of the wait, in milliseconds. */
const TIMES = {
  /** A process is gone when it has not reported for longer; see {@link longestSilence}. */
  silentMs: LEAST_SILENT_MS,
  /** How long the processes may take to end. */
  waitMs: 5 * 60_000,
  lookMs: 1_000,
  progressMs: 10_000,
};

/** Changes {@link TIMES}. */
export type WaitTimes = Partial<typeof TIMES>;

/**
 * For how many ms a process may be silent that takes `shutdownSeconds` to stop. It reports every 10 s, but no
 * more while it stops.
 */
export function longestSilence(shutdownSeconds: number): number {
  return Math.max(LEAST_SILENT_MS, shutdownSeconds * 1_000 + 25_000);
}

/**
 * Waits until no process of the program before works on the database: it would write what the new
 * schema has no place for. Throws `database_in_use` after five minutes. Ends early when
 * another process has brought the database to the new version.
 */
export async function untilUnused(deps: {
  readonly processes: Pick<ProcessStore, 'list'>;
  readonly clock: ServiceClock;
  readonly logger: Logger;
  /** Whether the database has the new version by now. */
  readonly isMigrated: () => Promise<boolean>;
  /** Ends the wait; the promise then rejects. */
  readonly signal?: AbortSignal | undefined;
  readonly times?: WaitTimes | undefined;
}): Promise<void> {
  const { silentMs, waitMs, lookMs, progressMs } = { ...TIMES, ...deps.times };
  const begunAt = performance.now();
  let saidAt = Number.NEGATIVE_INFINITY;
  for (;;) {
    const since = new Date(wallNow(deps.clock).getTime() - silentMs);
    const reports = await deps.processes.list(since);
    if (deps.signal?.aborted === true) throw new Error('stopped before the database was upgraded');
    const alive = reports.filter(({ osProcess = '' }) => !hasEnded(osProcess));
    // In this order, so that a process that reports the new version is not taken for an old one.
    if (alive.length === 0 || (await deps.isMigrated())) return;
    const now = performance.now();
    if (now - begunAt >= waitMs) throw databaseInUse(alive.map(nameOf).join(', '));
    if (now - saidAt >= progressMs) {
      saidAt = now;
      deps.logger.warn(
        { processes: alive.map(nameOf) },
        'the database is upgraded when the processes of the version before have ended: stop them',
      );
    }
    await sleep(lookMs);
  }
}

const nameOf = ({ processId, version }: ProcessReport): string => `${processId} (${version})`;
