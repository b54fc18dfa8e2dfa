/** Longest line with the size of a chunk, its extensions included. */
const MAX_LINE = 4_096;
const SIZE = /^([\da-f]{1,8})[ \t]*(?:;.*)?\r\n$/i;
/** What may become a size when more comes. */
const BEGINNING = /^[\da-f]{0,8}[ \t]*(?:;.*)?\r?$/i;
const NEWLINE = 0x0a;
const NOTHING = Buffer.alloc(0);

/**
 * Makes the function that rewrites a body in chunks, piece by piece, so that a strict parser takes
 * sizes with spaces behind them, or with extensions. What is no size is passed on as it is, with all
 * that follows.
 */
export function createChunkRepair(): (bytes: Buffer) => Buffer {
  /** The beginning of a line whose end has not come. */
  let line: Buffer = NOTHING;
  /** Bytes to pass on before the next line. */
  let left = 0;

  return (bytes) => {
    const parts: Buffer[] = [];
    for (let at = 0; at < bytes.length; ) {
      if (left > 0) {
        const part = bytes.subarray(at, at + left);
        parts.push(part);
        at += part.length;
        left -= part.length;
        continue;
      }
      const end = bytes.indexOf(NEWLINE, at);
      line = Buffer.concat([line, bytes.subarray(at, end < 0 ? undefined : end + 1)]);
      at = end < 0 ? bytes.length : end + 1;
      const text = line.toString('latin1', 0, MAX_LINE);
      if (end < 0 && line.length <= MAX_LINE && BEGINNING.test(text)) break;
      const size = SIZE.exec(text)?.[1];
      const length = size === undefined ? 0 : Number.parseInt(size, 16);
      // Trailers follow the last chunk, and two bytes each other one.
      left = length === 0 ? Number.POSITIVE_INFINITY : length + 2;
      parts.push(size === undefined ? line : Buffer.from(`${size}\r\n`));
      line = NOTHING;
    }
    return Buffer.concat(parts);
  };
}
