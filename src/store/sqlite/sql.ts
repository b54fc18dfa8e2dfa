import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { createLruMap } from '../../domain/lru-map.ts';

/** What a statement takes and gives. */
export type SqlValue = string | number | bigint | null | Uint8Array;
/** A row by column name. */
export type SqlRow = Record<string, SqlValue>;

/** Prepared statements of one connection, each prepared once. */
export interface Sql {
  /** How many rows were changed. */
  run(sql: string, ...values: SqlValue[]): number;
  get(sql: string, ...values: SqlValue[]): SqlRow | undefined;
  all(sql: string, ...values: SqlValue[]): SqlRow[];
  /** Rows one by one, for results that may be too large to hold at once; read to the end or left by `break`. */
  each(sql: string, ...values: SqlValue[]): Iterable<SqlRow>;
  /** Runs statements that are not prepared, such as BEGIN. */
  exec(sql: string): void;
}

// A statement with a list of values has a text of its own for each length of the list.
const MAX_STATEMENTS = 500;

/** Makes the statement cache of a connection. */
export function createSql(database: DatabaseSync): Sql {
  const statements = createLruMap<string, StatementSync>({ maxEntries: MAX_STATEMENTS });
  function prepared(sql: string): StatementSync {
    let statement = statements.get(sql);
    if (statement === undefined) {
      statement = database.prepare(sql);
      statements.set(sql, statement);
    }
    return statement;
  }
  return {
    run: (sql, ...values) => Number(prepared(sql).run(...values).changes),
    get: (sql, ...values) => prepared(sql).get(...values),
    all: (sql, ...values) => prepared(sql).all(...values),
    each: (sql, ...values) => prepared(sql).iterate(...values),
    exec: (sql) => database.exec(sql),
  };
}

/** `?, ?, ...` for a list of values. */
export function marks(values: readonly unknown[]): string {
  return values.map(() => '?').join(', ');
}

/** A moment as it is stored. */
export function ms(moment: Date | undefined): number | null {
  return moment === undefined ? null : moment.getTime();
}

/** A stored moment. */
export function date(value: SqlValue | undefined): Date | undefined {
  return typeof value === 'number' ? new Date(value) : undefined;
}

/** A stored moment that is always there. */
export function dateOf(value: SqlValue | undefined): Date {
  return new Date(Number(value));
}
