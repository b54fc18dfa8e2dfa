/**
 * How many crawls of one account may be in flight in a thread that others use as well. Quick
 * sites answer all of them at the same moment, and what is answered at once is one iteration of
 * the event loop, which everybody's crawl passes several times. So the window is halved after each
 * long iteration and opens again with time. For sites that answer quickly it stays as small as
 * keeps the iterations short, for slow ones it opens until it bounds nothing.
 */
export interface StartWindow {
  /** Reports that an account has something to start. */
  seen(accountId: string): void;
  /** Reports that several accounts have crawls in flight. */
  sawSeveral(): void;
  /** Whether others use the thread as well, or did within a second. */
  isShared(): boolean;
  /** Whether an account that has `inFlight` crawls in flight may start another. */
  isOpen(inFlight: number): boolean;
  /** Reports an iteration of the event loop in which crawls ended, `most` of one account in flight. */
  passed(iterationMs: number, most: number): void;
}

/** Crawls that an account may always have in flight: what tenants with little to crawl need. */
const ALWAYS_IN_FLIGHT = 4;
/** An iteration of this length is too long at any time. */
const LONG_ITERATION_MS = 1;
/** An iteration of this length, two short pages, is too long where one follows the other. */
const BUSY_LONG_ITERATION_MS = 0.25;
/**
 * Iterations follow one another while they take more than this share of the time. Their sum, less
 * this share of the time that passed, is then above `BUSY_LEVEL_MS`, and at most
 * `HIGHEST_LEVEL_MS`.
 */
const BUSY_SHARE = 0.2;
const BUSY_LEVEL_MS = 2;
const HIGHEST_LEVEL_MS = 10;
/** Crawls that the window opens by in a millisecond. */
const OPENS_PER_MS = 1;
/** Without a start or an end of another account's crawl for this long, a thread is one account's own. */
const SHARED_MS = 1_000;

/** Makes a window that is open. `now` is in milliseconds. */
export function createStartWindow(now: () => number): StartWindow {
  let lastAccount: string | undefined;
  let sharedUntil = Number.NEGATIVE_INFINITY;
  let size = Number.POSITIVE_INFINITY;
  let sizedAt = 0;
  let levelMs = 0;
  let levelAt = 0;

  function current(): number {
    return size + (now() - sizedAt) * OPENS_PER_MS;
  }

  const isShared = (): boolean => now() < sharedUntil;

  return {
    seen(accountId) {
      if (accountId === lastAccount) return;
      if (lastAccount !== undefined) sharedUntil = now() + SHARED_MS;
      lastAccount = accountId;
    },
    sawSeveral() {
      sharedUntil = now() + SHARED_MS;
    },
    isShared,
    isOpen: (inFlight) => inFlight < ALWAYS_IN_FLIGHT || !isShared() || inFlight < current(),
    passed(iterationMs, most) {
      const drained = levelMs - (now() - levelAt) * BUSY_SHARE;
      levelMs = Math.min(HIGHEST_LEVEL_MS, Math.max(0, drained) + iterationMs);
      levelAt = now();
      if (iterationMs <= (levelMs > BUSY_LEVEL_MS ? BUSY_LONG_ITERATION_MS : LONG_ITERATION_MS))
        return;
      size = Math.max(ALWAYS_IN_FLIGHT, Math.floor(Math.min(current(), most) / 2));
      sizedAt = now();
    },
  };
}
