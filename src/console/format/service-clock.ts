import { signal } from '@preact/signals';

/** Clocks that differ by less are taken as equal: a reply takes time, and its date has whole seconds. */
const EQUAL_MS = 10_000;

/** How far the clock of the service is ahead of this computer's, in milliseconds. */
const aheadMs = signal(0);

/** Compares both clocks. `date` is the header of a reply that was asked for at `askedAt`. */
export function noteServiceDate(date: string | null, askedAt: number): void {
  const told = Date.parse(date ?? '');
  if (Number.isNaN(told)) return;
  const ahead = told - (askedAt + Date.now()) / 2;
  aheadMs.value = Math.abs(ahead) < EQUAL_MS ? 0 : Math.round(ahead);
}

/** The time in milliseconds since 1970 as the service has it, whatever this computer's clock says. */
export function serviceNow(): number {
  return Date.now() + aheadMs.value;
}
