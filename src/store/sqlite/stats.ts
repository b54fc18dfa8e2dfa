import type { HistoryDay } from '../../domain/stats.ts';
import type { DayRange, StatsStore } from '../store.ts';
import type { DayCounts } from './counts.ts';
import type { InThread } from './in-thread.ts';
import type { Sql } from './sql.ts';

function toDay(date: string, counts: DayCounts): HistoryDay {
  const {
    pushed = 0,
    success = 0,
    failed = 0,
    deliveries = 0,
    deliveryFailures = 0,
    billed = 0,
    retries = 0,
    timeouts = 0,
    deleted = 0,
    purged = 0,
    byCbStatus = {},
  } = counts;
  const ends = { pushed, success, failed, retries, timeouts, deleted, purged };
  return { date, ...ends, deliveries, deliveryFailures, billed, byCbStatus };
}

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
      toDay(String(row.day), JSON.parse(String(row.counts)) as DayCounts),
    );
    found.set(crawlerId, days);
  }
  return found;
}

/** History by day. */
export const stats = { history } satisfies InThread<StatsStore>;
