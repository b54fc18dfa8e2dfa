const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 });
/** One digit after the point, or two below ten: a step of 256 MiB makes 1.25 GiB, which is not 1.3. */
const fine = new Intl.NumberFormat(undefined, {
  maximumFractionDigits: 1,
  maximumSignificantDigits: 3,
  roundingPriority: 'morePrecision',
});

/** A count with its digits grouped. */
export function count(value: bigint | number): string {
  return whole.format(value);
}

/** A count in few characters: 9,999, but 12.3K. */
export function shortCount(value: bigint | number): string {
  return value < 10_000 ? count(value) : short.format(value);
}

/** A rate in one second. */
export function rate(perSecond: number): string {
  return `${perSecond >= 100 ? whole.format(perSecond) : fine.format(perSecond)}/s`;
}

/** A share in percent, with one digit where it is small. */
export function percent(part: number, all: number): string {
  if (all === 0) return '–';
  return `${fine.format((100 * part) / all)} %`;
}

/** Bytes in the largest fitting unit. */
export function bytes(value: bigint | number): string {
  let left = Number(value);
  for (const unit of ['B', 'KiB', 'MiB', 'GiB']) {
    if (left < 1024 || unit === 'GiB') return `${fine.format(left)} ${unit}`;
    left /= 1024;
  }
  return '';
}

/** A span of time. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${whole.format(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${fine.format(milliseconds / 1_000)} s`;
  if (milliseconds < 3_600_000) return `${fine.format(milliseconds / 60_000)} min`;
  if (milliseconds < 172_800_000) return `${fine.format(milliseconds / 3_600_000)} h`;
  return `${fine.format(milliseconds / 86_400_000)} days`;
}
