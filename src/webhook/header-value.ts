/**
 * `text` as a header can carry it: all but printable ASCII percent-encoded as UTF-8. A lone surrogate, which has no UTF-8, becomes
 * the replacement character's.
 */
export function headerValue(text: string): string {
  return text
    .trim()
    .replace(/[^\x20-\x7e]+/g, (run) =>
      [...Buffer.from(run)]
        .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
        .join(''),
    );
}
