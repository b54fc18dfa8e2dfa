import { type Clock, systemClock } from '../../domain/clock.ts';
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
  /** Default: that of this process. */
  readonly clock?: Clock;
}

/** Tasks in the SQLite table `agenda_jobs`, which `connect` makes. */
export function createSqliteBackend({
  query,
  exclusive = true,
  clock = systemClock,
}: SqliteBackendDeps): SchedulerBackend {
  return {
    name: 'SQLite',
    async connect() {
      for (const statement of TASK_TABLE) await query(statement, []);
      if (exclusive) await freeSqliteTasks(query, clock.now());
    },
    tasks: createSqliteTaskDocuments(query),
  };
}
