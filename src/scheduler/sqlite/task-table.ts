import { type JobParameters, toJobId } from 'agenda';

/** One row as SQLite returns it. */
export type Row = Record<string, unknown>;

/**
 * Runs one SQL statement of SQLite's dialect and returns its rows; a write returns those of its
 * `RETURNING` clause.
 */
export type SqlQuery = (sql: string, params: readonly unknown[]) => Promise<Row[]>;

/**
 * The statements that make the table of tasks and its indexes; they do nothing where these exist.
 * Moments are milliseconds since 1970. Databases of older versions have further columns, all empty.
 */
export const TASK_TABLE: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS agenda_jobs (
    id TEXT PRIMARY KEY,
    task TEXT UNIQUE,
    name TEXT,
    type TEXT,
    priority INTEGER,
    next_run_at INTEGER,
    data TEXT,
    locked_at INTEGER,
    last_run_at INTEGER,
    last_finished_at INTEGER,
    repeat_interval TEXT,
    last_modified_by TEXT
  ) WITHOUT ROWID`,
  // Each poll reads one end of an index, however many tasks are locked or due later.
  `CREATE INDEX IF NOT EXISTS agenda_jobs_due ON agenda_jobs (name, next_run_at, priority DESC)
    WHERE locked_at IS NULL`,
  `CREATE INDEX IF NOT EXISTS agenda_jobs_locked ON agenda_jobs (name, locked_at)
    WHERE locked_at IS NOT NULL`,
];

/** Agenda's job of a row. Empty columns are left out, except `nextRunAt`, which is null. */
export function toJobParameters(row: Row): JobParameters {
  const date = (column: string): Date | undefined =>
    row[column] === null || row[column] === undefined ? undefined : new Date(Number(row[column]));
  const json = (column: string): unknown =>
    typeof row[column] === 'string' ? JSON.parse(row[column]) : undefined;
  const optional = {
    lockedAt: date('locked_at'),
    lastRunAt: date('last_run_at'),
    lastFinishedAt: date('last_finished_at'),
    repeatInterval: json('repeat_interval') as number | undefined,
    lastModifiedBy: (row['last_modified_by'] ?? undefined) as string | undefined,
  };
  const job: JobParameters = {
    _id: toJobId(String(row['id'])),
    name: String(row['name']),
    type: row['type'] === 'single' ? 'single' : 'normal',
    priority: Number(row['priority']),
    nextRunAt: date('next_run_at') ?? null,
    data: json('data'),
  };
  const given = Object.entries(optional).filter(([, value]) => value !== undefined);
  return Object.assign(job, Object.fromEntries(given));
}
