import { defined } from '../domain/defined.ts';
import type { DayCounts } from '../domain/stats.ts';
import type { CountsDocument } from '../store/mongo/counts-document.ts';
import { type CrawlerDocument, toCrawlerDocument } from '../store/mongo/crawler-document.ts';
import { NO_WORK } from '../store/mongo/lease.ts';
import { toCrawler, toMoments, toStreaks } from '../store/sqlite/crawler-row.ts';
import { type SqlRow, toOptionalDate } from '../store/sqlite/sql.ts';

/** The document of a crawler. */
export function crawlerDocument(row: SqlRow): CrawlerDocument {
  const probeAt = toOptionalDate(row.probe_at);
  return {
    ...toCrawlerDocument(toCrawler(row)),
    ...defined({ probeAt }),
    last: toMoments(row),
    purges: Number(row.purges),
    ...(row.has_priorities === 1 ? { hasPriorities: true } : {}),
    wakeAt: toOptionalDate(row.wake_at) ?? NO_WORK,
  };
}

/**
 * The counters of a crawler. They have all of its days at first; `maintain` moves those that are over
 * to the history.
 */
export function countsDocument(row: SqlRow, history: readonly SqlRow[]): CountsDocument {
  const days = Object.fromEntries(
    history.map(({ day, counts }) => [String(day), JSON.parse(String(counts)) as DayCounts]),
  );
  const firstDay = Object.keys(days).toSorted()[0];
  return {
    _id: String(row.crawler_id),
    crawlerId: String(row.crawler_id),
    accountId: String(row.account_id),
    gen: Number(row.purges),
    waiting: Number(row.waiting),
    retrying: Number(row.retrying),
    running: Number(row.running),
    queuedBytes: Number(row.held_bytes),
    runningBytes: Number(row.running_bytes),
    completed: Number(row.completed),
    failed: Number(row.failed),
    deleted: Number(row.deleted),
    purged: Number(row.purged),
    deliveriesPending: Number(row.deliveries_pending),
    delivered: Number(row.delivered),
    failing: toStreaks(row),
    days,
    ...defined({ firstDay }),
  };
}
