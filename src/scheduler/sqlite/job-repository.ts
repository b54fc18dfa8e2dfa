import type { JobParameters, JobRepository } from 'agenda';
import { optionsAre } from './job-filter.ts';
import { jobFromRow, type SqlQuery, schema } from './job-row.ts';
import { jobsOverview, queryJobs } from './query-jobs.ts';
import { saveJob } from './save-job.ts';

/** Agenda's job repository in the SQLite table `agenda_jobs`, made at `connect`; it behaves as the one for MongoDB does. */
export function createSqliteJobRepository(query: SqlQuery): JobRepository {
  const first = async (sql: string, params: readonly unknown[]) => {
    const [row] = await query(sql, params);
    return row ? jobFromRow(row) : undefined;
  };
  const setDisabled = async (where: ReturnType<typeof optionsAre>, disabled: boolean) => {
    if (!where) return 0;
    const rows = await query(
      `UPDATE agenda_jobs SET disabled = ? WHERE disabled IS NOT ? AND (${where.where}) RETURNING id`,
      [disabled ? 1 : 0, disabled ? 1 : 0, ...where.params],
    );
    return rows.length;
  };
  return {
    async connect() {
      for (const statement of schema) await query(statement, []);
    },
    queryJobs: (options) => queryJobs(query, options),
    getJobsOverview: () => jobsOverview(query),
    async getDistinctJobNames() {
      const rows = await query('SELECT DISTINCT name FROM agenda_jobs ORDER BY name', []);
      return rows.map((row) => String(row['name']));
    },
    async getJobById(id) {
      return (await first('SELECT * FROM agenda_jobs WHERE id = ?', [id])) ?? null;
    },
    async getQueueSize() {
      const [row] = await query('SELECT count(*) AS size FROM agenda_jobs WHERE next_run_at < ?', [
        Date.now(),
      ]);
      return Number(row?.['size']);
    },
    async removeJobs(options) {
      const which = optionsAre(options);
      if (!which) return 0;
      const removed = await query(
        `DELETE FROM agenda_jobs WHERE ${which.where} RETURNING id`,
        which.params,
      );
      return removed.length;
    },
    async saveJob<Data>(
      job: JobParameters<Data>,
      options: { lastModifiedBy?: string } | undefined,
    ) {
      return (await saveJob(query, job, options?.lastModifiedBy)) as JobParameters<Data>;
    },
    async saveJobState(job, options) {
      if (!job._id) throw new Error('Cannot save job state without job ID');
      const saved = await query(
        `UPDATE agenda_jobs SET locked_at = ?, next_run_at = ?, last_run_at = ?, progress = ?, fail_reason = ?,
           fail_count = ?, failed_at = ?, last_finished_at = ?, last_modified_by = ?
         WHERE id = ? AND name = ? RETURNING id`,
        [
          milliseconds(job.lockedAt),
          milliseconds(job.nextRunAt),
          milliseconds(job.lastRunAt),
          job.progress ?? null,
          job.failReason ?? null,
          job.failCount ?? null,
          milliseconds(job.failedAt),
          milliseconds(job.lastFinishedAt),
          options?.lastModifiedBy ?? null,
          job._id,
          job.name,
        ],
      );
      if (saved.length === 0) throw new Error(`job ${job._id} (name: ${job.name}) does not exist`);
    },
    async lockJob(job, options) {
      if (!job._id) return undefined;
      return first(
        `UPDATE agenda_jobs SET locked_at = ?, last_modified_by = ? WHERE id = ? AND name = ?
           AND locked_at IS NULL AND next_run_at IS ? AND disabled IS NOT 1 RETURNING *`,
        [
          Date.now(),
          options?.lastModifiedBy ?? null,
          job._id,
          job.name,
          milliseconds(job.nextRunAt),
        ],
      );
    },
    async unlockJob(job) {
      if (!job._id) return;
      await query(
        'UPDATE agenda_jobs SET locked_at = NULL WHERE id = ? AND next_run_at IS NOT NULL',
        [job._id],
      );
    },
    async unlockJobs(jobIds) {
      if (jobIds.length === 0) return;
      await query(
        'UPDATE agenda_jobs SET locked_at = NULL WHERE id IN (SELECT value FROM json_each(?))',
        [JSON.stringify(jobIds.map(String))],
      );
    },
    async getNextJobToRun(jobName, nextScanAt, lockDeadline, now, options) {
      return first(
        `UPDATE agenda_jobs SET locked_at = ?, last_modified_by = ? WHERE id = (
           SELECT id FROM (
             SELECT * FROM (SELECT id, next_run_at, priority FROM agenda_jobs
               WHERE name = ? AND locked_at IS NULL AND next_run_at <= ? AND disabled IS NOT 1
               ORDER BY next_run_at, priority DESC LIMIT 1)
             UNION ALL
             SELECT id, next_run_at, priority FROM agenda_jobs
               WHERE name = ? AND locked_at <= ? AND disabled IS NOT 1
           ) ORDER BY next_run_at, priority DESC LIMIT 1
         ) RETURNING *`,
        [
          (now ?? new Date()).getTime(),
          options?.lastModifiedBy ?? null,
          jobName,
          nextScanAt.getTime(),
          jobName,
          lockDeadline.getTime(),
        ],
      );
    },
    disableJobs: (options) => setDisabled(optionsAre(options), true),
    enableJobs: (options) => setDisabled(optionsAre(options), false),
    async purgeAllJobs() {
      return (await query('DELETE FROM agenda_jobs RETURNING id', [])).length;
    },
  };
}

function milliseconds(date: Date | null | undefined): number | null {
  return date ? new Date(date).getTime() : null;
}
