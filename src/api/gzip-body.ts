import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  brotliDecompressSync,
  createBrotliDecompress,
  createGzip,
  createZstdDecompress,
  gzipSync,
  zstdDecompressSync,
} from 'node:zlib';
import type { CodedBody } from '../domain/body-coding.ts';

const DECODERS = { br: createBrotliDecompress, zstd: createZstdDecompress } as const;
const SHORT_DECODERS = { br: brotliDecompressSync, zstd: zstdDecompressSync } as const;
const CHUNK_BYTES = 64 * 1_024;
/** A body that decodes to no more is converted at once, in a millisecond. Streams take several. */
const SHORT_BYTES = 128 * 1_024;

/**
 * The body in gzip, for clients that may know nothing else. A long one is never in memory as a whole
 * without compression. Throws zlib's error when it does not decode.
 */
export async function gzipBody({ coding, bytes }: CodedBody): Promise<Uint8Array> {
  if (coding === 'gzip' || bytes.byteLength === 0) return bytes;
  const short = bytes.byteLength > SHORT_BYTES ? undefined : decodeShort({ coding, bytes });
  if (short !== undefined) {
    // A call may read many pages: other work has its turn between them.
    await nextTurn();
    // A copy of the exact length: what zlib returns keeps 16 KiB.
    return new Uint8Array(gzipSync(short, { level: 1 }));
  }
  const chunks: Buffer[] = [];
  await pipeline(
    Readable.from([bytes]),
    DECODERS[coding]({ chunkSize: CHUNK_BYTES }),
    createGzip({ level: 1, chunkSize: CHUNK_BYTES }),
    async (packed: AsyncIterable<Buffer>) => {
      for await (const chunk of packed) chunks.push(chunk);
    },
  );
  return Buffer.concat(chunks);
}

/** Undefined for a body that decodes to more than a short one. */
function decodeShort({
  coding,
  bytes,
}: CodedBody & { readonly coding: keyof typeof SHORT_DECODERS }): Buffer | undefined {
  try {
    return SHORT_DECODERS[coding](bytes, { maxOutputLength: SHORT_BYTES });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return undefined;
    throw error;
  }
}
