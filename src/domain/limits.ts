import { invalidField } from './errors.ts';

/** Most items of one batch push. */
export const MAX_BATCH_ITEMS = 1_000;
/** Most `rid`s of one bulk storage call (spec, "Limits"). */
export const MAX_BULK_RIDS = 100;
/** Longest `queue_timeout`, in minutes (spec, "Limits"). */
export const MAX_QUEUE_TIMEOUT_MINUTES = 10_080;

/** `value` when it is a whole number in range; throws `invalid` naming `field` otherwise. */
export function integerInRange(field: string, value: number, min: number, max: number): number {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw invalidField(field, `${field} must be a whole number from ${min} to ${max}.`);
  }
  return value;
}

/**
 * A day as `YYYY-MM-DD`; undefined when empty; throws `invalid` naming `field` when it is no date.
 */
export function parseDay(field: string, text: string): string | undefined {
  if (text === '') return undefined;
  const moment = /^\d{4}-\d{2}-\d{2}$/.test(text) ? new Date(`${text}T00:00:00Z`) : undefined;
  // A day such as 02-30 parses to another one.
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
