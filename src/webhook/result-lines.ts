import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createGzip } from 'node:zlib';
import type { Delivery } from '../domain/delivery.ts';
import { contentPieces, type Envelope, resultFields } from '../domain/result-fields.ts';
import type { Signing } from '../domain/webhook-signature.ts';

/** More results than fit into one POST. */
export class TooLong extends Error {
  override readonly name = 'TooLong';
}

/** Bytes of a chunk. Each costs zlib a call in another thread, and other work has its turn after it. */
const CHUNK_BYTES = 64 * 1_024;
/** Bytes of several results. They are grouped by what their gzip says, which a site may have written. */
const MAX_BYTES = 32 * 1_024 * 1_024;
const LINE_END = Buffer.from('\n');

/** Identifies the POST of these results: the same whenever the same ones are sent together. */
export function idOfResults(deliveries: readonly Delivery[]): string {
  const hash = createHash('sha256');
  for (const { rid } of deliveries) hash.update(rid);
  return `results_${hash.digest('hex').slice(0, 32)}`;
}

/**
 * NDJSON of results, in chunks of some 64 KiB: of each the JSON envelope, with the `callback_headers` of
 * its push as an object. `unpack` decompresses a page. Throws {@link TooLong} when several are longer than
 * one POST may be.
 */
export async function* resultLines(
  deliveries: readonly Delivery[],
  unpack: (body: Uint8Array) => Promise<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  let total = 0;
  let pieces: Uint8Array[] = [];
  let bytes = 0;
  for (const delivery of deliveries) {
    const page = delivery.plain ?? (await unpack(delivery.body));
    for (const piece of linePieces(delivery, page)) {
      total += piece.byteLength;
      if (deliveries.length > 1 && total > MAX_BYTES) throw new TooLong('too many bytes');
      pieces.push(piece);
      bytes += piece.byteLength;
      if (bytes < CHUNK_BYTES) continue;
      yield Buffer.concat(pieces);
      pieces = [];
      bytes = 0;
      await nextTurn();
    }
  }
  if (bytes > 0) yield Buffer.concat(pieces);
}

/** The lines compressed, in zlib's own thread. `signing` signs them before that. */
export async function packedLines(
  lines: AsyncIterable<Uint8Array>,
  signing: Signing,
): Promise<Uint8Array> {
  async function* signed(): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const chunk of lines) {
      signing.update(chunk);
      yield chunk;
    }
  }
  const packed = createGzip({ level: 1, chunkSize: CHUNK_BYTES });
  const [bytes] = await Promise.all([buffer(packed), pipeline(signed, packed)]);
  return bytes;
}

/** The line of a result. */
function* linePieces(delivery: Delivery, page: Uint8Array): Generator<Uint8Array> {
  const { contentType, callbackHeaders, details } = delivery;
  const isEnvelope = contentType === 'gzip/json';
  const around = { fields: resultFields(delivery, details), of: 'page' } satisfies Envelope;
  const pieces = contentPieces({
    contentType,
    body: page,
    envelope: isEnvelope ? undefined : around,
  });
  let isFirst = callbackHeaders.length > 0;
  for (const piece of pieces) {
    const onOneLine = isEnvelope ? withoutLineEnds(piece) : piece;
    if (isFirst) {
      const headers = JSON.stringify(Object.fromEntries(callbackHeaders));
      yield Buffer.from(`{"callback_headers":${headers},`);
    }
    yield isFirst ? onOneLine.subarray(1) : onOneLine;
    isFirst = false;
  }
  yield LINE_END;
}

/** The piece with spaces in place of line ends, which are between the members of an envelope. */
function withoutLineEnds(piece: Uint8Array): Uint8Array {
  if (!piece.includes(0x0a)) return piece;
  return piece.map((byte) => (byte === 0x0a ? 0x20 : byte));
}
