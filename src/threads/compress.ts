import { promisify } from 'node:util';
import { gzip, gzipSync } from 'node:zlib';
import { trimmed } from '../domain/discard.ts';

const inThread = promisify(gzip);
// Level 6 costs twice the time of level 3 for a twentieth fewer bytes on HTML.
const LEVEL = 3;
// Up to here compressing takes well under a millisecond, and handing it to zlib's thread pool costs six times the work itself.
const SMALL_BYTES = 65_536;

let last: Promise<unknown> = Promise.resolve();

/** gzip. Small bodies at once; large ones outside the event loop, one after the other, because each takes its size again. */
export async function compress(body: Uint8Array): Promise<Uint8Array> {
  // A copy of the exact length: the whole 16 KiB buffer behind zlib's view would be copied at
  // each change of threads.
  if (body.byteLength <= SMALL_BYTES) return new Uint8Array(gzipSync(body, { level: LEVEL }));
  const compressed = last.then(() => compressLarge(body));
  last = compressed.catch(() => undefined);
  return compressed;
}

async function compressLarge(body: Uint8Array): Promise<Uint8Array> {
  // What does not compress grows by five bytes in each 16 KiB. One chunk is the result itself: nothing is gathered and copied.
  const chunkSize = body.byteLength + (body.byteLength >> 10) + 1_024;
  const packed = await inThread(body, { level: LEVEL, chunkSize });
  return packed.byteOffset === 0
    ? trimmed(new Uint8Array(packed.buffer), packed.byteLength)
    : packed;
}
