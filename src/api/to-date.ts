import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import { invalidField } from '../domain/errors.ts';

/** Converts a time of a request; undefined stays undefined. Throws `invalid` naming the field when no calendar has it. */
export function toDate<Time extends Timestamp | undefined>(
  field: string,
  time: Time,
): Date | Extract<Time, undefined> {
  if (time === undefined) return time as Extract<Time, undefined>;
  const date = timestampDate(time);
  if (Number.isNaN(date.getTime())) {
    throw invalidField(field, `${field} must be a time of the years 1 to 9999.`);
  }
  return date;
}

/**
 * Converts a range of times; both ends are optional. Throws `invalid` as {@link toDate} does, and for a
 * range that ends before it begins. `path` leads to the fields, such as `filter.`.
 */
export function toRange(
  range: { readonly from?: Timestamp | undefined; readonly to?: Timestamp | undefined },
  path = '',
): { readonly from: Date | undefined; readonly to: Date | undefined } {
  const from = toDate(`${path}from`, range.from);
  const to = toDate(`${path}to`, range.to);
  if (from !== undefined && to !== undefined && from > to) {
    throw invalidField(`${path}from`, `${path}from must not be later than ${path}to.`);
  }
  return { from, to };
}
