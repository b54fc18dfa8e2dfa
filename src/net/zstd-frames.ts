import type { Transform } from 'node:stream';
import { createZstdDecompress, type ZstdOptions } from 'node:zlib';
import { httpError } from './http-failures.ts';

/**
 * What is expected next (RFC 8878, 3.1). `size` and `skipped` are of frames without content, `other` is
 * data that does not begin with a frame, `rest` what follows the last one.
 */
type Part =
  | 'magic'
  | 'descriptor'
  | 'header'
  | 'block'
  | 'content'
  | 'size'
  | 'skipped'
  | 'other'
  | 'rest';

/** The parts that the decoder gets. */
const DELIVERED: ReadonlySet<Part> = new Set(['descriptor', 'header', 'block', 'content', 'other']);

const MAGIC_BYTES = 4;
const BLOCK_HEADER_BYTES = 3;
const CHECKSUM_BYTES = 4;
const MAGIC = 0xfd2fb528;
/** Of frames without content; the last four bits are free. */
const SKIPPABLE = 0x184d2a50;
const SKIPPABLE_MASK = 0xfffffff0;
/** The longest header of a frame has 13 bytes. */
const MAX_FIELD_BYTES = 16;
const RUN_BLOCK = 1;
const DICTIONARY_BYTES = [0, 1, 2, 4] as const;
/** Each frame is a write of its own: millions of empty ones would take minutes. */
const MAX_FRAMES = 20_000;
const NOTHING = Buffer.alloc(0);

/**
 * Decodes all frames of zstd data, as Chromium does, and drops what follows them. Node's own decoder
 * drops what follows the first frame in the same write.
 */
export function createZstdDecoder(options: ZstdOptions): Transform {
  const decoder = createZstdDecompress(options);
  const write = decoder._transform.bind(decoder);
  const frames = createZstdFrames();
  decoder._transform = (chunk: Buffer, encoding, done) => {
    // The end is an empty chunk.
    const pieces = chunk.length === 0 ? [...frames.end(), chunk] : frames.split(chunk);
    if (frames.count > MAX_FRAMES) return done(httpError('decoding_failed'));
    const writeFrom = (at: number): void => {
      const piece = pieces[at];
      if (piece === undefined) return done();
      write(piece, encoding, (error) => (error ? done(error) : writeFrom(at + 1)));
    };
    writeFrom(0);
  };
  return decoder;
}

/** Divides zstd data that arrives in pieces into its frames. */
interface ZstdFrames {
  /** Frames that have begun. */
  readonly count: number;
  /**
   * The parts of a piece, each of one frame. Frames without content and what follows the last frame
   * are left out; data that does not begin with a frame is returned as it is.
   */
  split(chunk: Buffer): Buffer[];
  /** Data that was too short to tell whether it is a frame. */
  end(): Buffer[];
}

function createZstdFrames(): ZstdFrames {
  let part: Part = 'magic';
  /** Bytes of the part that are still to come. */
  let left = MAGIC_BYTES;
  /** The bytes of the part so far; not of content. */
  let field: Buffer = NOTHING;
  let isLastBlock = false;
  let hasChecksum = false;

  function expect(next: Part, bytes: number): void {
    part = next;
    left = bytes;
    field = NOTHING;
  }

  function afterMagic(): void {
    const magic = field.readUInt32LE();
    const isFrame = magic === MAGIC;
    const isSkippable = (magic & SKIPPABLE_MASK) >>> 0 === SKIPPABLE;
    if (isFrame || isSkippable) frames.count += 1;
    if (isFrame) expect('descriptor', 1);
    else if (isSkippable) expect('size', 4);
    else expect(frames.count === 0 ? 'other' : 'rest', Number.POSITIVE_INFINITY);
  }

  function afterDescriptor(): void {
    const [flags = 0] = field;
    const isSingle = (flags & 0x20) !== 0;
    hasChecksum = (flags & 0x04) !== 0;
    const sizeFlag = flags >> 6;
    const sizeBytes = sizeFlag === 0 ? Number(isSingle) : 2 ** sizeFlag;
    const dictionaryBytes = DICTIONARY_BYTES[flags & 0x03] ?? 0;
    expect('header', Number(!isSingle) + dictionaryBytes + sizeBytes);
  }

  function afterBlockHeader(): void {
    const header = field.readUIntLE(0, BLOCK_HEADER_BYTES);
    isLastBlock = (header & 1) === 1;
    const contentBytes = ((header >> 1) & 3) === RUN_BLOCK ? 1 : header >> 3;
    expect('content', contentBytes + (isLastBlock && hasChecksum ? CHECKSUM_BYTES : 0));
  }

  const expectBlock = (): void => expect('block', BLOCK_HEADER_BYTES);
  const expectFrame = (): void => expect('magic', MAGIC_BYTES);
  const next: Readonly<Record<Part, () => void>> = {
    magic: afterMagic,
    descriptor: afterDescriptor,
    header: expectBlock,
    block: afterBlockHeader,
    content: () => (isLastBlock ? expectFrame() : expectBlock()),
    size: () => expect('skipped', field.readUInt32LE()),
    skipped: expectFrame,
    other: () => undefined,
    rest: () => undefined,
  };

  const frames = {
    count: 0,
    split(chunk: Buffer): Buffer[] {
      const pieces: Buffer[] = [];
      /** Where the bytes of the present frame begin. */
      let from = 0;
      for (let at = 0; at < chunk.length || left === 0; ) {
        const taken = Math.min(left, chunk.length - at);
        const isRead = part !== 'content' && left <= MAX_FIELD_BYTES;
        if (isRead) field = Buffer.concat([field, chunk.subarray(at, at + taken)]);
        at += taken;
        left -= taken;
        if (left > 0) continue;
        const [before, read] = [part, field];
        next[before]();
        if (before === 'content' && part === 'magic') pieces.push(chunk.subarray(from, at));
        if (before !== 'magic') continue;
        from = at;
        if (DELIVERED.has(part)) pieces.push(read);
      }
      if (DELIVERED.has(part) && from < chunk.length) pieces.push(chunk.subarray(from));
      return pieces;
    },
    end: () => (part === 'magic' && frames.count === 0 && field.length > 0 ? [field] : []),
  };
  return frames;
}
