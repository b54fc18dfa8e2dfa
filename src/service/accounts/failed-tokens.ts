import { addressPrefix } from '../../domain/address-prefix.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Logger } from '../../domain/logger.ts';
import { createTokenBuckets } from './token-bucket.ts';

/** Counts the wrong tokens of each address, so that guessing is slow. */
export interface FailedTokens {
  /**
   * Counts a wrong token of an address, and returns 0. Returns the milliseconds until the address may
   * try another, without counting this one, when it has sent too many.
   */
  count(remote: string): number;
}

/** Wrong tokens that an address may send at once, and how fast the allowance refills. */
const BURST = 100;
const PER_SECOND = 1;
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
  const allowances = createTokenBuckets(deps.clock);
  let sinceLine = 0;
  let lineAt = Number.NEGATIVE_INFINITY;

  return {
    count(remote) {
      const retryAfterMs =
        remote === '' ? 0 : allowances.take(addressPrefix(remote), PER_SECOND, BURST);
      if (retryAfterMs > 0) return retryAfterMs;
      const now = deps.clock.now().getTime();
      deps.onFailure?.();
      sinceLine += 1;
      if (now - lineAt >= LOG_MS) {
        deps.logger.warn({ remote, failures: sinceLine }, 'access tokens were refused');
        lineAt = now;
        sinceLine = 0;
      }
      return 0;
    },
  };
}
