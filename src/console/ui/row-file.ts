import { csvLine } from '../../client/csv-line.ts';

/** A row of a file, by the names of its fields. */
export type FileRow = Readonly<Record<string, unknown>>;

/** Rows as NDJSON. */
export function toNdjson(rows: readonly FileRow[]): string {
  return rows.map((row) => `${JSON.stringify(row)}\n`).join('');
}

/** The fields of rows as CSV, with a line of their names. */
export function toCsv(rows: readonly FileRow[], fields: readonly string[]): string {
  const lines = rows.map((row) => csvLine(fields.map((field) => asText(row[field]))));
  return [csvLine(fields), ...lines].join('');
}

/** A leading apostrophe keeps spreadsheets from taking a value as a formula. */
function asText(value: unknown = ''): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return /^[=+@\t\r-]/.test(text) ? `'${text}` : text;
}
