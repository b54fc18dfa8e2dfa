import type { Transform } from 'node:stream';
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib';

/** Undoes a body's content encodings as it arrives. */
export interface ContentDecoder {
  /** False when no more should be written until `onDrain`. */
  write(chunk: Uint8Array): boolean;
  /** No more will be written; `onEnd` follows. */
  end(): void;
  destroy(): void;
}

/** What a decoder tells. */
export interface ContentDecoderEvents {
  readonly onData: (chunk: Uint8Array) => void;
  readonly onDrain: () => void;
  readonly onEnd: () => void;
  /** The body is not what its encoding says, or is cut short. */
  readonly onError: (error: Error) => void;
}

/** More than this is no answer anybody means. */
const MAX_ENCODINGS = 3;

/** RFC 9659: no body may need a larger window, 8 MiB; the format itself would let one ask for 2 GiB. */
const ZSTD_WINDOW_LOG = 23;

type DecoderFactory = (firstByte: number | undefined) => Transform;

const FACTORIES: Readonly<Record<string, DecoderFactory>> = {
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  // "deflate" means the zlib format, but some servers send raw deflate; the low half of zlib's first byte is always 8.
  deflate: (firstByte) =>
    firstByte === undefined || (firstByte & 0x0f) === 8 ? createInflate() : createInflateRaw(),
  br: () => createBrotliDecompress(),
  zstd: () =>
    createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG } }),
};

/**
 * The encodings of a `Content-Encoding` value, in the order they were applied; none when there is one we do not know, as browsers do it:
 * values such as `utf-8` occur and mean nothing. Throws an Error for more than three.
 */
export function parseContentEncoding(value: string): readonly string[] {
  const names = value
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity');
  if (!names.every((name) => Object.hasOwn(FACTORIES, name))) return [];
  if (names.length > MAX_ENCODINGS) throw new Error(`${names.length} content encodings`);
  return names;
}

/** What to send as `Accept-Encoding`. */
export const ACCEPT_ENCODING = 'gzip, deflate, br, zstd';

/** Makes a decoder for `encodings`, at least one. An empty body decodes to an empty one. */
export function createContentDecoder(
  encodings: readonly string[],
  events: ContentDecoderEvents,
): ContentDecoder {
  let stages: readonly Transform[] = [];

  // The stages are made when the first byte is known, which tells the two kinds of deflate apart.
  function start(firstByte: number | undefined): Transform {
    stages = encodings.toReversed().map((name, at) => {
      const create = FACTORIES[name];
      if (create === undefined) throw new Error(`unknown content encoding ${name}`);
      return create(at === 0 ? firstByte : undefined);
    });
    for (const [at, stage] of stages.entries()) {
      stage.on('error', events.onError);
      const next = stages[at + 1];
      if (next === undefined) stage.on('data', events.onData).on('end', events.onEnd);
      else stage.pipe(next);
    }
    const [outermost] = stages;
    if (outermost === undefined) throw new Error('no content encoding');
    outermost.on('drain', events.onDrain);
    return outermost;
  }

  return {
    write(chunk) {
      if (chunk.length === 0) return true;
      return (stages[0] ?? start(chunk[0])).write(chunk);
    },
    end() {
      if (stages[0] === undefined) events.onEnd();
      else stages[0].end();
    },
    destroy() {
      for (const stage of stages) stage.destroy();
    },
  };
}
