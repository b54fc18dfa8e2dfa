import { constants } from 'node:zlib';
import { Gzip } from 'minizlib';
import type { Steps } from '../domain/in-turns.ts';
import { type Content, contentPieces } from '../domain/result-fields.ts';

/** Level 6 takes twice the time of level 3 for a twentieth fewer bytes of HTML. */
const LEVEL = 3;

/**
 * The compressor of all small bodies. To make one takes as long as to compress a short page, and the
 * garbage collector keeps each, with the page, until its next full run.
 */
let compressor = createCompressor();

function createCompressor(): Gzip {
  return new Gzip({ level: LEVEL, flush: constants.Z_FINISH });
}

/** Compresses a small body with gzip. */
export function compressSmall({ buffer, byteOffset, byteLength }: Uint8Array): Uint8Array {
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

/** Compresses a large body with gzip, in steps. */
export function* packSteps(content: Content): Steps<Uint8Array> {
  const gzip = new Gzip({ level: LEVEL });
  const packed: Buffer[] = [];
  const keep = (): void => {
    const piece = gzip.read();
    if (piece !== null) packed.push(piece);
  };
  for (const { buffer, byteOffset, byteLength } of contentPieces(content)) {
    gzip.write(Buffer.from(buffer, byteOffset, byteLength));
    keep();
    yield;
  }
  gzip.flush(constants.Z_FINISH);
  keep();
  // Its memory would otherwise wait for a full collection.
  gzip.close();
  return new Uint8Array(Buffer.concat(packed));
}
