import { toWall } from '../../domain/clock.ts';
import { HOUR_MS, MINUTE_MS } from '../../domain/durations.ts';
import { type DayCounts, dayFields, toDay } from '../../domain/stats.ts';
import {
  SAMPLE_MS,
  SAMPLES_KEPT_MS,
  type Sample,
  THINNING,
  timelineFields,
} from '../../domain/timeline.ts';
import type { Sql, SqlRow } from './sql.ts';

/** Crawlers that are read by one write, which takes some milliseconds. */
const CRAWLERS = 500;
const ROWS = 2_000;
/** What is thinned first after a start, beyond its age: more than the service is usually stopped for. */
const WINDOW_MS = 12 * HOUR_MS;

/** The numbers of a day that timelines do not show, as paths of JSON. */
const LEFT_OUT = [...dayFields, 'byCbStatus']
  .filter((field) => !timelineFields.some((each) => each === field))
  .map((field) => `'$.${field}'`)
  .join(', ');

/** Until when samples were thinned, by the length of the step. */
const thinned = new Map<number, number>();

/** Where the present round of samples continues. */
let round: { readonly at: number; after: string } | undefined;

/**
 * Takes samples, if it is time, of crawlers that have changed since their last one; of some crawlers
 * in each call. True while there are more.
 */
export function takeSamples(sql: Sql, now: Date): boolean {
  const wall = toWall(sql, now).getTime();
  if (round === undefined) {
    const at = Math.floor(wall / SAMPLE_MS) * SAMPLE_MS;
    // The row without a crawler says that samples were taken.
    const isFirst = sql.run("INSERT OR IGNORE INTO samples VALUES ('', ?, '', '{}', 0)", at) > 0;
    if (!isFirst) return false;
    round = { at, after: '' };
  }
  const { at, after } = round;
  const page = 'SELECT crawler_id FROM dispatch WHERE crawler_id > ? ORDER BY crawler_id LIMIT ?';
  const last = sql.get(`SELECT max(crawler_id) AS last FROM (${page})`, after, CRAWLERS)?.last;
  if (typeof last !== 'string') {
    round = undefined;
    return thin(sql, at);
  }
  // A day's last numbers are read when it is over.
  const day = toDay(new Date(at - MINUTE_MS));
  sql.run(
    `INSERT INTO samples
      SELECT crawler_id, ?1, ?2, counts, queued FROM (
        SELECT d.crawler_id, d.waiting + d.retrying AS queued, h.counts IS NOT NULL AS has_day,
          json_remove(coalesce(h.counts, '{}'), ${LEFT_OUT}) AS counts
        FROM dispatch d LEFT JOIN history h ON h.crawler_id = d.crawler_id AND h.day = ?2
        WHERE d.crawler_id > ?3 AND d.crawler_id <= ?4
      ) AS present
      WHERE (counts, queued, ?2) IS NOT
        (SELECT counts, queued, day FROM samples s WHERE s.crawler_id = present.crawler_id
          ORDER BY at DESC LIMIT 1)
        AND (has_day OR queued > 0 OR
          (SELECT queued FROM samples s WHERE s.crawler_id = present.crawler_id
            ORDER BY at DESC LIMIT 1) > 0)
      ON CONFLICT (crawler_id, at) DO UPDATE SET
        day = excluded.day, counts = excluded.counts, queued = excluded.queued`,
    Math.floor(at / MINUTE_MS) * MINUTE_MS,
    day,
    after,
    last,
  );
  round.after = last;
  return true;
}

/** Keeps the last sample of each step of what is old, and nothing of what is older than that. */
function thin(sql: Sql, at: number): boolean {
  let removed = sql.run(
    `DELETE FROM samples WHERE (crawler_id, at) IN
      (SELECT crawler_id, at FROM samples WHERE at < ? LIMIT ?)`,
    at - SAMPLES_KEPT_MS,
    ROWS,
  );
  for (const { ageMs, stepMs } of THINNING) {
    const until = Math.floor((at - ageMs) / stepMs) * stepMs;
    const from = thinned.get(stepMs) ?? until - WINDOW_MS;
    if (from >= until) continue;
    const surplus = sql.run(
      `DELETE FROM samples WHERE (crawler_id, at) IN (
        SELECT crawler_id, at FROM samples s WHERE at >= ?1 AND at < ?2 AND EXISTS (
          SELECT 1 FROM samples n WHERE n.crawler_id = s.crawler_id
            AND n.at > s.at AND n.at < s.at - s.at % ?3 + ?3 AND n.at < ?2)
        LIMIT ?4)`,
      from,
      until,
      stepMs,
      ROWS,
    );
    if (surplus < ROWS) thinned.set(stepMs, until);
    removed += surplus;
  }
  return removed >= ROWS;
}

/** See `StatsStore.samples`. */
export function samples(
  sql: Sql,
  crawlerIds: readonly string[],
  since: Date,
): Map<string, Sample[]> {
  return new Map(
    crawlerIds.map((crawlerId) => {
      const rows = sql.all(
        `SELECT * FROM samples WHERE crawler_id = ?1 AND at >= coalesce(
          (SELECT max(at) FROM samples WHERE crawler_id = ?1 AND at < ?2), ?2) ORDER BY at`,
        crawlerId,
        since.getTime(),
      );
      return [crawlerId, rows.map(toSample)];
    }),
  );
}

/** A sample as its row keeps it. */
export function toSample(row: SqlRow): Sample {
  return {
    at: new Date(Number(row.at)),
    day: String(row.day),
    counts: JSON.parse(String(row.counts)) as DayCounts,
    queued: Number(row.queued),
  };
}
