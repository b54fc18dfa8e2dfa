import type { Timestamp } from '@bufbuild/protobuf/wkt';

const RFC_3339 = /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)$/;

/** What public clients expect in `stored_at` instead of the letter Z. */
export const UTC_OFFSET = '+00:00';

/** Parses RFC 3339 text to the fields of a Timestamp; undefined when it is invalid. */
export function parseTimestamp(
  text: string,
): { readonly seconds: bigint; readonly nanos: number } | undefined {
  const [, day, time, fraction = '', zone = ''] = RFC_3339.exec(text) ?? [];
  if (day === undefined) return undefined;
  const milliseconds = Date.parse(`${day}T${time}${zone.toUpperCase()}`);
  // Date.parse reads 02-30 as another day.
  const isDay = new Date(`${day}T00:00:00Z`).getUTCDate() === Number(day.slice(8));
  if (Number.isNaN(milliseconds) || !isDay) return undefined;
  return { seconds: BigInt(milliseconds / 1_000), nanos: Number(fraction.padEnd(9, '0')) };
}

/** RFC 3339 in UTC with 0, 3, 6 or 9 digits of a second. */
export function formatTimestamp(timestamp: Partial<Timestamp>): string {
  const seconds = Number(timestamp.seconds ?? 0n);
  const nanos = timestamp.nanos ?? 0;
  const whole = new Date(seconds * 1_000).toISOString().slice(0, -5);
  if (nanos === 0) return `${whole}Z`;
  const digits = String(nanos).padStart(9, '0');
  return `${whole}.${digits.replace(/(?:000){1,2}$/, '')}Z`;
}

/** As {@link formatTimestamp}, but with the offset that public clients expect instead of the Z. */
export function formatWithOffset(timestamp: Partial<Timestamp>): string {
  return formatTimestamp(timestamp).replace('Z', UTC_OFFSET);
}
