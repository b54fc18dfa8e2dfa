import type { Logger } from '../../domain/logger.ts';

/**
 * Logs an outage of the database when it starts, once a minute while it lasts, and when it ends.
 * A rejection starts or continues an outage, a success ends it. A database without room or without a
 * majority still answers reads, so a read ends an outage of writes only when none has failed for a while.
 */
export interface OutageLog {
  /** Runs `use`, which reads from the database. */
  read<T>(use: () => Promise<T>): Promise<T>;
  /** Runs `use`, which writes to the database. */
  write<T>(use: () => Promise<T>): Promise<T>;
}

const REPEAT_MS = 60_000;
/** Longer than a write waits for a majority: a process without work does not write. */
const NO_WRITE_FAILED_MS = 15_000;

/** Makes a log that is quiet during a known outage: polls fail several times a second then. */
export function createOutageLog(logger: Logger): OutageLog {
  let since: number | undefined;
  let writeFailedAt = Number.NEGATIVE_INFINITY;
  let failedAt = Number.NEGATIVE_INFINITY;
  let loggedAt = Number.NEGATIVE_INFINITY;

  function failed(error: unknown, writes: boolean): void {
    failedAt = performance.now();
    if (writes) writeFailedAt = failedAt;
    if (since !== undefined && failedAt - loggedAt < REPEAT_MS) return;
    since ??= failedAt;
    loggedAt = failedAt;
    logger.error(
      { err: error, sinceMs: Math.round(failedAt - since) },
      'the scheduler cannot reach its database; tasks wait until it answers',
    );
  }

  function succeeded(startedAt: number, writes: boolean): void {
    // The answer to a call from before the last failure does not end the outage.
    if (since === undefined || startedAt <= failedAt) return;
    if (!writes && startedAt < writeFailedAt + NO_WRITE_FAILED_MS) return;
    const afterMs = Math.round(performance.now() - since);
    logger.info({ afterMs }, 'the scheduler reaches its database again');
    since = undefined;
  }

  async function watch<T>(use: () => Promise<T>, writes: boolean): Promise<T> {
    const startedAt = performance.now();
    try {
      const value = await use();
      succeeded(startedAt, writes);
      return value;
    } catch (error) {
      failed(error, writes);
      throw error;
    }
  }

  return {
    read: (use) => watch(use, false),
    write: (use) => watch(use, true),
  };
}
