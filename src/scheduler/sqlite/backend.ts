import type { SchedulerBackend } from '../agenda/task-documents.ts';
import { createSqliteJobRepository } from './job-repository.ts';
import type { SqlQuery } from './job-row.ts';
import { createSqliteTaskDocuments, freeSqliteTasks } from './task-documents.ts';

/** What the embedded backend is made of. */
export interface SqliteBackendDeps {
  /** Runs one statement, durable when it resolves; the caller owns and closes what is behind it. */
  readonly query: SqlQuery;
  /**
   * Whether one process has the database to itself (default true): then whatever is locked when it connects was locked
   * by a process that is gone, and is due at once.
   */
  readonly exclusive?: boolean;
}

/** Agenda on SQLite: jobs in the table `agenda_jobs`, made when it connects. */
export function createSqliteBackend({
  query,
  exclusive = true,
}: SqliteBackendDeps): SchedulerBackend {
  const repository = createSqliteJobRepository(query);
  return {
    agenda: {
      name: 'SQLite',
      repository,
      ownsConnection: false,
      async connect() {
        await repository.connect();
        if (exclusive) await freeSqliteTasks(query, new Date());
      },
      async disconnect() {},
    },
    tasks: createSqliteTaskDocuments(query),
  };
}
