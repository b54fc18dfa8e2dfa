import { DAY_MS } from './durations.ts';

/** The longest time for which one `Retry-After` holds up a whole host or callback URL. */
export const LONGEST_RETRY_AFTER_MS = 15 * 60_000;

/**
 * Milliseconds that a `Retry-After` (seconds, or a date) asks to wait, at most a day. Undefined for
 * an unusable value.
 */
export function parseRetryAfter(value: string | undefined, now: Date): number | undefined {
  const text = value?.trim() ?? '';
  const ms = /^\d{1,12}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now.getTime();
  // `Date.parse` accepts numbers and much else; dates of HTTP start with a weekday.
  if (!/^(?:\d+$|[A-Za-z]{3})/.test(text) || Number.isNaN(ms)) return undefined;
  return Math.min(Math.max(ms, 0), DAY_MS);
}
