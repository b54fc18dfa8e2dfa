import { createGunzip } from 'node:zlib';
import type { RequestBody } from '../net/http-client.ts';

/** A longer page is never held as a whole, as only its compressed bytes count in the memory budget. */
const WHOLE_BYTES = 65_536;
/** Takes a third less time for a usual page than zlib's own 16 KiB. */
const PIECE_BYTES = 131_072;

/** The pieces of what gzip bytes hold. Throws what zlib throws when they do not decompress. */
export async function* unpackedPieces(packed: Uint8Array): AsyncGenerator<Uint8Array, void> {
  const unpacked = createGunzip({ chunkSize: PIECE_BYTES });
  unpacked.end(packed);
  yield* unpacked as AsyncIterable<Uint8Array>;
}

/**
 * What gzip bytes hold, as a body to send. A long one is decompressed again, piece by piece, each time it
 * is read. Throws what zlib throws when the bytes do not decompress.
 */
export async function plainBody(packed: Uint8Array): Promise<RequestBody> {
  const pieces: Uint8Array[] = [];
  let byteLength = 0;
  for await (const piece of unpackedPieces(packed)) {
    byteLength += piece.byteLength;
    if (byteLength <= WHOLE_BYTES) pieces.push(piece);
  }
  if (byteLength <= WHOLE_BYTES) return Buffer.concat(pieces);
  return { byteLength, [Symbol.asyncIterator]: () => unpackedPieces(packed) };
}
