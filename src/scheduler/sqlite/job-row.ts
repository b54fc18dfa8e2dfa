import { type JobParameters, toJobId } from 'agenda';

/** One row as SQLite returns it. */
export type Row = Record<string, unknown>;

/** Runs one SQL statement of SQLite's dialect and returns its rows; those of `RETURNING` for a write. */
export type SqlQuery = (sql: string, params: readonly unknown[]) => Promise<Row[]>;

type SqlValue = string | number | null;

interface Column {
  readonly column: string;
  readonly type: 'TEXT' | 'INTEGER';
  readonly encode: (value: unknown) => SqlValue;
  readonly decode: (value: unknown) => unknown;
}

const text = { type: 'TEXT', encode: (v: unknown) => v as string, decode: (v: unknown) => v };
const integer = { type: 'INTEGER', encode: (v: unknown) => v as number, decode: Number };
const json = {
  type: 'TEXT',
  encode: (v: unknown) => JSON.stringify(v),
  decode: (v: unknown) => JSON.parse(String(v)) as unknown,
};
const flag = {
  type: 'INTEGER',
  encode: (v: unknown) => (v ? 1 : 0),
  decode: (v: unknown) => v === 1,
};
const date = {
  type: 'INTEGER',
  encode: (v: unknown) => new Date(v as Date).getTime(),
  decode: (v: unknown) => new Date(Number(v)),
};

const columns: Readonly<Record<string, Column>> = {
  name: { column: 'name', ...text },
  type: { column: 'type', ...text },
  priority: { column: 'priority', ...integer },
  nextRunAt: { column: 'next_run_at', ...date },
  data: { column: 'data', ...json },
  lockedAt: { column: 'locked_at', ...date },
  lastRunAt: { column: 'last_run_at', ...date },
  lastFinishedAt: { column: 'last_finished_at', ...date },
  failedAt: { column: 'failed_at', ...date },
  failCount: { column: 'fail_count', ...integer },
  failReason: { column: 'fail_reason', ...text },
  repeatInterval: { column: 'repeat_interval', ...json },
  repeatTimezone: { column: 'repeat_timezone', ...text },
  repeatAt: { column: 'repeat_at', ...text },
  disabled: { column: 'disabled', ...flag },
  progress: { column: 'progress', ...integer },
  fork: { column: 'fork', ...flag },
  debounceStartedAt: { column: 'debounce_started_at', ...date },
  startDate: { column: 'start_date', ...date },
  endDate: { column: 'end_date', ...date },
  skipDays: { column: 'skip_days', ...json },
  lastModifiedBy: { column: 'last_modified_by', ...text },
} as const as Readonly<Record<string, Column>>;

/** Fields that a save leaves alone when they are absent; all others become empty, as in Agenda's MongoDB repository. */
const keptWhenAbsent: ReadonlySet<string> = new Set([
  'name',
  'type',
  'priority',
  'nextRunAt',
  'data',
]);

/** The statements that make the table and its indexes; harmless when they exist. */
export const schema: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS agenda_jobs (
    id TEXT PRIMARY KEY,
    task TEXT UNIQUE,
    ${Object.values(columns)
      .map(({ column, type }) => `${column} ${type}`)
      .join(',\n    ')}
  ) WITHOUT ROWID`,
  // Polling reads one end of each; a locked or a later job costs it nothing.
  `CREATE INDEX IF NOT EXISTS agenda_jobs_due ON agenda_jobs (name, next_run_at, priority DESC)
    WHERE locked_at IS NULL`,
  `CREATE INDEX IF NOT EXISTS agenda_jobs_locked ON agenda_jobs (name, locked_at)
    WHERE locked_at IS NOT NULL`,
];

/** The column of a job's field; undefined when it has none. */
export function columnOf(field: string): string | undefined {
  return columns[field]?.column;
}

/** A field's value as SQLite keeps it: dates in milliseconds, data as JSON (so a date inside `data` comes back as text). */
export function encodeField(field: string, value: unknown): SqlValue {
  return value === undefined || value === null ? null : (columns[field]?.encode(value) ?? null);
}

/** Column names and values of a save, in step. */
export function columnsFromJob(
  job: Readonly<Record<string, unknown>>,
  lastModifiedBy: string | undefined,
): { readonly names: string[]; readonly values: SqlValue[] } {
  const fields = Object.keys(columns).filter(
    (field) => job[field] !== undefined || !keptWhenAbsent.has(field),
  );
  return {
    names: fields.map((field) => columns[field]?.column ?? ''),
    values: fields.map((field) =>
      field === 'lastModifiedBy' ? (lastModifiedBy ?? null) : encodeField(field, job[field]),
    ),
  };
}

/** The job of a row. Empty columns are absent, but for `nextRunAt`, which is null. */
export function jobFromRow(row: Row): JobParameters {
  const job: Record<string, unknown> = { _id: toJobId(String(row['id'])), nextRunAt: null };
  for (const [field, { column, decode }] of Object.entries(columns)) {
    const value = row[column];
    if (value !== null && value !== undefined) job[field] = decode(value);
  }
  return job as unknown as JobParameters;
}
