import { type Timestamp, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { usageError } from './cli-error.ts';

/** The time that an option names. Throws a usage error for any other text. */
export function toTimestamp(option: string, text: string): Timestamp {
  const moment = new Date(text);
  if (Number.isNaN(moment.getTime())) throw usageError(`${option} must be a time, not ${text}`);
  return timestampFromDate(moment);
}
