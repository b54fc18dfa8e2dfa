/** A row of a file, by the names of its fields. */
export type FileRow = Readonly<Record<string, unknown>>;

/** Rows as NDJSON. */
export function toNdjson(rows: readonly FileRow[]): string {
  return rows.map((row) => `${JSON.stringify(row)}\n`).join('');
}

/** The fields of rows as CSV, with a line of their names. */
export function toCsv(rows: readonly FileRow[], fields: readonly string[]): string {
  const lines = rows.map((row) => fields.map((field) => cell(row[field])).join(','));
  return [fields.join(','), ...lines].map((line) => `${line}\r\n`).join('');
}

/** A leading apostrophe keeps spreadsheets from taking a value as a formula. */
function cell(value: unknown = ''): string {
  const plain = typeof value === 'string' ? value : JSON.stringify(value);
  const text = /^[=+@\t\r-]/.test(plain) ? `'${plain}` : plain;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
