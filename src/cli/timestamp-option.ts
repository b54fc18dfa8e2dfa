import { type Timestamp, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { usageError } from './cli-error.ts';

/** The time that an option names. Throws a usage error for any other text. */
export function toTimestamp(option: string, text: string): Timestamp {
  const moment = new Date(text);
  if (Number.isNaN(moment.getTime())) throw usageError(`${option} must be a time, not ${text}`);
  return timestampFromDate(moment);
}

/** The times that options name, by their names without the dashes; absent ones stay absent. */
export function toTimestamps<Name extends string>(
  texts: Readonly<Record<Name, string | undefined>>,
): { readonly [Each in Name]?: Timestamp } {
  const given = Object.entries<string | undefined>(texts).flatMap(([name, text]) =>
    text === undefined ? [] : [[name, toTimestamp(`--${name}`, text)] as const],
  );
  return Object.fromEntries(given) as { [Each in Name]?: Timestamp };
}
