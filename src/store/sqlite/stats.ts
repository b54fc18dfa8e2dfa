import { type DayCounts, type HistoryDay, toHistoryDay } from '../../domain/stats.ts';
import type { DayRange, StatsStore } from '../store.ts';
import type { InThread } from './in-thread.ts';
import { queueDepths } from './queue-depths.ts';
import { samples } from './samples.ts';
import type { Sql } from './sql.ts';

function history(
  sql: Sql,
  crawlerIds: readonly string[],
  range: DayRange,
): Map<string, HistoryDay[]> {
  const found = new Map<string, HistoryDay[]>();
  for (const crawlerId of crawlerIds) {
    const rows = sql.all(
      'SELECT day, counts FROM history WHERE crawler_id = ? AND day BETWEEN ? AND ? ORDER BY day',
      crawlerId,
      range.from ?? '',
      range.to ?? '9999-99-99',
    );
    const days = rows.map((row) =>
      toHistoryDay(String(row.day), JSON.parse(String(row.counts)) as DayCounts),
    );
    found.set(crawlerId, days);
  }
  return found;
}

/** History by day, and the queues. */
export const stats = { history, samples, queueDepths } satisfies InThread<StatsStore>;
