/** A token bucket of `capacity` units that fills up within `refillMs`. */
export interface Allowance {
  readonly capacity: number;
  readonly refillMs: number;
}

/**
 * Milliseconds until a bucket that holds `left` units holds `count`, or one unit when `count` is 0.
 */
export function refillWaitMs(
  { capacity, refillMs }: Allowance,
  left: number,
  count: number,
): number {
  const missing = Math.min(Math.max(count, 1), capacity) - left;
  return Math.max(Math.ceil((missing * refillMs) / capacity), 0);
}
