import { DomainError } from '../domain/errors.ts';
import type { Claimant, FairPool, Grant } from './fair-pool.ts';

/**
 * Waits at most `waitMs` for a grant. Rejects with `unavailable` (reason `busy`) after that time,
 * and as `acquire` does. Starts no timer when the grant is possible at once.
 */
export async function acquireWithin(
  pool: FairPool,
  claimant: Claimant,
  amount: number,
  waitMs: number,
): Promise<Grant> {
  const free = pool.tryAcquire(claimant, amount);
  if (free !== undefined) return free;
  const controller = new AbortController();
  const timer = setTimeout(() => {
    controller.abort(
      new DomainError('unavailable', 'busy', 'The service is busy. Try again.', {
        retryAfterMs: 2_000,
      }),
    );
  }, waitMs);
  try {
    return await pool.acquire(claimant, amount, controller.signal);
  } finally {
    clearTimeout(timer);
  }
}
