import { constants, gunzipSync } from 'node:zlib';
import { Gunzip } from 'minizlib';

/**
 * Compressed bodies up to this are decompressed at once: that costs less than a stream, and they
 * hold a few megabytes at most.
 */
const SMALL_BYTES = 16_384;

/**
 * The decompressor of all short bodies. To make one takes a third of the time that a usual page
 * takes, and the garbage collector keeps each until its next full run.
 */
let decompressor = createDecompressor();

function createDecompressor(): Gunzip {
  return new Gunzip({ flush: constants.Z_FINISH });
}

/** What a short gzip body holds; undefined for a longer one. Throws zlib's error when it is broken. */
export function unpackShort(bytes: Uint8Array): Uint8Array | undefined {
  const { buffer, byteOffset, byteLength } = bytes;
  if (byteLength > SMALL_BYTES) return undefined;
  try {
    decompressor.reset();
    decompressor.write(Buffer.from(buffer, byteOffset, byteLength));
    const plain = decompressor.read();
    if (plain !== null) return plain;
  } catch {
    // What is wrong with them is said below.
  }
  // An error leaves its traces in the object; an empty body is not an error, and looks the same.
  decompressor = createDecompressor();
  return gunzipSync(bytes);
}
