/** A line of CSV (RFC 4180) with its end. */
export function csvLine(cells: readonly string[]): string {
  const quoted = cells.map((text) =>
    /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text,
  );
  return `${quoted.join(',')}\r\n`;
}
