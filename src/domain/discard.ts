/** Smaller bodies are left to the garbage collector; they may also share memory with others. */
const LARGE_BYTES = 16_384;

/** Whether the view has at least `leastBytes` and covers all of its memory. */
function isWhole(bytes: Uint8Array, leastBytes = LARGE_BYTES): boolean {
  return bytes.byteLength >= leastBytes && bytes.byteLength === bytes.buffer.byteLength;
}

/**
 * Frees the memory of a large body at once instead of at the next garbage collection, which a small
 * heap does not trigger for megabytes outside of it. The view is empty afterwards. Views of a part
 * of their memory are left alone, and those of less than `leastBytes`.
 */
export function discard(bytes: Uint8Array, leastBytes = LARGE_BYTES): void {
  if (!isWhole(bytes, leastBytes) || !(bytes.buffer instanceof ArrayBuffer)) return;
  // The memory is transferred to a buffer that nobody holds, which frees it.
  bytes.buffer.transfer(0);
}

/** The first `length` bytes; the memory behind them is freed when the body is large. */
export function trimmed(bytes: Uint8Array, length: number): Uint8Array {
  if (!isWhole(bytes) || !(bytes.buffer instanceof ArrayBuffer)) return bytes.subarray(0, length);
  return new Uint8Array(bytes.buffer.transfer(length));
}
