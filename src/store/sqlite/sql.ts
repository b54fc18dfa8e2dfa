import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { getOrInsert } from '../../domain/get-or-insert.ts';
import { createLruMap } from '../../domain/lru-map.ts';

/** A value of a statement or a row. */
export type SqlValue = string | number | bigint | null | Uint8Array;
/** A row by column name. */
export type SqlRow = Record<string, SqlValue>;

/**
 * The prepared statements of one connection, each prepared once. For what each page does, a read and a
 * write by key: `RETURNING` keeps its rows in a table of its own, which takes longer than both.
 */
export interface Sql {
  /** How far the service time is ahead of the clock, in milliseconds. */
  aheadMs: number;
  /** Returns the number of changed rows. */
  run(sql: string, ...values: SqlValue[]): number;
  /** Runs an INSERT of one row and returns the row's `rowid`. */
  insert(sql: string, ...values: SqlValue[]): number;
  get(sql: string, ...values: SqlValue[]): SqlRow | undefined;
  all(sql: string, ...values: SqlValue[]): SqlRow[];
  /**
   * Returns rows one by one, for results that may be too large to hold at once. Must be read to the
   * end or left by `break`.
   */
  each(sql: string, ...values: SqlValue[]): Iterable<SqlRow>;
  /** Runs statements that are not prepared, such as BEGIN. */
  exec(sql: string): void;
}

// A statement with a list of values has a text of its own for each length of the list.
const MAX_STATEMENTS = 500;

/** Creates the statement cache of a connection. */
export function createSql(database: DatabaseSync): Sql {
  const statements = createLruMap<string, StatementSync>({ maxEntries: MAX_STATEMENTS });
  let lastText = '';
  let last: StatementSync | undefined;
  function prepared(sql: string): StatementSync {
    if (sql !== lastText || last === undefined) {
      last = getOrInsert(statements, sql, () => database.prepare(sql));
      lastText = sql;
    }
    return last;
  }
  return {
    aheadMs: 0,
    run: (sql, ...values) => Number(prepared(sql).run(...values).changes),
    insert: (sql, ...values) => Number(prepared(sql).run(...values).lastInsertRowid),
    get: (sql, ...values) => prepared(sql).get(...values),
    all: (sql, ...values) => prepared(sql).all(...values),
    each: (sql, ...values) => prepared(sql).iterate(...values),
    exec: (sql) => database.exec(sql),
  };
}

/**
 * Inserts a row, given by the names of its columns; a column that is left out gets its default.
 * `onConflict` says what to do with a row whose key exists, such as `DO NOTHING`; without it that
 * is an error.
 */
export function insertRow(
  sql: Sql,
  table: string,
  row: Readonly<SqlRow>,
  onConflict?: string,
): void {
  const text = insertText(table, Object.keys(row));
  const values = Object.values(row);
  sql.run(onConflict === undefined ? text : `${text} ON CONFLICT ${onConflict}`, ...values);
}

// The last statement of each table: joining column names costs as much as the insert itself.
const lastInserts = new Map<
  string,
  { readonly columns: readonly string[]; readonly text: string }
>();

function insertText(table: string, columns: readonly string[]): string {
  const last = lastInserts.get(table);
  if (
    last?.columns.length === columns.length &&
    last.columns.every((column, index) => column === columns[index])
  ) {
    return last.text;
  }
  const text = `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${placeholders(columns)})`;
  lastInserts.set(table, { columns, text });
  return text;
}

/** Deletes up to `limit` rows that match `where`, found by the columns of `key`. Returns how many. */
export function deleteSome(
  sql: Sql,
  limit: number,
  table: string,
  key: string,
  where: string,
  ...values: SqlValue[]
): number {
  const text = `DELETE FROM ${table} WHERE (${key}) IN
    (SELECT ${key} FROM ${table} WHERE ${where} LIMIT ?)`;
  return sql.run(text, ...values, limit);
}

/** Those of the conditions whose values are all given, for WHERE, and these values. */
export function matching(
  conditions: readonly (readonly [condition: string, ...values: (SqlValue | undefined)[]])[],
): { readonly where: string; readonly values: readonly SqlValue[] } {
  const given = conditions.filter((each) => !each.includes(undefined));
  return {
    where: given.map(([condition]) => condition).join(' AND '),
    values: given.flatMap(([, ...values]) => values as SqlValue[]),
  };
}

/** `?, ?, ...` for a list of values. */
export function placeholders(values: readonly unknown[]): string {
  return values.map(() => '?').join(', ');
}

/** A moment as it is stored: milliseconds since 1970. */
export function toMs(moment: Date | undefined): number | null {
  return moment === undefined ? null : moment.getTime();
}

/** A stored moment. */
export function toOptionalDate(value: SqlValue | undefined): Date | undefined {
  return typeof value === 'number' ? new Date(value) : undefined;
}

/** A stored moment that is never null. */
export function toDate(value: SqlValue | undefined): Date {
  return new Date(Number(value));
}

/** A stored value of bytes; empty for null. */
export function toBytes(value: SqlValue | undefined): Uint8Array {
  return value instanceof Uint8Array ? value : new Uint8Array(0);
}

/** A stored text that may be null. */
export function toOptionalText(value: SqlValue | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
