import type { Transform } from 'node:stream';
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib';

import type { HttpError } from './http-client.ts';
import { httpError } from './http-failures.ts';

/** Undoes a body's content encodings as it arrives. */
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

/** What a decoder tells. */
export interface ContentDecoderEvents {
  readonly onData: (chunk: Uint8Array) => void;
  readonly onDrain: () => void;
  readonly onEnd: () => void;
  /**
   * The body is not what its encoding says, or is cut short; `body_too_large` when a stage made
   * more than it may.
   */
  readonly onError: (error: HttpError) => void;
}

/** More than this is no answer anybody means. */
const MAX_ENCODINGS = 2;

/**
 * RFC 9659: no body may need a larger window, 8 MiB; the format itself would let one ask for 2 GiB.
 */
const ZSTD_WINDOW_LOG = 23;

type DecoderFactory = (firstByte: number | undefined) => Transform;

const FACTORIES: Readonly<Record<string, DecoderFactory>> = {
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  // "deflate" means the zlib format, but some servers send raw deflate; the low half of zlib's
  // first byte is always 8.
  deflate: (firstByte) =>
    firstByte === undefined || (firstByte & 0x0f) === 8 ? createInflate() : createInflateRaw(),
  br: () => createBrotliDecompress(),
  zstd: () =>
    createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG } }),
};

/**
 * The encodings of a `Content-Encoding` value, in the order they were applied; none when there is
 * one we do not know, as browsers do it: values such as `utf-8` occur and mean nothing. Throws
 * `too_many_encodings` for more than two.
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

/** What to send as `Accept-Encoding`. */
export const ACCEPT_ENCODING = 'gzip, deflate, br, zstd';

/**
 * Makes a decoder for `encodings`, at least one. An empty body decodes to an empty one. What every
 * stage makes is counted against `maxBytes`: gigabytes of empty gzip members would otherwise come
 * out of the last stage as nothing.
 */
export function createContentDecoder(
  encodings: readonly string[],
  maxBytes: number,
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
      stage.on('error', (error) => events.onError(httpError('decoding_failed', error)));
      const next = stages[at + 1];
      // The last stage's output is counted by who keeps it.
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
