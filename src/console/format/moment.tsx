import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { signal } from '@preact/signals';
import { serviceNow } from './service-clock.ts';

const dated = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' });

/** Moves with the time, so that relative times stay right. */
const ticks = signal(0);
setInterval(() => {
  if (!document.hidden) ticks.value += 1;
}, 5_000);

const STEPS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
];

/** A moment relative to now, with local time and UTC on hover. */
export function Moment(props: {
  readonly at: Timestamp | undefined;
  readonly none?: string;
  /** Stands for a moment that has passed, of what is to come. */
  readonly past?: string;
}) {
  const { at, none = 'never', past } = props;
  if (at === undefined) return <span class="muted">{none}</span>;
  const date = timestampDate(at);
  // Read so that it is shown again with each tick.
  void ticks.value;
  const difference = date.getTime() - serviceNow();
  return (
    <time class="nowrap" dateTime={date.toISOString()} title={bothTimes(date)}>
      {past !== undefined && difference < 0 ? past : fromNow(difference)}
    </time>
  );
}

/** A moment in local time, with UTC on hover. */
export function LocalTime({ at }: { at: Timestamp | undefined }) {
  if (at === undefined) return <span class="muted">–</span>;
  const date = timestampDate(at);
  return (
    <time class="nowrap" dateTime={date.toISOString()} title={bothTimes(date)}>
      {dated.format(date)}
    </time>
  );
}

function bothTimes(date: Date): string {
  return `${dated.format(date)} here\n${date.toISOString().replace('T', ' ').slice(0, 19)} UTC`;
}

function fromNow(difference: number): string {
  if (Math.abs(difference) < 5_000) return 'now';
  for (const [unit, length] of STEPS) {
    if (Math.abs(difference) >= length) {
      return relative.format(Math.round(difference / length), unit);
    }
  }
  return 'now';
}
