import {
  brotliDecompressSync,
  constants,
  crc32,
  inflateRawSync,
  type ZlibOptions,
  zstdDecompressSync,
} from 'node:zlib';
import { BODY_CODINGS, type BodyCoding } from '../domain/body-coding.ts';
import { ZSTD_WINDOW_LOG } from './content-decoder.ts';
import { gzipHeaderLength, isGzip } from './gzip-header.ts';

const TRAILER_BYTES = 8;

/** The coding that a value of `Content-Encoding` names; undefined for any other, and for several. */
export function codingOf(encodings: readonly string[]): BodyCoding | undefined {
  const [name = '', ...more] = encodings;
  if (more.length > 0) return undefined;
  return BODY_CODINGS.find((coding) => coding === name || `x-${coding}` === name);
}

/**
 * Decodes a whole body at once, which costs a fifth of a stream. Undefined unless the bytes are one
 * complete body in the coding that decodes to `maxBytes` at most, with nothing behind it: decoding
 * them again always gives the same. Everything else is left to a `ContentDecoder`, which says why.
 */
export function decodeWhole(
  coding: BodyCoding,
  coded: Uint8Array,
  maxBytes: number,
): Uint8Array | undefined {
  try {
    const bytes = Buffer.from(coded.buffer, coded.byteOffset, coded.byteLength);
    return coding === 'gzip' ? decodeGzip(bytes, maxBytes) : DECODERS[coding](bytes, maxBytes);
  } catch {
    // Broken, cut short, or too long.
    return undefined;
  }
}

/** One member, whose length and checksum are right. */
function decodeGzip(coded: Buffer, maxBytes: number): Uint8Array | undefined {
  const at = isGzip(coded) ? gzipHeaderLength(coded) : undefined;
  const end = coded.length - TRAILER_BYTES;
  if (at === undefined || end <= at) return undefined;
  const length = coded.readUInt32LE(end + 4);
  if (length === 0 || length > maxBytes) return undefined;
  const decoded = decodeAll(inflateRawSync, coded.subarray(at, end), { maxOutputLength: length });
  const isRight = decoded?.length === length && crc32(decoded) === coded.readUInt32LE(end);
  return isRight ? decoded : undefined;
}

const DECODERS = {
  br: (coded: Buffer, maxOutputLength: number) =>
    decodeAll(brotliDecompressSync, coded, { maxOutputLength }),
  zstd: (coded: Buffer, maxOutputLength: number) =>
    decodeAll(zstdDecompressSync, coded, {
      maxOutputLength,
      params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG },
    }),
};

interface WithEngine {
  readonly buffer: Buffer<ArrayBuffer>;
  /** `bytesWritten`: how much of the input it has read. */
  readonly engine: { readonly bytesWritten: number };
}

/** More than Node takes from memory that others share. */
const OWN_BYTES = 128 * 1_024;

/**
 * Undefined when the decoder did not read all of the bytes. It gets memory for more than the longest
 * output, so that it takes no second piece, and what is not used is given back at once. Memory that waits
 * for the garbage collector makes that run more often.
 */
function decodeAll<Options extends ZlibOptions & { readonly maxOutputLength: number }>(
  decode: (coded: Buffer, options: Options) => unknown,
  coded: Buffer,
  options: Options,
): Uint8Array | undefined {
  const chunkSize = Math.max(options.maxOutputLength + 1, OWN_BYTES);
  // With `info` the functions return their engine, too.
  const { buffer, engine } = decode(coded, { ...options, chunkSize, info: true }) as WithEngine;
  if (engine.bytesWritten !== coded.length) return undefined;
  const isOwn = buffer.byteOffset === 0 && buffer.buffer.byteLength === chunkSize;
  return isOwn ? new Uint8Array(buffer.buffer.transfer(buffer.length)) : buffer;
}
