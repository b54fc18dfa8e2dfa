/** A bucket of `capacity` units, which is full again `refillMs` after it was empty. */
export interface Allowance {
  readonly capacity: number;
  readonly refillMs: number;
}

/** How long it is until a bucket that holds `left` units holds `count`, or one when that is 0. */
export function refillWaitMs(
  { capacity, refillMs }: Allowance,
  left: number,
  count: number,
): number {
  const missing = Math.min(Math.max(count, 1), capacity) - left;
  return Math.max(Math.ceil((missing * refillMs) / capacity), 0);
}
