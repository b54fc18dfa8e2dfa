import type { HostState } from '../../domain/host-state.ts';
import type { HostReport, QueuedHost } from '../host-store.ts';
import type { InThread, QueuePart, QueuePosition, ThreadHosts } from './in-thread.ts';
import { purgeCount } from './lease.ts';
import { removeJobs } from './remove-jobs.ts';
import { insertRow, type Sql, type SqlRow, toDate } from './sql.ts';

/** Jobs that one part of a queue goes over: some milliseconds of the database thread. */
const PART_JOBS = 10_000;
const IS_QUEUED = "crawler_id = ? AND gen = ? AND state <> 'running'";

function save(sql: Sql, reports: readonly HostReport[], _now: Date): void {
  for (const { crawlerId, processId, hosts, heldUp } of reports) {
    // A crawler that was removed is not there any more.
    if (purgeCount(sql, crawlerId) === undefined) continue;
    insertRow(
      sql,
      'known_hosts',
      {
        crawler_id: crawlerId,
        process_id: processId,
        hosts: JSON.stringify(hosts),
        held_up: heldUp === undefined ? null : JSON.stringify(heldUp),
      },
      `(crawler_id) DO UPDATE SET process_id = excluded.process_id, hosts = excluded.hosts,
        held_up = excluded.held_up`,
    );
  }
}

function reports(sql: Sql, crawlerId: string): HostReport[] {
  return sql
    .all('SELECT process_id, hosts FROM known_hosts WHERE crawler_id = ?', crawlerId)
    .map((row) => ({
      crawlerId,
      processId: String(row.process_id),
      hosts: JSON.parse(String(row.hosts)) as HostState[],
    }));
}

function queuePart(sql: Sql, crawlerId: string, { host, job }: QueuePosition): QueuePart {
  const columns = 'host, priority, due_at, rid';
  const rows = `SELECT ${columns} FROM jobs INDEXED BY jobs_by_host WHERE ${IS_QUEUED}
    AND ${job === undefined ? 'host > ?' : 'host = ? AND (priority, due_at, rid) > (?, ?, ?)'}
    ORDER BY ${columns} LIMIT ${PART_JOBS}`;
  const after = job === undefined ? [host] : [host, job.priority, job.dueMs, job.rid];
  const values = [crawlerId, purgeCount(sql, crawlerId) ?? -1, ...after];
  const hosts = sql
    .all(
      `SELECT host, count(*) AS n, min(due_at) AS due_at FROM (${rows}) GROUP BY host`,
      ...values,
    )
    .map(toQueuedHost);
  const last = sql.get(
    `SELECT ${columns} FROM (${rows}) LIMIT 1 OFFSET ${PART_JOBS - 1}`,
    ...values,
  );
  return { hosts, next: last === undefined ? job && { host } : toPosition(last) };
}

function toPosition({ host, priority, due_at, rid }: SqlRow): QueuePosition {
  const job = { priority: Number(priority), dueMs: Number(due_at), rid: String(rid) };
  return { host: String(host), job };
}

function toQueuedHost(row: SqlRow): QueuedHost {
  return { host: String(row.host), queued: Number(row.n), nextDueAt: toDate(row.due_at) };
}

function purge(sql: Sql, crawlerId: string, host: string, limit: number, now: Date): number {
  const selection = `SELECT rid FROM jobs INDEXED BY jobs_by_host
    WHERE ${IS_QUEUED} AND host = ? LIMIT ?`;
  const values = [crawlerId, purgeCount(sql, crawlerId) ?? -1, host, limit];
  return removeJobs(sql, { crawlerId, selection, values, end: 'purged', now }).length;
}

/** What is known of hosts, and the queue by host. */
export const hosts = { save, reports, queuePart, purge } satisfies InThread<ThreadHosts>;
