import type { HistoryDay } from '../domain/stats.ts';
import type { Sample } from '../domain/timeline.ts';
import type { QueueDepths } from './queue-depth.ts';

/** Days between two days inclusive (`YYYY-MM-DD`); no bound where one is absent. */
export interface DayRange {
  readonly from?: string;
  readonly to?: string;
}

/** Days of several crawlers, added up. */
export interface HistorySums {
  /** One for each date, oldest first. */
  readonly days: readonly HistoryDay[];
  /** How many days of single crawlers were read. */
  readonly count: number;
}

export interface StatsStore {
  /**
   * What all queues hold, and the `limit` longest of them (MongoDB: of the hundred longest, whose
   * oldest jobs alone are compared).
   */
  queueDepths(limit: number): Promise<QueueDepths>;
  /** The days of each crawler, oldest first. */
  history(crawlerIds: readonly string[], range: DayRange): Promise<Map<string, HistoryDay[]>>;
  /** The days of crawlers added up by date, oldest first. Its cost grows with the days that it reads. */
  historySums(crawlerIds: readonly string[], range: DayRange): Promise<HistorySums>;
  /**
   * The samples of each crawler since then, and the last one before, oldest first. Those of crawler
   * '' are when samples were taken at all. `maintain` takes them.
   */
  samples(crawlerIds: readonly string[], since: Date): Promise<Map<string, Sample[]>>;
}
