import type { Logger } from '../domain/logger.ts';
import type { RefusedConnection } from '../net/create-http-client.ts';

/** Lines of one account in a minute, so that one that tries much does not hide another. */
const LINES_PER_ACCOUNT = 5;
/** Of all accounts together. */
const LINES = 50;
const MINUTE_MS = 60_000;

/**
 * Makes the watch over connections that were refused for where they led: each is counted, the first few of a minute are logged with
 * the account, the crawler and the host, never with a path.
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
    if (own > LINES_PER_ACCOUNT || lines >= LINES) {
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
