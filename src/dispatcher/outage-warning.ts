import type { Logger } from '../domain/logger.ts';

/** Warns that the database did not answer a turn of a crawler. */
export type OutageWarning = (error: unknown, crawler: string) => void;

/** All runs of a process meet an outage within this time. */
const REPEAT_MS = 60_000;

/**
 * Makes the warning of one process. An outage of the database fails the turns of all its crawlers, so
 * one line a minute warns, with one of them, and the others are for `LOG_LEVEL=debug`.
 */
export function createOutageWarning(logger: Logger): OutageWarning {
  let warnedAt = Number.NEGATIVE_INFINITY;
  return (error, crawler) => {
    const text = 'database unavailable, retrying';
    if (performance.now() - warnedAt < REPEAT_MS) {
      logger.debug({ err: error, crawler }, text);
      return;
    }
    warnedAt = performance.now();
    logger.warn({ err: error, crawler }, text);
  };
}
