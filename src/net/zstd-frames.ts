import type { Transform } from 'node:stream';
import { createZstdDecompress, type ZstdOptions } from 'node:zlib';
import { httpError } from './http-failures.ts';

const FRAME = 0xfd2fb528;
/** The last four bits are free. */
const SKIPPABLE = 0x184d2a50;
const DICTIONARY_BYTES = [0, 1, 2, 4] as const;
const CONTENT_SIZE_BYTES = [0, 2, 4, 8] as const;
const BLOCK_HEADER_BYTES = 3;
const RLE_BLOCK = 1;
/** A decoder takes each frame by itself, so a body of empty ones would take it minutes. */
const MAX_FRAMES = 1_000;

/** Bytes of a frame: those to read, or the number of those to pass over. */
type Wanted = { readonly read: number; readonly isBlockHeader?: true } | { readonly skip: number };

/**
 * Decodes all frames of zstd data (RFC 8878, 3.1), as Chromium does, and drops what follows the last one. Node's own
 * decoder ends with a frame whose last byte arrives together with others. Fails for more than 1,000 frames.
 */
export function createZstdFrames(options: ZstdOptions): Transform {
  const decoder = createZstdDecompress(options);
  const write = decoder._transform.bind(decoder);
  let end = createFrameEnd();
  let frames = 1;
  /** The beginning of what may be another frame. */
  let start: Buffer | undefined;
  let hasEnded = false;

  /** Writes the bytes of the frame, then those of the next one. */
  function writeFrames(bytes: Buffer, encoding: BufferEncoding, done: Done): void {
    const length = end.find(bytes);
    if (length === undefined) return write(bytes, encoding, done);
    write(bytes.subarray(0, length), encoding, (error) => {
      if (error) return done(error);
      end = createFrameEnd();
      start = Buffer.alloc(0);
      begin(bytes.subarray(length), encoding, done);
    });
  }

  function begin(bytes: Buffer, encoding: BufferEncoding, done: Done): void {
    start = Buffer.concat([start ?? Buffer.alloc(0), bytes]);
    if (start.length < 4) return done();
    const next = start;
    start = undefined;
    if (!isFrame(next.readUInt32LE())) {
      hasEnded = true;
      return done();
    }
    frames += 1;
    if (frames > MAX_FRAMES) return done(httpError('decoding_failed'));
    writeFrames(next, encoding, done);
  }

  decoder._transform = (chunk: Buffer, encoding, done) => {
    // The end of the body comes as an empty piece.
    if (chunk.length === 0) write(chunk, encoding, done);
    else if (hasEnded) done();
    else if (start === undefined) writeFrames(chunk, encoding, done);
    else begin(chunk, encoding, done);
  };
  return decoder;
}

type Done = Parameters<Transform['_transform']>[2];

function isFrame(magic: number): boolean {
  return magic === FRAME || (magic & 0xfffffff0) === SKIPPABLE;
}

/** Looks for the end of one frame, piece by piece. */
function createFrameEnd(): {
  /** How many of these bytes belong to the frame; undefined when all do, and more may follow. */
  find(bytes: Buffer): number | undefined;
} {
  const parts = frameParts();
  let wanted = parts.next();
  let read: Buffer = Buffer.alloc(0);
  let left = 0;

  function next(bytes: Buffer): void {
    wanted = parts.next(bytes);
    read = Buffer.alloc(0);
    if (wanted.done !== true && 'skip' in wanted.value) left = wanted.value.skip;
  }

  return {
    find(bytes) {
      let at = 0;
      while (wanted.done !== true) {
        const part = wanted.value;
        if ('isBlockHeader' in part && read.length === 0) at = passBlocks(bytes, at);
        const missing = 'read' in part ? part.read - read.length : left;
        const taken = Math.min(missing, bytes.length - at);
        if ('read' in part) {
          const piece = bytes.subarray(at, at + taken);
          // Most parts come in one piece. One that does not is copied, and outlives its bytes.
          read = read.length === 0 && taken === missing ? piece : Buffer.concat([read, piece]);
        } else left -= taken;
        at += taken;
        if (taken < missing) return undefined;
        next(read);
      }
      return at;
    },
  };
}

function isLastBlock(header: number): boolean {
  return (header & 1) === 1;
}

/** Bytes of a block behind its header. */
function blockBytes(header: number): number {
  return ((header >> 1) & 3) === RLE_BLOCK ? 1 : header >> 3;
}

/**
 * Passes over the blocks that these bytes have whole, up to the last one of the frame. A body can have 300,000 empty
 * blocks for each megabyte; one by one, as parts, they took a hundred times as long.
 */
function passBlocks(bytes: Buffer, from: number): number {
  let at = from;
  while (at + BLOCK_HEADER_BYTES <= bytes.length) {
    const header = bytes.readUIntLE(at, BLOCK_HEADER_BYTES);
    const end = at + BLOCK_HEADER_BYTES + blockBytes(header);
    if (isLastBlock(header) || end > bytes.length) break;
    at = end;
  }
  return at;
}

/** The parts of a frame (RFC 8878, 3.1.1 and 3.1.2). What is no frame has no end. */
function* frameParts(): Generator<Wanted, void, Buffer> {
  const magic = (yield { read: 4 }).readUInt32LE();
  if (magic !== FRAME) {
    const skip = isFrame(magic) ? (yield { read: 4 }).readUInt32LE() : Number.POSITIVE_INFINITY;
    yield { skip };
    return;
  }
  const descriptor = (yield { read: 1 }).readUInt8();
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const dictionaryBytes = DICTIONARY_BYTES[(descriptor & 3) as 0 | 1 | 2 | 3];
  const sizeFlag = (descriptor >> 6) as 0 | 1 | 2 | 3;
  const sizeBytes = sizeFlag === 0 && isSingleSegment ? 1 : CONTENT_SIZE_BYTES[sizeFlag];
  yield { skip: (isSingleSegment ? 0 : 1) + dictionaryBytes + sizeBytes };
  for (let isLast = false; !isLast; ) {
    const read = yield { read: BLOCK_HEADER_BYTES, isBlockHeader: true };
    const header = read.readUIntLE(0, BLOCK_HEADER_BYTES);
    isLast = isLastBlock(header);
    yield { skip: blockBytes(header) };
  }
  if ((descriptor & 4) !== 0) yield { skip: 4 };
}
