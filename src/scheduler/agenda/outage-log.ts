import type { Logger } from '../../domain/logger.ts';

/** Logs a database's absence once when it starts and once a minute while it lasts, and its end. */
export interface OutageLog {
  /** Does what `use` does, and takes its failure for an absence and its success for the end of one. */
  watch<T>(use: () => Promise<T>): Promise<T>;
}

const repeatMs = 60_000;

/** Keeps quiet about an outage that is known: polling fails several times a second while it lasts. */
export function createOutageLog(logger: Logger): OutageLog {
  let since: number | undefined;
  let failedAt = Number.NEGATIVE_INFINITY;
  let loggedAt = Number.NEGATIVE_INFINITY;

  function failed(error: unknown): void {
    failedAt = performance.now();
    if (since !== undefined && failedAt - loggedAt < repeatMs) return;
    since ??= failedAt;
    loggedAt = failedAt;
    logger.error(
      { err: error, sinceMs: Math.round(failedAt - since) },
      'The scheduler cannot reach its database; tasks wait until it answers',
    );
  }

  function succeeded(): void {
    if (since === undefined) return;
    const afterMs = Math.round(performance.now() - since);
    logger.info({ afterMs }, 'The scheduler reaches its database again');
    since = undefined;
  }

  return {
    async watch(use) {
      const startedAt = performance.now();
      try {
        const value = await use();
        // What was asked before the last failure says nothing about now.
        if (startedAt > failedAt) succeeded();
        return value;
      } catch (error) {
        failed(error);
        throw error;
      }
    },
  };
}
