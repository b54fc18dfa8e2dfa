import { type CrawlTimeCounts, percentile } from './crawl-time-buckets.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from './durations.ts';
import { type DayCounts, type DayField, type HistoryDay, toDay } from './stats.ts';

/** What is read of a crawler every {@link SAMPLE_MS}: the numbers of its day so far, and its queue. */
export interface Sample {
  /** A full minute, as the clock shows it. */
  readonly at: Date;
  /** The UTC day of the numbers, `YYYY-MM-DD`. */
  readonly day: string;
  readonly counts: DayCounts;
  /** URLs that wait or are to be retried. */
  readonly queued: number;
}

/** How often samples are taken. */
export const SAMPLE_MS = 30_000;

/** Of samples of this age, the last one of each step is kept; older ones than the last age, none. */
export const THINNING = [
  { ageMs: 90 * MINUTE_MS, stepMs: 10 * MINUTE_MS },
  { ageMs: 25 * HOUR_MS, stepMs: HOUR_MS },
] as const;

/** How long samples are kept. */
export const SAMPLES_KEPT_MS = 8 * DAY_MS;

/** The numbers of a day that samples have, and timelines show. */
export const timelineFields = [
  'pushed',
  'success',
  'failed',
  'retries',
  'deliveries',
  'deliveryFailures',
] as const satisfies readonly DayField[];

/** How far a timeline reaches back, and its resolution. */
export const TIMELINE_RANGES = {
  hour: { stepMs: MINUTE_MS, steps: 60 },
  day: { stepMs: 10 * MINUTE_MS, steps: 144 },
  week: { stepMs: HOUR_MS, steps: 168 },
  /** By UTC days, which {@link HistoryDay} has. */
  quarter: { stepMs: DAY_MS, steps: 90 },
} as const;

/** The name of a range. */
export type TimelineRange = keyof typeof TIMELINE_RANGES;

/** What happened in one step of a timeline. */
export interface TimelinePoint extends Readonly<Record<(typeof timelineFields)[number], number>> {
  /** When the step begins. */
  readonly at: Date;
  /** Nobody has counted, because the service did not run. */
  readonly missing: boolean;
  /** At the end of the step; undefined of days. */
  readonly queued: number | undefined;
  readonly medianMs: number | undefined;
  readonly p95Ms: number | undefined;
}

/** When the steps of a range begin, the present one last. */
export function timelineSteps(range: TimelineRange, now: Date): Date[] {
  const { stepMs, steps } = TIMELINE_RANGES[range];
  const last = Math.floor(now.getTime() / stepMs) * stepMs;
  return Array.from({ length: steps }, (_, at) => new Date(last - (steps - 1 - at) * stepMs));
}

/**
 * The timeline of a crawler from its samples, of which one may be earlier than the range. Samples are
 * taken only where something has changed; `taken` is when any were. Both oldest first.
 */
export function timelineOf(
  range: TimelineRange,
  now: Date,
  samples: readonly Sample[],
  taken: readonly Date[],
): TimelinePoint[] {
  const { stepMs } = TIMELINE_RANGES[range];
  let before: Sample | undefined;
  let next = 0;
  let nextTaken = 0;
  let lastTaken = Number.NEGATIVE_INFINITY;
  return timelineSteps(range, now).map((at) => {
    const end = at.getTime() + stepMs;
    let last = before;
    for (; ; next += 1) {
      const sample = samples[next];
      if (sample === undefined || sample.at.getTime() >= end) break;
      if (sample.at < at) before = sample;
      last = sample;
    }
    for (; (taken[nextTaken]?.getTime() ?? end) < end; nextTaken += 1) {
      lastTaken = taken[nextTaken]?.getTime() ?? lastTaken;
    }
    // Somewhat earlier, as a step may just have begun.
    const missing = lastTaken < at.getTime() - 2 * SAMPLE_MS;
    const point = pointOf(at, missing, addedSince(before, last), last?.queued ?? 0);
    before = last;
    return point;
  });
}

/** The timeline of a crawler by days. */
export function timelineOfDays(now: Date, days: readonly HistoryDay[]): TimelinePoint[] {
  const byDate = new Map(days.map((day) => [day.date, day]));
  return timelineSteps('quarter', now).map((at) =>
    pointOf(at, false, byDate.get(toDay(at)) ?? {}, undefined),
  );
}

function pointOf(
  at: Date,
  missing: boolean,
  counts: DayCounts,
  queued: number | undefined,
): TimelinePoint {
  const numbers = timelineFields.map((field) => [field, counts[field] ?? 0] as const);
  return {
    at,
    missing,
    ...(Object.fromEntries(numbers) as Record<(typeof timelineFields)[number], number>),
    queued: missing ? undefined : queued,
    medianMs: percentile(counts.times ?? {}, 0.5),
    p95Ms: percentile(counts.times ?? {}, 0.95),
  };
}

/** What the later of two samples has counted since the earlier one. */
function addedSince(before: Sample | undefined, last: Sample | undefined): DayCounts {
  if (last === undefined || last === before) return {};
  if (before?.day !== last.day) return last.counts;
  const added = timelineFields.map(
    (field) => [field, (last.counts[field] ?? 0) - (before.counts[field] ?? 0)] as const,
  );
  const times: Record<string, number> = {};
  for (const [bucket, count] of Object.entries(last.counts.times ?? {})) {
    times[bucket] = count - (before.counts.times?.[bucket] ?? 0);
  }
  return { ...Object.fromEntries(added), times: times satisfies CrawlTimeCounts };
}
