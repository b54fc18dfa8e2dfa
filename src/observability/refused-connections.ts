import { MINUTE_MS } from '../domain/durations.ts';
import type { Logger } from '../domain/logger.ts';
import type { RefusedConnection } from '../net/failure-reports.ts';

/** Most lines of one account a minute, so that an account with many does not hide another. */
const MAX_LINES_PER_ACCOUNT = 5;
/** Most lines of all accounts a minute. */
const MAX_LINES = 50;

/**
 * Makes the callback for connections that the address guard refused. It counts each one, and logs
 * the first few of a minute with account, crawler and host, never with a path.
 */
export function createRefusedConnections(deps: {
  readonly logger: Logger;
  readonly count: (refusal: RefusedConnection['refusal']) => void;
}): (refused: RefusedConnection) => void {
  const byAccount = new Map<string, number>();
  let minuteEndsAt = 0;
  let lines = 0;
  let omitted = 0;

  return ({ hostname, port, refusal, claimant }) => {
    deps.count(refusal);
    const now = performance.now();
    if (now >= minuteEndsAt) {
      if (omitted > 0) deps.logger.warn({ omitted }, 'more connections were refused');
      byAccount.clear();
      minuteEndsAt = now + MINUTE_MS;
      lines = omitted = 0;
    }
    const account = claimant?.accountId ?? '';
    const own = (byAccount.get(account) ?? 0) + 1;
    byAccount.set(account, own);
    if (own > MAX_LINES_PER_ACCOUNT || lines >= MAX_LINES) {
      omitted += 1;
      return;
    }
    lines += 1;
    const { crawlerId } = claimant ?? {};
    deps.logger.warn(
      { account, crawler: crawlerId ?? '', host: hostname.slice(0, 253), port, refusal },
      'a connection was refused for where it led',
    );
  };
}
