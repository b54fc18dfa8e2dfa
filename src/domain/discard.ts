/** Smaller ones are left to the garbage collector; they may share their memory with others, too. */
const LARGE_BYTES = 65_536;

/** Whether the view is large and the only one of its memory, as far as its size tells. */
function isWhole(bytes: Uint8Array): boolean {
  return bytes.byteLength >= LARGE_BYTES && bytes.byteLength === bytes.buffer.byteLength;
}

/**
 * Gives the memory of a large body back at once, instead of when garbage is next collected: a heap
 * that is small sees no reason to collect the many megabytes outside of it. The view is empty
 * afterwards. Leaves views of a part of their memory alone.
 */
export function discard(bytes: Uint8Array): void {
  if (!isWhole(bytes) || !(bytes.buffer instanceof ArrayBuffer)) return;
  // Handed to nobody, the memory is freed.
  bytes.buffer.transfer(0);
}

/** The first `length` bytes as a view of memory of their own: what follows them is given back. */
export function trimmed(bytes: Uint8Array, length: number): Uint8Array {
  if (!isWhole(bytes) || !(bytes.buffer instanceof ArrayBuffer)) return bytes.subarray(0, length);
  return new Uint8Array(bytes.buffer.transfer(length));
}
