import type { CrawlTimeCounts } from './crawl-time-buckets.ts';

/**
 * The numbers of one day at one crawler, each with the name it has on the wire. Stores keep them by
 * these names, so a name never changes its meaning.
 */
export const dayFields = [
  'pushed',
  /** Crawls that ended with `cb_status` 200. */
  'success',
  /** Crawls that ended otherwise, and jobs that waited longer than their `queue_timeout`. */
  'failed',
  /** Results that the callback URL acknowledged, once for each time that one was delivered. */
  'deliveries',
  'deliveryFailures',
  /** Billed crawls and billed delivery retries. */
  'billed',
  /** Crawls tried again. */
  'retries',
  /** Those of them that took the next rung of a ladder, because the host blocked the one before. */
  'climbs',
  /** Bytes of crawls through proxies. */
  'proxyBytes',
  /** Jobs that waited longer than their `queue_timeout`. */
  'timeouts',
  'deleted',
  'purged',
] as const;

/** The name of a number of a day. */
export type DayField = (typeof dayFields)[number];

/** The statistics of one crawler on one day. */
export interface HistoryDay extends Readonly<Record<DayField, number>> {
  /** `YYYY-MM-DD`, UTC. */
  readonly date: string;
  /** Ended crawls by `cb_status`. */
  readonly byCbStatus: Readonly<Record<string, number>>;
  /** Tries of crawls, by how long they took; absent where that was not counted yet. */
  readonly times?: CrawlTimeCounts;
}

/** The numbers of a day as stores keep them: an absent one is zero. */
export type DayCounts = Partial<Readonly<Record<DayField, number>>> &
  Partial<Pick<HistoryDay, 'byCbStatus' | 'times'>>;

/** A day with these numbers; those that are absent are zero. */
export function toHistoryDay(date: string, counts: DayCounts = {}): HistoryDay {
  const numbers = dayFields.map((field) => [field, counts[field] ?? 0] as const);
  const fields = Object.fromEntries(numbers) as Record<DayField, number>;
  const { byCbStatus = {}, times } = counts;
  return { date, ...fields, byCbStatus, ...(times === undefined ? {} : { times }) };
}

/** The sum of the numbers of days; zeros are left out. */
export function addDays(days: readonly DayCounts[]): DayCounts {
  const sum: Partial<Record<DayField, number>> = {};
  const byCbStatus: Record<string, number> = {};
  const times: Record<string, number> = {};
  for (const day of days) {
    for (const field of dayFields) {
      const count = day[field] ?? 0;
      if (count !== 0) sum[field] = (sum[field] ?? 0) + count;
    }
    addTo(byCbStatus, day.byCbStatus);
    addTo(times, day.times);
  }
  return { ...sum, byCbStatus, ...(Object.keys(times).length === 0 ? {} : { times }) };
}

/** Days, or parts of them, added up: one for each date, oldest first. */
export function addByDate(
  days: Iterable<readonly [date: string, counts: DayCounts]>,
): HistoryDay[] {
  return [...Map.groupBy(days, ([date]) => date)]
    .map(([date, same]) => {
      const [[, only], second] = same as [(typeof same)[number], ...typeof same];
      // A sum takes several KB, as V8 has room for each number up to the largest key.
      return toHistoryDay(
        date,
        second === undefined ? only : addDays(same.map(([, each]) => each)),
      );
    })
    .toSorted((a, b) => (a.date < b.date ? -1 : 1));
}

/** The UTC day of a moment, `YYYY-MM-DD`. */
export function toDay(moment: Date): string {
  return moment.toISOString().slice(0, 10);
}

function addTo(sums: Record<string, number>, counts: Readonly<Record<string, number>> = {}): void {
  for (const [key, count] of Object.entries(counts)) sums[key] = (sums[key] ?? 0) + count;
}
