import type { Allowance } from '../domain/allowance.ts';

export interface RateStore {
  /**
   * Takes `count` units from the token's allowance of `perSecond` (a bucket that holds the units
   * of one second), shared by all processes. Grants fewer if fewer are left; `retryAfterMs` is the
   * time until the next unit.
   */
  take(
    key: string,
    count: number,
    perSecond: number,
    now: Date,
  ): Promise<{ readonly granted: number; readonly retryAfterMs: number }>;
  /**
   * Takes all of `count` units or none from an allowance that starts full. `left` is what it holds
   * then. `retryAfterMs` is the time until it holds `count` units, or one more if `count` is 0.
   * Its refill must not take longer than an hour. The embedded store forgets allowances at a
   * restart.
   */
  takeWhole(
    key: string,
    count: number,
    allowance: Allowance,
    now: Date,
  ): Promise<{
    readonly granted: boolean;
    readonly left: number;
    readonly retryAfterMs: number;
  }>;
}
