import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import { Gzip } from 'minizlib';
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
 * The compressor of all small bodies. To make one takes as long as to compress a short page, and the
 * garbage collector keeps each, with the page, until its next full run.
 */
let compressor = createCompressor();

function createCompressor(): Gzip {
  return new Gzip({ level: LEVEL, flush: constants.Z_FINISH });
}

/**
 * Compresses with gzip: small bodies at once, large ones outside the event loop and one after the
 * other, because each needs its own size in memory again.
 */
export async function compress(body: Uint8Array): Promise<Uint8Array> {
  if (body.byteLength <= SMALL_BYTES) return compressSmall(body);
  const compressed = last.then(() => compressLarge(body));
  last = compressed.catch(() => undefined);
  return compressed;
}

function compressSmall({ buffer, byteOffset, byteLength }: Uint8Array): Uint8Array {
  compressor.reset();
  compressor.write(Buffer.from(buffer, byteOffset, byteLength));
  const packed = compressor.read();
  if (packed === null) {
    compressor = createCompressor();
    throw new Error('a body was not compressed');
  }
  // A copy of the exact length: memory that others share would be copied whole at each change of
  // threads.
  return new Uint8Array(packed);
}

async function compressLarge(body: Uint8Array): Promise<Uint8Array> {
  // Incompressible bytes grow by five in each 16 KiB. Output in one chunk need not be copied.
  const chunkSize = body.byteLength + (body.byteLength >> 10) + 1_024;
  const packed = await inThread(body, { level: LEVEL, chunkSize });
  return packed.byteOffset === 0
    ? trimmed(new Uint8Array(packed.buffer), packed.byteLength)
    : packed;
}
