import type { Database, ProcessReport } from '../../domain/process-report.ts';
import type { ProcessStore } from '../process-store.ts';
import type { InThread } from './in-thread.ts';
import type { Sql } from './sql.ts';

// In memory, because there is one process: a restart replaces it.
const reports = new Map<string, ProcessReport>();

function report(_sql: Sql, own: ProcessReport): void {
  reports.clear();
  reports.set(own.processId, own);
}

function remove(_sql: Sql, processId: string): boolean {
  return reports.delete(processId);
}

function list(_sql: Sql, since: Date): ProcessReport[] {
  return [...reports.values()].filter(({ reportedAt }) => reportedAt >= since);
}

function database(sql: Sql): Database {
  const row = sql.get('SELECT sqlite_version() AS version');
  return { kind: 'sqlite', version: String(row?.version) };
}

function secret(sql: Sql, fresh: string): string {
  sql.run('INSERT INTO secret SELECT ? WHERE NOT EXISTS (SELECT 1 FROM secret)', fresh);
  return String(sql.get('SELECT secret FROM secret')?.secret);
}

/** Processes and the database. */
export const processes = {
  report,
  remove,
  list,
  database,
  secret,
} satisfies InThread<ProcessStore>;
