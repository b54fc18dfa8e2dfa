import type { SchedulerBackend } from '../agenda/task-documents.ts';
import { createSqliteTaskDocuments, freeSqliteTasks, type SqlQuery } from './task-documents.ts';

/**
 * The statements that make the table of tasks and its indexes; they do nothing where these exist.
 * Moments are milliseconds since 1970.
 */
const TASK_TABLE: readonly string[] = [
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

/** What the embedded backend is made of. */
export interface SqliteBackendDeps {
  /**
   * Runs one statement; its change is durable when it resolves. The caller closes the connection
   * behind it.
   */
  readonly query: SqlQuery;
  /**
   * Whether one process has the database to itself. Default: true. Then every task that is locked
   * when it connects was locked by a process that has ended, and becomes due at once.
   */
  readonly exclusive?: boolean;
  /** Tells the time that is in the database. Default: the machine's. */
  readonly now?: () => Date;
}

/** Tasks in the SQLite table `agenda_jobs`, which `connect` makes. */
export function createSqliteBackend({
  query,
  exclusive = true,
  now = () => new Date(),
}: SqliteBackendDeps): SchedulerBackend {
  return {
    name: 'SQLite',
    async connect() {
      for (const statement of TASK_TABLE) await query(statement, []);
      if (exclusive) await freeSqliteTasks(query, now());
    },
    tasks: createSqliteTaskDocuments(query),
  };
}
