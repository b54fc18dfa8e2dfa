import { plainText } from '../client/message-json.ts';

/** A line of CSV, without its end. */
export function csvText(values: readonly unknown[]): string {
  return values
    .map((value) => {
      const text = plainText(value);
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    })
    .join(',');
}
