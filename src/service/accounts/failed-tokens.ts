import { addressPrefix } from '../../domain/address-prefix.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Logger } from '../../domain/logger.ts';
import { createLruMap } from '../../domain/lru-map.ts';

/** Counts the wrong tokens of each address, so that guessing is slow. */
export interface FailedTokens {
  /**
   * How long the address has to wait before it may try another unknown token, in milliseconds; 0
   * when it may now.
   */
  retryAfterMs(remote: string): number;
  /** Counts a wrong token. */
  note(remote: string): void;
}

/** Wrong tokens that an address may send at once, and how fast the allowance refills. */
const BURST = 100;
const PER_SECOND = 1;
/** Addresses that are remembered; the oldest are evicted. */
const MAX_ADDRESSES = 10_000;
/** At most one log line in this time, for all addresses together. */
const LOG_MS = 60_000;

/**
 * Makes the counter. `onFailure` is called for each wrong token, for the metrics; tokens are never
 * logged.
 */
export function createFailedTokens(deps: {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly onFailure?: () => void;
}): FailedTokens {
  /** Failures that count now, by address prefix. */
  const failures = createLruMap<string, { count: number; at: number }>({
    maxEntries: MAX_ADDRESSES,
  });
  let sinceLine = 0;
  let lineAt = Number.NEGATIVE_INFINITY;

  function currentCount(prefix: string, now: number): number {
    const known = failures.get(prefix);
    if (known === undefined) return 0;
    return Math.max(0, known.count - Math.max(0, (now - known.at) / 1_000) * PER_SECOND);
  }

  return {
    retryAfterMs(remote) {
      if (remote === '') return 0;
      const over = currentCount(addressPrefix(remote), deps.clock.now().getTime()) - BURST + 1;
      return over <= 0 ? 0 : Math.ceil((over / PER_SECOND) * 1_000);
    },
    note(remote) {
      const now = deps.clock.now().getTime();
      deps.onFailure?.();
      sinceLine += 1;
      if (now - lineAt >= LOG_MS) {
        deps.logger.warn({ remote, failures: sinceLine }, 'access tokens were refused');
        lineAt = now;
        sinceLine = 0;
      }
      if (remote === '') return;
      const prefix = addressPrefix(remote);
      const count = currentCount(prefix, now) + 1;
      failures.set(prefix, { count, at: now });
    },
  };
}
