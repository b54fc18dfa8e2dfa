import type { Transform } from 'node:stream';
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  type ZlibOptions,
} from 'node:zlib';
import type { HttpError } from './http-client.ts';
import { httpError } from './http-failures.ts';
import { createLenientGunzip } from './lenient-gunzip.ts';
import { createZstdDecoder } from './zstd-frames.ts';

/** Decodes the content encodings of a body as it arrives. */
export interface ContentDecoder {
  /** False when no more should be written until `onDrain`. */
  write(chunk: Uint8Array): boolean;
  /** No more will be written; `onEnd` follows. */
  end(): void;
  /** Holds back what is decoded until `resume`. */
  pause(): void;
  resume(): void;
  destroy(): void;
}

/** Called as the decoder makes progress. */
export interface ContentDecoderEvents {
  readonly onData: (chunk: Uint8Array) => void;
  readonly onDrain: () => void;
  readonly onEnd: () => void;
  /**
   * The body does not match its encoding, or is cut short; `body_too_large` when one stage produced
   * more than the limit.
   */
  readonly onError: (error: HttpError) => void;
  /**
   * Decode as Chromium does what is cut short, or followed by other bytes; of several gzip members
   * that is the first. Default false.
   */
  readonly lenient?: boolean | undefined;
}

/** No server means more than this; each one multiplies what a body can expand to. */
const MAX_ENCODINGS = 2;

/** RFC 9659: no body may need a window of more than 8 MiB. The format itself allows 2 GiB. */
export const ZSTD_WINDOW_LOG = 23;

type DecoderFactory = (firstByte: number | undefined, lenient: boolean) => Transform;

const gunzip: DecoderFactory = (_, lenient) =>
  lenient ? createLenientGunzip(inflating(lenient)) : createGunzip();

const FACTORIES: Readonly<Record<string, DecoderFactory>> = {
  gzip: gunzip,
  'x-gzip': gunzip,
  // "deflate" means the zlib format, but some servers send raw deflate. The low half of the first
  // byte of zlib is always 8.
  deflate: (firstByte, lenient) =>
    firstByte === undefined || (firstByte & 0x0f) === 8
      ? createInflate(inflating(lenient))
      : createInflateRaw(inflating(lenient)),
  br: (_, lenient) =>
    createBrotliDecompress(lenient ? { finishFlush: constants.BROTLI_OPERATION_FLUSH } : {}),
  zstd: () => createZstdDecoder({ params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG } }),
};

/**
 * The encodings of a `Content-Encoding` value, in the order they were applied. As in browsers, a
 * value with an unknown encoding counts as none: values such as `utf-8` occur and mean nothing.
 * Throws `too_many_encodings` for more than two.
 */
export function parseContentEncoding(value: string): readonly string[] {
  const names = value
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity');
  if (!names.every((name) => Object.hasOwn(FACTORIES, name))) return [];
  if (names.length > MAX_ENCODINGS) throw httpError('too_many_encodings');
  return names;
}

/** A lenient decoder gives what it has at the end of its input, complete or not. */
function inflating(lenient: boolean): ZlibOptions {
  return lenient ? { finishFlush: constants.Z_SYNC_FLUSH } : {};
}

/** What to send as `Accept-Encoding`. */
export const ACCEPT_ENCODING = 'gzip, deflate, br, zstd';

/**
 * Makes a decoder for `encodings`, at least one. An empty body decodes to an empty one. The output
 * of every stage but the last is limited to `maxBytes`: gigabytes of empty gzip members would
 * otherwise come out of the last stage as nothing.
 */
export function createContentDecoder(
  encodings: readonly string[],
  maxBytes: number,
  events: ContentDecoderEvents,
): ContentDecoder {
  let stages: readonly Transform[] = [];

  // The stages are made when the first byte is known, because it distinguishes the two kinds of
  // deflate.
  function start(firstByte: number | undefined): Transform {
    stages = encodings.toReversed().map((name, at) => {
      const create = FACTORIES[name];
      if (create === undefined) throw new Error(`unknown content encoding ${name}`);
      return create(at === 0 ? firstByte : undefined, events.lenient === true);
    });
    for (const [at, stage] of stages.entries()) {
      stage.on('error', (error) => events.onError(httpError('decoding_failed', error)));
      const next = stages[at + 1];
      // The receiver counts the output of the last stage.
      if (next === undefined) stage.on('data', events.onData).on('end', events.onEnd);
      else join(stage, next);
    }
    const [outermost] = stages;
    if (outermost === undefined) throw new Error('no content encoding');
    outermost.on('drain', events.onDrain);
    return outermost;
  }

  function join(stage: Transform, next: Transform): void {
    let made = 0;
    stage.on('data', (chunk: Uint8Array) => {
      made += chunk.length;
      if (made > maxBytes) events.onError(httpError('body_too_large'));
      else if (!next.write(chunk)) stage.pause();
    });
    stage.on('end', () => next.end());
    next.on('drain', () => stage.resume());
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
    pause: () => void stages.at(-1)?.pause(),
    resume: () => void stages.at(-1)?.resume(),
    destroy() {
      for (const stage of stages) stage.destroy();
    },
  };
}
