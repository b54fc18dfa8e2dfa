import { constants, type ZstdOptions } from 'node:zlib';
import { Gzip, ZstdCompress } from 'minizlib';
import type { BodyCoding } from '../domain/body-coding.ts';
import type { Steps } from '../domain/in-turns.ts';
import { type Content, contentPieces } from '../domain/result-fields.ts';

/** The codings that bodies are compressed with: gzip for receivers, zstd for keeping. */
export type PackedCoding = Exclude<BodyCoding, 'br'>;

const ZSTD_FAST: ConstructorParameters<typeof ZstdCompress>[0] & ZstdOptions = {
  chunkSize: 64 * 1_024,
  params: { [constants.ZSTD_c_compressionLevel]: 1 },
};

/**
 * The levels that cost least; docs/benchmarks.md has what others cost in bytes and time. A reset takes
 * zstd back to its usual level, which takes hardly more time on a small body.
 */
const CODERS = {
  gzip: {
    createSmall: () => new Gzip({ level: 1, flush: constants.Z_FINISH }),
    createLarge: () => new Gzip({ level: 1 }),
    end: constants.Z_FINISH,
  },
  zstd: {
    createSmall: () => new ZstdCompress({ flush: constants.ZSTD_e_end }),
    createLarge: () => new ZstdCompress(ZSTD_FAST),
    end: constants.ZSTD_e_end,
  },
} as const;

type Compressor = Gzip | ZstdCompress;

/**
 * The compressors of all small bodies. To make one takes as long as to compress a short page, and the
 * garbage collector keeps each, with the page, until its next full run.
 */
const compressors: Partial<Record<PackedCoding, Compressor>> = {};

/** Compresses a small body. */
export function compressSmall(
  { buffer, byteOffset, byteLength }: Uint8Array,
  coding: PackedCoding,
): Uint8Array {
  const compressor = (compressors[coding] ??= CODERS[coding].createSmall());
  compressor.reset();
  compressor.write(Buffer.from(buffer, byteOffset, byteLength));
  const packed = compressor.read();
  if (packed === null) {
    delete compressors[coding];
    throw new Error('a body was not compressed');
  }
  // A copy of the exact length: memory that others share would be copied whole at each change of
  // threads.
  return new Uint8Array(packed);
}

/** Compresses a large body, in steps. */
export function* packSteps(content: Content, coding: PackedCoding): Steps<Uint8Array> {
  const compressor: Compressor = CODERS[coding].createLarge();
  const packed: Buffer[] = [];
  const keep = (): void => {
    const piece = compressor.read();
    if (piece !== null) packed.push(piece);
  };
  for (const { buffer, byteOffset, byteLength } of contentPieces(content)) {
    compressor.write(Buffer.from(buffer, byteOffset, byteLength));
    keep();
    yield;
  }
  compressor.flush(CODERS[coding].end);
  keep();
  // Its memory would otherwise wait for a full collection.
  compressor.close();
  return new Uint8Array(Buffer.concat(packed));
}
