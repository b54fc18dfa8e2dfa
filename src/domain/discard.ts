/**
 * A full record of TLS. Smaller bodies and reads are left to the garbage collector; they may also share
 * memory with others.
 */
const LARGE_BYTES = 16_384;

/** Whether the view is large and covers all of its memory. */
function isWhole(bytes: Uint8Array): boolean {
  return bytes.byteLength >= LARGE_BYTES && bytes.byteLength === bytes.buffer.byteLength;
}

/**
 * Frees the memory of a large body at once instead of at the next garbage collection, which a small
 * heap does not trigger for megabytes outside of it. The view is empty afterwards. Views of a part
 * of their memory are left alone.
 */
export function discard(bytes: Uint8Array): void {
  if (!isWhole(bytes) || !(bytes.buffer instanceof ArrayBuffer)) return;
  // The memory is transferred to a buffer that nobody holds, which frees it.
  bytes.buffer.transfer(0);
}

/** The first `length` bytes; the memory behind them is freed when the body is large. */
export function trimmed(bytes: Uint8Array, length: number): Uint8Array {
  if (!isWhole(bytes) || !(bytes.buffer instanceof ArrayBuffer)) return bytes.subarray(0, length);
  return new Uint8Array(bytes.buffer.transfer(length));
}
