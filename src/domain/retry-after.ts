import { DAY_MS } from './durations.ts';

/**
 * Milliseconds a `Retry-After` asks to wait (seconds, or a date), at most a day; undefined when it
 * says nothing usable.
 */
export function parseRetryAfter(value: string | undefined, now: Date): number | undefined {
  const text = value?.trim() ?? '';
  const ms = /^\d{1,12}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now.getTime();
  // Date.parse takes bare numbers and much else for dates; HTTP's begin with a weekday.
  if (!/^(?:\d+$|[A-Za-z]{3})/.test(text) || Number.isNaN(ms)) return undefined;
  return Math.min(Math.max(ms, 0), DAY_MS);
}
