import type { Logger } from '../domain/logger.ts';

/** Logs a database's absence once at its start and once a minute after, and its return. */
export interface OutageLog {
  failed(error: unknown): void;
  succeeded(): void;
}

const repeatMs = 60_000;

/** Keeps quiet about an outage that is known: polling fails several times a second while it lasts. */
export function createOutageLog(logger: Logger): OutageLog {
  let since: number | undefined;
  let loggedAt = 0;
  return {
    failed(error) {
      const now = Date.now();
      if (since !== undefined && now - loggedAt < repeatMs) return;
      since ??= now;
      loggedAt = now;
      logger.error(
        { err: error, sinceMs: now - since },
        'The scheduler cannot reach its database; tasks wait until it answers',
      );
    },
    succeeded() {
      if (since === undefined) return;
      logger.info({ afterMs: Date.now() - since }, 'The scheduler reaches its database again');
      since = undefined;
    },
  };
}
