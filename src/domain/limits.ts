import { invalidField } from './errors.ts';

/** Most items of one batch push. */
export const MAX_BATCH_ITEMS = 1_000;
/** Most `rid`s of one bulk storage call. */
export const MAX_BULK_RIDS = 100;
/** Longest `queue_timeout`, in minutes. */
export const MAX_QUEUE_TIMEOUT_MINUTES = 10_080;
/** Longest `delay`, in seconds: 30 days. */
export const MAX_DELAY_SECONDS = 2_592_000;
/** Largest `max_age`, in seconds: 30 days. */
export const MAX_AGE_SECONDS = 2_592_000;
/** Longest `unique_for`, in seconds: 30 days. */
export const MAX_UNIQUE_SECONDS = 2_592_000;

/** Returns `value`. Throws `invalid` naming `field` unless it is a whole number in the range. */
export function integerInRange(field: string, value: number, min: number, max: number): number {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw invalidField(field, `${field} must be a whole number from ${min} to ${max}.`);
  }
  return value;
}

/**
 * Parses a day, `YYYY-MM-DD`. Undefined for an empty text; throws `invalid` naming `field` for
 * anything else.
 */
export function parseDay(field: string, text: string): string | undefined {
  if (text === '') return undefined;
  const moment = /^\d{4}-\d{2}-\d{2}$/.test(text) ? new Date(`${text}T00:00:00Z`) : undefined;
  // `Date` takes 02-30 for a day in March.
  if (
    moment === undefined ||
    Number.isNaN(moment.getTime()) ||
    !moment.toISOString().startsWith(text)
  ) {
    const isForm = /^\d{4}-\d{2}-\d{2}$/.test(text);
    throw invalidField(
      field,
      isForm
        ? `${field}: there is no day ${text}.`
        : `${field} must be a date of the form YYYY-MM-DD.`,
    );
  }
  return text;
}
