/** How a text begins that a spreadsheet takes for a formula. A number with a sign is not one. */
const FORMULA = /^(?:[=+@\t\r]|-(?![\d.]+$))/;

/**
 * A line of CSV (RFC 4180) with its end. A cell that a spreadsheet would run as a formula gets an
 * apostrophe before it, as texts of sites come here; JSON has them as they are.
 */
export function csvLine(cells: readonly string[]): string {
  const quoted = cells.map((cell) => {
    const text = FORMULA.test(cell) ? `'${cell}` : cell;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  });
  return `${quoted.join(',')}\r\n`;
}
