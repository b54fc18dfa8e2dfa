import { discard, trimmed } from '../domain/discard.ts';

/** Gathers the bytes of a body up to a limit. */
export interface ByteCollector {
  readonly length: number;
  /** False when the limit would be passed; the chunk is then dropped. */
  push(chunk: Uint8Array): boolean;
  /** All bytes so far. */
  take(): Uint8Array;
}

/**
 * Makes a collector. A single chunk is kept as it is. Several are copied into one growing buffer,
 * so that a body that arrives byte by byte takes no more memory than one that arrives at once.
 */
export function createByteCollector(maxBytes: number): ByteCollector {
  let first: Uint8Array | undefined;
  let buffer = Buffer.alloc(0);
  let length = 0;

  function append(chunk: Uint8Array): void {
    const end = length + chunk.length;
    if (end > buffer.length) {
      const grown = Buffer.allocUnsafe(
        Math.min(maxBytes, Math.max(end, 2 * buffer.length, 16_384)),
      );
      buffer.copy(grown, 0, 0, length);
      discard(buffer);
      buffer = grown;
    }
    buffer.set(chunk, length);
    length = end;
  }

  return {
    get length() {
      return length;
    },
    push(chunk) {
      if (length + chunk.length > maxBytes) return false;
      if (length === 0) {
        first = chunk;
        length = chunk.length;
        return true;
      }
      if (first !== undefined) {
        const start = first;
        first = undefined;
        length = 0;
        append(start);
      }
      append(chunk);
      return true;
    },
    take: () => first ?? trimmed(buffer, length),
  };
}
