import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from './durations.ts';

/** First wait of a crawl's retries. */
const FIRST_WAIT_MS = 5 * SECOND_MS;
/** The wait grows by this factor with each retry. */
const GROWTH = 1.5;
const LEAST_WAIT_MS = SECOND_MS;

/** A crawl that failed for a transient reason. */
export interface CrawlRetryInput {
  /** Retries made so far, 0 after the first try. */
  readonly retry: number;
  /** When the first crawl started. */
  readonly firstTriedAt: Date;
  readonly now: Date;
  /** Most retries. */
  readonly maxRetries: number;
  /** No retry is due later than this after the first attempt. */
  readonly windowHours: number;
  /** What the target asked for (`Retry-After`). */
  readonly retryAfterMs?: number | undefined;
  /** In [0, 1), as `Math.random` gives. */
  readonly random: number;
}

/**
 * When a failed crawl is tried again. Undefined when its retries or its window are used up.
 *
 * The wait starts at five seconds and grows by half each time, but is never longer than the
 * remaining window divided by the remaining retries. This compensates for the duration of the
 * crawls: the default of 110 retries fits into 48 hours even when each crawl takes its longest
 * time. About fifteen retries come within the first hour, the others about every half hour. Each
 * wait is shortened at random by up to a quarter, so that URLs that failed together are not retried
 * together. `Retry-After` makes a wait longer, by what it asks for and up to a tenth more, but not
 * beyond the end of the window.
 */
export function nextCrawlRetry(input: CrawlRetryInput): Date | undefined {
  const { retry, maxRetries, retryAfterMs = 0, random } = input;
  const now = input.now.getTime();
  const windowEnd = input.firstTriedAt.getTime() + input.windowHours * HOUR_MS;
  const leftMs = windowEnd - now;
  const retriesLeft = maxRetries - retry;
  if (retriesLeft <= 0 || leftMs < LEAST_WAIT_MS) return undefined;

  // The exponent is limited, so that the power is finite for any number of retries.
  const growing = FIRST_WAIT_MS * GROWTH ** Math.min(retry, 100);
  const wait = Math.min(growing, leftMs / retriesLeft) * (1 - random / 4);
  const asked = retryAfterMs > 0 ? retryAfterMs * (1 + random / 10) : 0;
  const waitMs = Math.min(Math.max(wait, asked, LEAST_WAIT_MS), leftMs);
  return new Date(now + Math.round(waitMs));
}

const UNITS = { ms: 1, s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS } as const;
const MAX_WAITS = 100;
const MAX_WAIT_MS = 30 * DAY_MS;

/**
 * Parses the waits between the attempts of one delivery, separated by commas: `5s,1m,2h`, with the
 * units ms, s, m, h and d. Returns milliseconds. Throws an Error that says what is allowed for an
 * empty list, for more than 100 waits, and for a wait of more than 30 days.
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
    const waitMs = Math.round(Number(match[1]) * UNITS[unit]);
    if (waitMs > MAX_WAIT_MS) throw new Error(`a wait must be at most 30d, not "${part.trim()}"`);
    return waitMs;
  });
  if (waits.length > MAX_WAITS) throw new Error(`must be at most ${MAX_WAITS} waits`);
  return waits;
}

/**
 * When a failed delivery is attempted again. `attempt` counts the attempts so far (1 after the
 * first), and `schedule` is a result of {@link parseRetrySchedule}. The wait varies at random by a
 * tenth (`random` in [0, 1)), so that deliveries that failed together are not attempted together.
 * Undefined when the schedule is used up.
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
