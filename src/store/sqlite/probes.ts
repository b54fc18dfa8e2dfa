import { toWall } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import type { PostponedProbe } from '../store.ts';
import { toCrawler } from './crawler-row.ts';
import type { Sql } from './sql.ts';

/** See `claimProbes` of the store's interface. */
export function claimProbes(sql: Sql, now: Date, intervalMs: number, limit: number): Crawler[] {
  // A new crawler takes the next probe of its URL if that is known, else a random moment within its
  // first interval, so that probes are spread evenly.
  sql.run(
    `UPDATE crawlers SET probe_at = coalesce(
        (SELECT min(s.probe_at) FROM crawlers s WHERE s.callback_url = crawlers.callback_url AND s.probe_at > 0),
        ? + abs(random() % ?))
      WHERE probe_at = 0`,
    now.getTime(),
    Math.max(intervalMs, 1),
  );
  return sql
    .all(
      `UPDATE crawlers SET probe_at = ? WHERE probe_at > 0 AND callback_url IN
        (SELECT callback_url FROM crawlers WHERE probe_at <= ? ORDER BY probe_at LIMIT ?) RETURNING *`,
      now.getTime() + intervalMs,
      now.getTime(),
      limit,
    )
    .map(toCrawler);
}

/** See `postponeProbes` of the store's interface. */
export function postponeProbes(sql: Sql, probes: readonly PostponedProbe[]): void {
  for (const { crawlerId, dueAt } of probes) {
    sql.run('UPDATE crawlers SET probe_at = ? WHERE crawler_id = ?', dueAt.getTime(), crawlerId);
  }
}

/** See `noteProbes` of the store's interface. */
export function noteProbes(sql: Sql, crawlerIds: readonly string[], now: Date): void {
  sql.run(
    `UPDATE crawlers SET last_probe_at = ?
      WHERE crawler_id IN (SELECT value FROM json_each(?))`,
    toWall(sql, now).getTime(),
    JSON.stringify(crawlerIds),
  );
}

/** See `lateProbes` of the store's interface. */
export function lateProbes(sql: Sql, before: Date): number {
  const row = sql.get(
    `SELECT count(*) AS n FROM crawlers
      WHERE probe_at IS NOT NULL AND max(coalesce(last_probe_at, 0), updated_at) < ?`,
    before.getTime(),
  );
  return Number(row?.n);
}
