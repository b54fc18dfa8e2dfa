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
