import type { Logger } from '../../domain/logger.ts';

/**
 * Logs an outage of the database when it starts, once a minute while it lasts, and when it ends.
 */
export interface OutageLog {
  /** Runs `use`. A rejection starts or continues an outage, a success ends it. */
  watch<T>(use: () => Promise<T>): Promise<T>;
}

const REPEAT_MS = 60_000;

/** Makes a log that is quiet during a known outage: polls fail several times a second then. */
export function createOutageLog(logger: Logger): OutageLog {
  let since: number | undefined;
  let failedAt = Number.NEGATIVE_INFINITY;
  let loggedAt = Number.NEGATIVE_INFINITY;

  function failed(error: unknown): void {
    failedAt = performance.now();
    if (since !== undefined && failedAt - loggedAt < REPEAT_MS) return;
    since ??= failedAt;
    loggedAt = failedAt;
    logger.error(
      { err: error, sinceMs: Math.round(failedAt - since) },
      'the scheduler cannot reach its database; tasks wait until it answers',
    );
  }

  function succeeded(): void {
    if (since === undefined) return;
    const afterMs = Math.round(performance.now() - since);
    logger.info({ afterMs }, 'the scheduler reaches its database again');
    since = undefined;
  }

  return {
    async watch(use) {
      const startedAt = performance.now();
      try {
        const value = await use();
        // The answer to a call from before the last failure does not end the outage.
        if (startedAt > failedAt) succeeded();
        return value;
      } catch (error) {
        failed(error);
        throw error;
      }
    },
  };
}
