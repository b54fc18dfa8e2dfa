/** What is written at once: small enough that a reader of 64 Kbit/s is no stalled one. */
export const PIECE_BYTES = 256 * 1024;

/** A client that takes nothing of what is written for so long is gone. */
export const STALL_MS = 30_000;

/**
 * The same bytes in pieces of at most {@link PIECE_BYTES}. Calls `onStall` when the next piece has not been asked for within `stallMs`,
 * which is when the one before was written.
 */
export async function* paced(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  onStall: () => void,
  stallMs: number = STALL_MS,
): AsyncGenerator<Uint8Array, void, undefined> {
  let timer: NodeJS.Timeout | undefined;
  try {
    for await (const chunk of chunks) {
      for (let at = 0; at < chunk.byteLength || at === 0; at += PIECE_BYTES) {
        timer = setTimeout(onStall, stallMs);
        yield chunk.byteLength <= PIECE_BYTES ? chunk : chunk.subarray(at, at + PIECE_BYTES);
        clearTimeout(timer);
      }
    }
  } finally {
    clearTimeout(timer);
  }
}
