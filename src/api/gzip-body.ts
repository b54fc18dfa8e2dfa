import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress, createGzip, createZstdDecompress } from 'node:zlib';
import type { CodedBody } from '../domain/body-coding.ts';

const DECODERS = { br: createBrotliDecompress, zstd: createZstdDecompress } as const;
const CHUNK_BYTES = 64 * 1_024;

/**
 * The body in gzip, for clients that may know nothing else. It is never in memory as a whole without
 * compression. Throws zlib's error when it does not decode.
 */
export async function gzipBody({ coding, bytes }: CodedBody): Promise<Uint8Array> {
  if (coding === 'gzip' || bytes.byteLength === 0) return bytes;
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
