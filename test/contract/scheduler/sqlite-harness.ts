import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import type { SqlQuery } from '../../../src/scheduler/sqlite/task-documents.ts';

/** A fresh SQLite database in memory behind the function the embedded backend is given. */
export function openSqlQuery(): {
  readonly query: SqlQuery;
  readonly close: () => void;
} {
  const database = new DatabaseSync(':memory:');
  return {
    async query(sql, params) {
      return database.prepare(sql).all(...(params as SQLInputValue[]));
    },
    close: () => database.close(),
  };
}
