import { discard, trimmed } from '../domain/discard.ts';

/** Gathers the bytes of a body up to a limit. */
export interface ByteCollector {
  readonly length: number;
  /** False when the limit would be passed; the chunk is then dropped. */
  push(chunk: Uint8Array): boolean;
  /** Takes memory for a body of this length, at most the limit, instead of growing towards it. */
  reserve(bytes: number): void;
  /** All bytes so far. */
  take(): Uint8Array;
}

const NOTHING = new Uint8Array(0);
const FIRST_BYTES = 16_384;
/**
 * Memory of a buffer that is longer than {@link LONG_BYTES}. The allocator maps it, and returns it whole. Buffers
 * that grow in smaller steps leave holes between those of other bodies. What is not written to is not resident.
 */
const MAPPED_BYTES = 1_048_576;
const LONG_BYTES = 65_536;

/**
 * Makes a collector. A single chunk is kept as it is. Several are copied into one growing buffer,
 * so that a body that arrives byte by byte takes no more memory than one that arrives at once.
 */
export function createByteCollector(maxBytes: number): ByteCollector {
  let first: Uint8Array | undefined;
  let buffer: Uint8Array = NOTHING;

  function grow(bytes: number): void {
    const grown = Buffer.allocUnsafe(Math.min(maxBytes, bytes));
    grown.set(buffer.subarray(0, collector.length));
    discard(buffer);
    buffer = grown;
  }

  function append(chunk: Uint8Array): void {
    const end = collector.length + chunk.length;
    if (end > buffer.length) {
      grow(Math.max(end, 2 * buffer.length, end > LONG_BYTES ? MAPPED_BYTES : FIRST_BYTES));
    }
    buffer.set(chunk, collector.length);
    collector.length = end;
  }

  /** Copies what was kept as it came, because more follows. */
  function copyFirst(): void {
    if (first === undefined) return;
    const start = first;
    first = undefined;
    collector.length = 0;
    append(start);
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
      copyFirst();
      append(chunk);
      return true;
    },
    reserve(bytes: number): void {
      copyFirst();
      if (bytes > buffer.length) grow(bytes);
    },
    take: () => first ?? trimmed(buffer, collector.length),
  };
  return collector;
}
