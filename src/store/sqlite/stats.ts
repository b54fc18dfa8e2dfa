import { addByDate, type DayCounts, type HistoryDay, toHistoryDay } from '../../domain/stats.ts';
import type { DayRange, HistorySums, StatsStore } from '../store.ts';
import type { InThread } from './in-thread.ts';
import { queueDepths } from './queue-depths.ts';
import { samples } from './samples.ts';
import type { Sql } from './sql.ts';

function daysOf(
  sql: Sql,
  crawlerId: string,
  range: DayRange,
): (readonly [date: string, counts: DayCounts])[] {
  return sql
    .all(
      'SELECT day, counts FROM history WHERE crawler_id = ? AND day BETWEEN ? AND ? ORDER BY day',
      crawlerId,
      range.from ?? '',
      range.to ?? '9999-99-99',
    )
    .map(({ day, counts }) => [String(day), JSON.parse(String(counts)) as DayCounts]);
}

function history(
  sql: Sql,
  crawlerIds: readonly string[],
  range: DayRange,
): Map<string, HistoryDay[]> {
  return new Map(
    crawlerIds.map((id) => [
      id,
      daysOf(sql, id, range).map(([date, counts]) => toHistoryDay(date, counts)),
    ]),
  );
}

function historySums(sql: Sql, crawlerIds: readonly string[], range: DayRange): HistorySums {
  const all = crawlerIds.flatMap((id) => daysOf(sql, id, range));
  return { days: addByDate(all), count: all.length };
}

/** History by day, and the queues. */
export const stats = { history, historySums, samples, queueDepths } satisfies InThread<StatsStore>;
