/** Most bytes of one write: a reader of 64 Kbit/s takes them before it counts as stalled. */
export const PIECE_BYTES = 256 * 1024;

/** A client that reads nothing of what was written for this long is disconnected. */
export const STALL_MS = 30_000;

/**
 * Yields the same bytes in pieces of at most {@link PIECE_BYTES}. Calls `onStall` when the next
 * piece has not been requested within `stallMs`: the writer requests it after writing the previous
 * one.
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
