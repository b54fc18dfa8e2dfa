import { serviceNow } from '../../format/service-clock.ts';

const DAY_MS = 86_400_000;

/** A day that many days ago, `YYYY-MM-DD`, in UTC as statistics are kept. */
export function dayBefore(days: number): string {
  return new Date(serviceNow() - days * DAY_MS).toISOString().slice(0, 10);
}
