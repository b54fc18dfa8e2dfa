import { type BodyCoding, type CodedBody, gzipContentLength } from '../domain/body-coding.ts';
import { discard } from '../domain/discard.ts';
import { type ByteCollector, createByteCollector } from './byte-collector.ts';
import {
  type ContentDecoder,
  createContentDecoder,
  parseContentEncoding,
  takesMemory,
} from './content-decoder.ts';
import { codingOf, decodeWhole } from './decode-whole.ts';
import type { HttpError, HttpResponse, Room } from './http-client.ts';
import { httpError } from './http-failures.ts';
import { headerValues } from './raw-headers.ts';

/** The connection that a body arrives on. */
export interface BodySource {
  pause(): void;
  resume(): void;
}

/** Gathers the body of one response. */
export interface BodySink {
  /**
   * Prepares for the body that these headers announce. Throws `too_many_encodings`. Without this
   * call the body is taken as empty. With `ownsReads`, a piece that
   * covers all of its memory is nobody else's, and is freed when the next one has come.
   */
  start(headers: HttpResponse['headers'], source: BodySource, ownsReads?: boolean): void;
  /** Takes a piece as it arrived; pauses the source when it is ahead of the decoder. */
  write(chunk: Uint8Array): void;
  /** The last piece has arrived; `onComplete` follows once everything is decoded. */
  end(): void;
  /** Whether the response is paused until there is memory for its body. */
  readonly isWaitingForRoom: boolean;
  /** Everything decoded so far. */
  take(): Uint8Array;
  /** The body as it arrived, where decoding it again gives just what was decoded. */
  readonly coded: CodedBody | undefined;
  /** Stops decoding; no event follows. */
  destroy(): void;
}

/** The limits of a body, and what is called when it has ended. */
export interface BodySinkDeps {
  /** For the body as it arrives, and for the decoded one. */
  readonly maxBytes: number;
  /** Memory for the body; without it only `maxBytes` applies. */
  readonly room: Room | undefined;
  /** As of {@link createContentDecoder}. */
  readonly lenient?: boolean | undefined;
  readonly onComplete: () => void;
  /**
   * Called in place of `onError` when the decoded body reaches `maxBytes`: it is cut there, and the sink is
   * destroyed. A coded one may then have twice as many bytes as it arrives. Default: it fails.
   */
  readonly onCut?: (() => void) | undefined;
  /** The body is too large or does not decode. The sink is destroyed by then. */
  readonly onError: (error: HttpError) => void;
}

/**
 * A coded body up to this length is gathered, and decoded at once if that gives no more than
 * {@link WHOLE_BYTES}, which takes a millisecond. A stream takes five times the processor time: each
 * of its pieces goes to another thread and back.
 */
const GATHERED_BYTES = 64 * 1_024;
const WHOLE_BYTES = 512 * 1_024;

/** Makes a sink that has received nothing. */
export function createBodySink(deps: BodySinkDeps): BodySink {
  const { maxBytes, room } = deps;
  const decoded = createByteCollector(maxBytes);
  let source: BodySource | undefined;
  let decoder: ContentDecoder | undefined;
  let encodings: readonly string[] = [];
  /** A coded body that may be decoded at once. */
  let gathered: { readonly coding: BodyCoding; readonly bytes: ByteCollector } | undefined;
  /** What has arrived for a decoder that waits for its memory; undefined when none does. */
  let held: Uint8Array[] | undefined;
  /** `Content-Length`, where it says how long the decoded body is. */
  let announcedBytes: number | undefined;
  let receivedBytes = 0;
  /** The last piece, if no other body shares its memory. */
  let lastRead: Uint8Array | undefined;
  let ownsReads = false;
  let hasEnded = false;
  let decoderHasEnded = false;
  let isDestroyed = false;

  function destroy(): void {
    isDestroyed = true;
    decoder?.destroy();
  }

  function fail(error: HttpError): void {
    if (isDestroyed) return;
    destroy();
    deps.onError(error);
  }

  /** Ends a body that does not fit. */
  function cut(chunk: Uint8Array): void {
    if (deps.onCut === undefined) return fail(httpError('body_too_large'));
    decoded.push(chunk.subarray(0, maxBytes - decoded.length));
    destroy();
    deps.onCut();
  }

  function resumeSource(): void {
    if (!sink.isWaitingForRoom) source?.resume();
  }

  function keep(chunk: Uint8Array): void {
    if (isDestroyed) return;
    if (!decoded.push(chunk)) cut(chunk);
    else if (room !== undefined && !sink.isWaitingForRoom && decoded.length > room.bytes) {
      void waitForRoom(room);
    }
  }

  /**
   * Frees the read before `chunk`: it is parsed, and its bytes are copied. A garbage collection
   * would free it much later, which leaves holes in the allocator's memory.
   */
  function freeReadBefore(chunk: Uint8Array): void {
    if (!ownsReads || isDestroyed) return;
    if (lastRead !== undefined) discard(lastRead);
    lastRead = chunk;
  }

  /**
   * Pauses the response until there is room for the whole body. All of it is asked for at once: a
   * body that asked for a little more each time could wait for others that wait for it.
   */
  async function waitForRoom(memory: Room): Promise<void> {
    sink.isWaitingForRoom = true;
    source?.pause();
    decoder?.pause();
    await memory.grow(Math.min(announcedBytes ?? maxBytes, maxBytes));
    sink.isWaitingForRoom = false;
    if (isDestroyed) return;
    if (held !== undefined) return feedHeld(held);
    if (completeIfWhole()) return;
    if (announcedBytes !== undefined) decoded.reserve(announcedBytes);
    decoder?.resume();
    source?.resume();
  }

  /** Tells that the body is complete if it is. HTTP/2 delivers the end of a body that is paused. */
  function completeIfWhole(): boolean {
    const isWhole = hasEnded && (decoder === undefined || decoderHasEnded);
    if (!isWhole || sink.isWaitingForRoom) return false;
    deps.onComplete();
    return true;
  }

  function onDecoderEnd(): void {
    decoderHasEnded = true;
    // Bytes may follow the end of the encoded data. They are dropped, but the body ends after them.
    if (!completeIfWhole()) resumeSource();
  }

  function createDecoder(): ContentDecoder {
    return createContentDecoder(encodings, maxBytes, {
      onData: keep,
      onDrain: resumeSource,
      onEnd: onDecoderEnd,
      onError: fail,
      lenient: deps.lenient,
    });
  }

  /** Begins to decode. Returns whether the decoder takes what arrives now. */
  function startDecoder(): boolean {
    decoder = createDecoder();
    if (room === undefined || room.bytes >= maxBytes || !takesMemory(encodings)) return true;
    held = [];
    void waitForRoom(room);
    return false;
  }

  function feedHeld(chunks: readonly Uint8Array[]): void {
    held = undefined;
    if (feed(chunks)) source?.resume();
    if (hasEnded) decoder?.end();
  }

  /** False when the source has to wait until these are decoded. */
  function feed(chunks: readonly Uint8Array[]): boolean {
    // The last one may be as long as the others together.
    return chunks.map((chunk) => decoder?.write(chunk) ?? true).every(Boolean);
  }

  function mostReceived(): number {
    if (deps.onCut === undefined) return maxBytes;
    return encodings.length > 0 ? 2 * maxBytes : Number.POSITIVE_INFINITY;
  }

  function gather(bytes: ByteCollector, chunk: Uint8Array): void {
    if (!bytes.push(chunk)) stream(bytes.take(), chunk);
  }

  /** Passes on what was gathered, and what follows it, to a decoder that takes it as it comes. */
  function stream(...chunks: readonly Uint8Array[]): void {
    gathered = undefined;
    if (!startDecoder()) held?.push(...chunks);
    else if (!feed(chunks)) source?.pause();
  }

  async function decodeGathered({ coding, bytes }: NonNullable<typeof gathered>): Promise<void> {
    const coded = bytes.take();
    const mostBytes = Math.min(maxBytes, WHOLE_BYTES);
    if (room !== undefined && room.bytes < mostBytes && mayExceed(coding, coded, room.bytes)) {
      sink.isWaitingForRoom = true;
      await room.grow(mostBytes);
      sink.isWaitingForRoom = false;
      if (isDestroyed) return;
    }
    const body = decodeWhole(coding, coded, mostBytes);
    if (body === undefined) {
      // What was granted is not enough, and waiting for more while holding it could wait for ever.
      room?.reset();
      stream(coded);
      if (held === undefined) decoder?.end();
      return;
    }
    decoded.push(body);
    if (coded.byteLength <= body.byteLength) sink.coded = { coding, bytes: coded };
    deps.onComplete();
  }

  const sink = {
    isWaitingForRoom: false,
    coded: undefined as CodedBody | undefined,
    start(headers: HttpResponse['headers'], from: BodySource, owns = false): void {
      source = from;
      ownsReads = owns;
      encodings = parseContentEncoding(headerValues(headers, 'content-encoding').join(','));
      if (encodings.length > 0) {
        const coding = codingOf(encodings);
        if (coding === undefined) startDecoder();
        else gathered = { coding, bytes: createByteCollector(GATHERED_BYTES) };
        return;
      }
      const length = Number(headerValues(headers, 'content-length').at(-1));
      if (length > 0) announcedBytes = length;
    },
    write(chunk: Uint8Array): void {
      if (isDestroyed) return;
      receivedBytes += chunk.length;
      if (receivedBytes > mostReceived()) fail(httpError('body_too_large'));
      else if (gathered !== undefined) {
        gather(gathered.bytes, chunk);
        // A decoder that it was passed to may not have read it yet.
        if (gathered !== undefined) freeReadBefore(chunk);
      } else if (decoder === undefined) {
        keep(chunk);
        freeReadBefore(chunk);
      } else if (held !== undefined) held.push(chunk);
      else if (!decoderHasEnded && !decoder.write(chunk)) source?.pause();
    },
    end(): void {
      hasEnded = true;
      if (gathered !== undefined) void decodeGathered(gathered);
      else if (decoder === undefined || decoderHasEnded) completeIfWhole();
      else if (held === undefined) decoder.end();
    },
    take: () => decoded.take(),
    destroy,
  };
  return sink;
}

/** Whether a body may decode to more than `bytes`. The last bytes of gzip say how many there are. */
function mayExceed(coding: BodyCoding, coded: Uint8Array, bytes: number): boolean {
  return coding !== 'gzip' || coded.byteLength < 4 || gzipContentLength(coded) > bytes;
}
