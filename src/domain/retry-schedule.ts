import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from './durations.ts';

/** First wait of a crawl's retries. */
const FIRST_WAIT_MS = 5 * SECOND_MS;
/** Each quick retry waits this much longer than the one before. */
const GROWTH = 1.5;
const LEAST_WAIT_MS = SECOND_MS;

/** What decides when a crawl that failed for a transient reason is tried again. */
export interface CrawlRetryInput {
  /** Retries made so far, 0 after the first try. */
  readonly retry: number;
  /** When the first crawl started. */
  readonly firstTriedAt: Date;
  readonly now: Date;
  /** Most retries. */
  readonly maxRetries: number;
  /** No retry is due later than this after the first try. */
  readonly windowHours: number;
  /** The target's own wish (`Retry-After`). */
  readonly retryAfterMs?: number | undefined;
  /** In [0, 1), as `Math.random` gives. */
  readonly random: number;
}

/**
 * When a failed crawl is tried again; undefined when it is given up, because its retries or its
 * window are used up.
 *
 * The wait grows by half each time from five seconds on, but never above an equal share of what is
 * left of the window for each retry that is left. So the time that crawls take is made up for: the
 * default 110 fit in 48 hours even when each crawl takes the longest it may. Some fifteen of them
 * come within about the first hour, the rest about every half hour. A wait is shortened by up to a
 * quarter at random, so that URLs that failed together do not come back together. `Retry-After`
 * makes it longer, up to the end of the window, and then with up to a tenth on top.
 */
export function nextCrawlRetry(input: CrawlRetryInput): { readonly dueAt: Date } | undefined {
  const { retry, maxRetries, retryAfterMs = 0, random } = input;
  const now = input.now.getTime();
  const windowEnd = input.firstTriedAt.getTime() + input.windowHours * HOUR_MS;
  const leftMs = windowEnd - now;
  const retriesLeft = maxRetries - retry;
  if (retriesLeft <= 0 || leftMs < LEAST_WAIT_MS) return undefined;

  // The exponent is bounded so that the power stays finite for any number of retries.
  const growing = FIRST_WAIT_MS * GROWTH ** Math.min(retry, 100);
  const wait = Math.min(growing, leftMs / retriesLeft) * (1 - random / 4);
  const asked = retryAfterMs > 0 ? retryAfterMs * (1 + random / 10) : 0;
  const waitMs = Math.min(Math.max(wait, asked, LEAST_WAIT_MS), leftMs);
  return { dueAt: new Date(now + Math.round(waitMs)) };
}

const UNITS = { ms: 1, s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS } as const;
const MAX_WAITS = 100;
const MAX_WAIT_MS = 30 * DAY_MS;

/**
 * Reads the waits between the attempts of one delivery, separated by commas: `5s,1m,2h`, with the
 * units ms, s, m, h and d; in milliseconds. Throws an Error that says what is allowed for an empty
 * list, more than 100 waits, or one longer than 30 days.
 */
export function parseRetrySchedule(text: string): readonly number[] {
  const waits = text.split(',').map((part) => {
    const match = /^(\d{1,10}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(part.trim());
    const unit = match?.[2] as keyof typeof UNITS | undefined;
    if (match === null || unit === undefined) {
      throw new Error(
        `must be waits such as 5s,1m,2h,1d separated by commas, not "${part.trim()}"`,
      );
    }
    return Math.round(Number(match[1]) * UNITS[unit]);
  });
  if (waits.length > MAX_WAITS) throw new Error(`must be at most ${MAX_WAITS} waits`);
  if (waits.some((waitMs) => waitMs > MAX_WAIT_MS)) throw new Error('a wait must be at most 30d');
  return waits;
}

/**
 * When a delivery that failed is attempted again: `attempt` counts those made (1 after the first)
 * and `schedule` is what {@link parseRetrySchedule} gave. A tenth more or less at random (`random`
 * in [0, 1)) sharesWithPeers deliveries that failed together. Undefined when the schedule is used
 * up.
 */
export function nextDelivery(
  schedule: readonly number[],
  attempt: number,
  now: Date,
  random: number,
): Date | undefined {
  const waitMs = schedule[attempt - 1];
  if (waitMs === undefined) return undefined;
  return new Date(now.getTime() + Math.round(waitMs * (0.9 + random / 5)));
}
