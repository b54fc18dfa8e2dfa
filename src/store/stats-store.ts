import type { HistoryDay } from '../domain/stats.ts';
import type { Sample } from '../domain/timeline.ts';
import type { QueueDepths } from './queue-depth.ts';

/** Days between two days inclusive (`YYYY-MM-DD`); no bound where one is absent. */
export interface DayRange {
  readonly from?: string;
  readonly to?: string;
}

export interface StatsStore {
  /**
   * What all queues hold, and the `limit` longest of them (MongoDB: of the hundred longest, whose
   * oldest jobs alone are compared).
   */
  queueDepths(limit: number): Promise<QueueDepths>;
  /** The days of each crawler, oldest first. */
  history(crawlerIds: readonly string[], range: DayRange): Promise<Map<string, HistoryDay[]>>;
  /**
   * The samples of each crawler since then, and the last one before, oldest first. Those of crawler
   * '' are when samples were taken at all. `maintain` takes them.
   */
  samples(crawlerIds: readonly string[], since: Date): Promise<Map<string, Sample[]>>;
}
