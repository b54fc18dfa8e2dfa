import type { SchedulerBackend } from '../agenda/task-documents.ts';
import { createSqliteTaskDocuments, freeSqliteTasks } from './task-documents.ts';
import { type SqlQuery, TASK_TABLE } from './task-table.ts';

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
