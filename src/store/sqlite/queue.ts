import type { QueuedJob } from '../../domain/job.ts';
import { createCounts } from './counts.ts';
import { finish } from './finish.ts';
import type { InThread, ThreadQueue } from './in-thread.ts';
import { toJob } from './job-row.ts';
import { acquire, isLeased, purgeCount, release, setWake, visit } from './lease.ts';
import { push } from './push.ts';
import { removeJobs } from './remove-jobs.ts';
import type { Sql } from './sql.ts';
import { beginSweep } from './sweep.ts';
import { turn } from './turn.ts';

function overdue(sql: Sql, now: Date, limit: number): QueuedJob[] {
  return sql
    .all(
      `SELECT jobs.* FROM jobs JOIN dispatch d ON d.crawler_id = jobs.crawler_id AND d.purges = jobs.gen
        WHERE queue_deadline <= ? AND state = 'waiting' AND first_tried_at IS NULL
        ORDER BY queue_deadline LIMIT ?`,
      now.getTime(),
      limit,
    )
    .map(toJob);
}

function crawlersWithWorkDue(sql: Sql, now: Date, limit: number): string[] {
  return sql
    .all(
      `SELECT crawler_id FROM dispatch WHERE wake_at <= ? AND lease_until <= ?
        ORDER BY wake_at LIMIT ?`,
      now.getTime(),
      now.getTime(),
      limit,
    )
    .map((row) => String(row.crawler_id));
}

function find(sql: Sql, crawlerId: string, rid: string): QueuedJob | undefined {
  const purges = purgeCount(sql, crawlerId);
  if (purges === undefined) return undefined;
  const row = sql.get(
    "SELECT * FROM jobs WHERE rid = ? AND crawler_id = ? AND (gen = ? OR state = 'running')",
    rid,
    crawlerId,
    purges,
  );
  return row === undefined ? undefined : toJob(row);
}

function countScheduled(sql: Sql, crawlerId: string, now: Date): number {
  const row = sql.get(
    `SELECT count(*) AS n FROM jobs
      WHERE crawler_id = ? AND gen = ? AND not_before > ? AND state = 'waiting'`,
    crawlerId,
    purgeCount(sql, crawlerId) ?? -1,
    now.getTime(),
  );
  return Number(row?.n ?? 0);
}

function deleteJobs(sql: Sql, crawlerId: string, rids: readonly string[], now: Date): string[] {
  const purges = purgeCount(sql, crawlerId);
  if (purges === undefined) return [];
  const selection = `SELECT rid FROM jobs WHERE rid IN (SELECT value FROM json_each(?))
    AND crawler_id = ? AND (gen = ? OR state = 'running')`;
  const values = [JSON.stringify(rids), crawlerId, purges];
  return removeJobs(sql, { crawlerId, selection, values, end: 'deleted', now });
}

function deleteJob(sql: Sql, crawlerId: string, rid: string, now: Date): boolean {
  return deleteJobs(sql, crawlerId, [rid], now).length > 0;
}

/**
 * One write, whatever the length of the queue: jobs that were pushed before it are gone, and their
 * rows are swept up later.
 */
function purge(sql: Sql, crawlerId: string, now: Date): number {
  const row = sql.get(
    `SELECT d.waiting, d.retrying, d.held_bytes, c.account_id
      FROM dispatch d JOIN crawlers c USING (crawler_id) WHERE crawler_id = ?`,
    crawlerId,
  );
  if (row === undefined) return 0;
  const purged = Number(row.waiting) + Number(row.retrying);
  sql.run('UPDATE dispatch SET purges = purges + 1 WHERE crawler_id = ?', crawlerId);
  if (purged === 0) return 0;
  const counts = createCounts();
  const changes = counts.of(crawlerId);
  changes.add('waiting', -Number(row.waiting));
  changes.add('retrying', -Number(row.retrying));
  changes.add('queuedBytes', -Number(row.held_bytes));
  changes.add('purged', purged);
  changes.addDay('purged', purged);
  counts.write(sql, now);
  beginSweep(sql, crawlerId, String(row.account_id));
  // While leased, keep `wake_at`: it is the safety net if the holder crashes. `release` sets it.
  if (!isLeased(sql, crawlerId, now)) setWake(sql, crawlerId);
  return purged;
}

/** The queue: pushes, leases, claims and the ends of jobs. */
export const queue = {
  push,
  acquire,
  visit,
  release,
  turn,
  look: turn,
  finish,
  overdue,
  crawlersWithWorkDue,
  find,
  countScheduled,
  deleteJob,
  deleteJobs,
  purge,
} satisfies InThread<ThreadQueue>;
