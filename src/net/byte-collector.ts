import { discard, trimmed } from '../domain/discard.ts';

/** Gathers the bytes of a body up to a limit. */
export interface ByteCollector {
  readonly length: number;
  /** False when the limit would be passed; the chunk is then dropped. */
  push(chunk: Uint8Array): boolean;
  /** All bytes so far. */
  take(): Uint8Array;
}

const NOTHING = new Uint8Array(0);

/**
 * Makes a collector. A single chunk is kept as it is. Several are copied into one growing buffer,
 * so that a body that arrives byte by byte takes no more memory than one that arrives at once.
 */
export function createByteCollector(maxBytes: number): ByteCollector {
  let first: Uint8Array | undefined;
  let buffer: Uint8Array = NOTHING;

  function append(chunk: Uint8Array): void {
    const { length } = collector;
    const end = length + chunk.length;
    if (end > buffer.length) {
      const grown = Buffer.allocUnsafe(
        Math.min(maxBytes, Math.max(end, 2 * buffer.length, 16_384)),
      );
      grown.set(buffer.subarray(0, length));
      discard(buffer);
      buffer = grown;
    }
    buffer.set(chunk, length);
    collector.length = end;
  }

  const collector = {
    length: 0,
    push(chunk: Uint8Array): boolean {
      if (collector.length + chunk.length > maxBytes) return false;
      if (collector.length === 0) {
        first = chunk;
        collector.length = chunk.length;
        return true;
      }
      if (first !== undefined) {
        const start = first;
        first = undefined;
        collector.length = 0;
        append(start);
      }
      append(chunk);
      return true;
    },
    take: () => first ?? trimmed(buffer, collector.length),
  };
  return collector;
}
