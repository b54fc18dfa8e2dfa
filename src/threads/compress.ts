import { promisify } from 'node:util';
import { gzip, gzipSync, type ZlibOptions } from 'node:zlib';
import { trimmed } from '../domain/discard.ts';

const inThread = promisify(gzip);
/** Level 6 takes twice the time of level 3 for a twentieth fewer bytes of HTML. */
const LEVEL = 3;
/**
 * Compressing a body up to this takes well under a millisecond; handing it to zlib's thread pool
 * would cost six times as much.
 */
const SMALL_BYTES = 65_536;

let last: Promise<unknown> = Promise.resolve();

/**
 * Compresses with gzip: small bodies at once, large ones outside the event loop and one after the
 * other, because each needs its own size in memory again.
 */
export async function compress(body: Uint8Array): Promise<Uint8Array> {
  // A copy of the exact length: the whole 16 KiB buffer behind zlib's view would be copied at
  // each change of threads.
  if (body.byteLength <= SMALL_BYTES) return new Uint8Array(gzipSync(body, sizedFor(body)));
  const compressed = last.then(() => compressLarge(body));
  last = compressed.catch(() => undefined);
  return compressed;
}

/**
 * zlib takes 256 KiB for each body and an output of 16 KiB, whatever its length, which cost as much
 * garbage collection as a short body costs to compress.
 */
function sizedFor({ byteLength }: Uint8Array): ZlibOptions {
  const memory = byteLength <= 16_384 ? { windowBits: 14, memLevel: 7 } : {};
  // Text becomes less than half as long.
  return { level: LEVEL, chunkSize: Math.max(1_024, byteLength >> 1), ...memory };
}

async function compressLarge(body: Uint8Array): Promise<Uint8Array> {
  // Incompressible bytes grow by five in each 16 KiB. Output in one chunk need not be copied.
  const chunkSize = body.byteLength + (body.byteLength >> 10) + 1_024;
  const packed = await inThread(body, { level: LEVEL, chunkSize });
  return packed.byteOffset === 0
    ? trimmed(new Uint8Array(packed.buffer), packed.byteLength)
    : packed;
}
